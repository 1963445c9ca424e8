package authority

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset"
)

// after is a read deadline that faults outlast.
const after = 400 * time.Millisecond

func TestASecondaryIsRefused(t *testing.T) {
	set := startSet(t, replset.Options{})
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	id := newID()
	grant(t, writerOf(t, people(t, set.URI()), Options{}), id, "admin")
	// The driver asks again until the deadline, which may then be the reason.
	_, err = readerOf(t, people(t, set.MemberURI((p+1)%3)), Options{Deadline: after}).Read(within(t, generous), id)
	refused(t, err, NotPrimary, Deadline)
}

func TestWithoutAMajorityEveryReadIsRefused(t *testing.T) {
	for _, byWrite := range []bool{false, true} {
		set := startSet(t, replset.Options{LinearizableByWrite: byWrite})
		coll := people(t, set.URI())
		r, id := readerOf(t, coll, Options{Deadline: after}), newID()
		grant(t, writerOf(t, coll, Options{}), id, "admin")
		p, err := set.AwaitPrimary(within(t, generous))
		must(t, err)
		must(t, set.Pause((p+1)%3))
		must(t, set.Pause((p+2)%3))
		for range 3 {
			rec, err := r.Read(within(t, generous), id)
			refused(t, err, Deadline, NotPrimary, NoMajority)
			if rec.Has("admin") {
				t.Fatal("a refusal came with the role")
			}
		}
		must(t, set.Resume((p+1)%3))
		must(t, set.Resume((p+2)%3))
		recovers(t, r, id)
	}
}

// recovers reads until a read succeeds.
func recovers(t *testing.T, s Source, id ID) Record {
	t.Helper()
	ctx := within(t, generous)
	for {
		rec, err := s.Read(ctx, id)
		if err == nil {
			return rec
		}
		if ctx.Err() != nil {
			t.Fatalf("no read succeeds again: %v", err)
		}
	}
}

// TestAnOldPrimaryRefuses is the hazard that linearizable reads are for: the primary
// is cut off from its peers and does not know it, a revocation is acknowledged by the
// others, and somebody asks the old one.
func TestAnOldPrimaryRefuses(t *testing.T) {
	set := startSet(t, replset.Options{Timing: replset.MongoDB})
	coll := people(t, set.URI())
	id := newID()
	rev := grant(t, writerOf(t, coll, Options{}), id, "admin")
	old, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	direct := readerOf(t, people(t, set.MemberURI(old)), Options{Deadline: after})
	if rec, err := direct.Read(within(t, generous), id); err != nil || !rec.Has("admin") {
		t.Fatalf("before the fault: %+v, %v", rec, err)
	}
	heir := (old + 1) % 3
	must(t, set.Partition([]int{old}, []int{heir, (old + 2) % 3}))
	must(t, set.StepUp(within(t, generous), heir))
	if o, err := writerOf(t, people(t, set.MemberURI(heir)), Options{}).Revoke(within(t, generous), id, "admin", rev); o != Applied {
		t.Fatalf("revoking on the new primary: %v, %v", o, err)
	}
	var believes struct {
		IsWritablePrimary bool `bson:"isWritablePrimary"`
	}
	hello := people(t, set.MemberURI(old)).Database().RunCommand(within(t, generous), bson.D{{Key: "hello", Value: 1}})
	must(t, hello.Decode(&believes))
	for range 3 {
		rec, err := direct.Read(within(t, generous), id)
		refused(t, err, Deadline, NotPrimary, NoMajority)
		if rec.Has("admin") {
			t.Fatal("an old primary vouched for a role")
		}
	}
	t.Logf("the old primary believed that it was one: %v", believes.IsWritablePrimary)
	must(t, set.Heal())
	if rec := recovers(t, readerOf(t, coll, Options{}), id); rec.Revision != rev+1 || rec.Has("admin") {
		t.Fatalf("after healing: %+v", rec)
	}
}

// TestNoRevokedRoleIsHonouredThroughFaults keeps reading and revoking while primaries
// step down and die. A read that began after an acknowledged change must show it.
func TestNoRevokedRoleIsHonouredThroughFaults(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, id := writerOf(t, coll, Options{Deadline: 2 * time.Second}), newID()
	plainReader := readerOf(t, coll, Options{Deadline: 2 * time.Second})
	grant(t, w, id, "admin")

	var acked, reads, changes atomic.Int64
	acked.Store(1)
	ctx, stop := context.WithCancel(within(t, 2*generous))
	var all sync.WaitGroup
	for _, source := range []Source{plainReader, plainReader.Shared()} {
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					least := acked.Load()
					rec, err := source.Read(ctx, id)
					if err != nil {
						continue
					}
					reads.Add(1)
					if rec.Revision < least || rec.Has("admin") != (rec.Revision%2 == 1) {
						t.Errorf("a read that began after revision %d was acknowledged gives %+v", least, rec)
					}
				}
			})
		}
	}
	all.Go(func() {
		rev := int64(1)
		for ctx.Err() == nil {
			change := w.Revoke
			if rev%2 == 0 {
				change = w.Grant
			}
			switch o, _ := change(ctx, id, "admin", rev); o {
			case Applied:
				rev++
				acked.Store(rev)
				changes.Add(1)
			default: // unknown or conflict: only a fresh read tells
				if rec, err := plainReader.Read(ctx, id); err == nil {
					rev = rec.Revision
				}
			}
		}
	})
	progress := func(when string) {
		t.Helper()
		r, c := reads.Load()+50, changes.Load()+10
		deadline := time.After(generous)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for reads.Load() < r || changes.Load() < c {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%s, reads (%d of %d) and changes (%d of %d) do not go on", when, reads.Load(), r, changes.Load(), c)
			}
		}
	}
	progress("before any fault")
	for range 2 {
		must(t, set.StepDown(within(t, generous)))
		progress("after a step-down")
		p, err := set.AwaitPrimary(within(t, generous))
		must(t, err)
		must(t, set.Kill(p))
		progress("with a member dead")
		must(t, set.Restart(p))
		p, err = set.AwaitPrimary(within(t, generous))
		must(t, err)
		must(t, set.Partition([]int{p}, []int{(p + 1) % 3, (p + 2) % 3}))
		progress("with a member cut off")
		must(t, set.Heal())
		progress("after healing")
	}
	stop()
	all.Wait()
	t.Logf("%d reads beside %d acknowledged changes", reads.Load(), changes.Load())
}
