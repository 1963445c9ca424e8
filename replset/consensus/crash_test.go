package consensus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func long() bool { return os.Getenv("ASSAY_LONG") == "1" }

// loss is what a crash takes of what was not synced: all of it, or what is drawn by block
// and by name.
func loss(r *rand.Rand) vfs.CrashCloneCfg {
	if r.IntN(2) == 0 {
		return vfs.CrashCloneCfg{}
	}
	return vfs.CrashCloneCfg{UnsyncedDataPercent: 1 + r.IntN(99), RNG: r}
}

// stepping calls before each operation that changes the file system.
func stepping(fs vfs.FS, before func()) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			before()
		}
		return nil
	}))
}

// TestACrashAtAnyDurableStepOfCatchingUp loses what a member had not synced, before
// every single change of its files while it starts, follows, restores a snapshot
// and follows again. From each it must start, know a prefix of the log, and catch
// up.
func TestACrashAtAnyDurableStepOfCatchingUp(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	c := newClusterOf(t, 3, 16)
	lead := c.leader()
	away := c.members[slices.IndexFunc(c.members, func(m *member) bool { return m != lead })]
	c.stop(away)
	for i := range 60 { // more than the log keeps
		c.propose(fmt.Sprintf("while away %d", i))
	}
	var mu sync.Mutex
	var crashed []*vfs.MemFS
	armed := true
	away.wrap = func(fs vfs.FS) vfs.FS {
		return stepping(fs, func() {
			mu.Lock()
			defer mu.Unlock()
			if armed {
				crashed = append(crashed, fs.(*vfs.MemFS).CrashClone(loss(r)))
			}
		})
	}
	c.start(away, c.ids())
	caughtUp(t, c, away, c.propose("back"))
	for i := range 5 {
		caughtUp(t, c, away, c.propose(fmt.Sprintf("after %d", i)))
	}
	mu.Lock()
	armed = false
	mu.Unlock()
	c.stop(away)
	away.wrap = nil
	if len(crashed) < 20 || away.machine == nil {
		t.Fatalf("only %d places to crash at", len(crashed))
	}
	t.Logf("%d places to crash at", len(crashed))
	whole := c.leader().machine.entries()
	for i, fs := range crashed {
		away.fs = fs
		c.startAlone(away)
		applied, have := away.node.Applied(), away.machine.entries()
		for index, data := range whole {
			if got, ok := have[index]; ok != (index <= applied) || ok && got != data {
				t.Fatalf("from step %d: with %d entries applied, entry %d is %q, want %q", i, applied, index, got, data)
			}
		}
		c.stop(away)
		if i%6 != 0 && !long() {
			continue
		}
		// The leader knows how far the member was in another future, and may hold it
		// to that; a new one does not.
		old := c.leader()
		until(t, "leadership to move", func() bool {
			_ = old.node.Transfer(context.Background(), 0)
			return c.leader() != old
		})
		// What an earlier leader sent and a link still holds is of that future too.
		away.oldest.Store(c.leader().node.Role().Term)
		c.start(away, c.ids())
		caughtUp(t, c, away, c.propose(fmt.Sprintf("from step %d", i)))
		c.stop(away)
	}
}

// caughtUp waits until a member has an entry, and compares what it has with the
// leader's.
func caughtUp(t *testing.T, c *cluster, m *member, last string) {
	t.Helper()
	until(t, "the member to catch up with "+last, func() bool {
		all := m.machine.all()
		return len(all) > 0 && all[len(all)-1] == last
	})
	want, got := c.leader().machine.all(), m.machine.all()
	if !slices.Equal(want, got) {
		t.Fatalf("with %s the member has %d entries, the leader %d", last, len(got), len(want))
	}
}

// TestAPowerFailureOfAllAtAnyDurableStep stops all members at one moment, before a
// change of any one's files, under load, and starts them from what was synced.
// Everything that was acknowledged until then is there, once.
func TestAPowerFailureOfAllAtAnyDurableStep(t *testing.T) {
	const crashes = 25
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	c := newClusterOf(t, 3, 16)
	var acked []string
	for crash := range crashes {
		for _, m := range c.members {
			c.stop(m)
		}
		type cut struct {
			fs    []*vfs.MemFS
			acked []string
		}
		var mu sync.Mutex
		var gate sync.RWMutex // one moment for all: nobody writes while files are copied
		var taken *cut
		var sofar []string
		steps := int64(20 + r.IntN(120))
		var step atomic.Int64
		var arm atomic.Bool
		for _, m := range c.members {
			m.wrap = func(fs vfs.FS) vfs.FS {
				return stepping(fs, func() {
					if !arm.Load() || step.Add(1) != steps {
						gate.RLock()
						defer gate.RUnlock()
						return
					}
					gate.Lock()
					defer gate.Unlock()
					mu.Lock()
					defer mu.Unlock()
					taken = &cut{acked: slices.Clone(sofar)}
					for _, m := range c.members {
						taken.fs = append(taken.fs, m.fs.CrashClone(loss(r)))
					}
				})
			}
			c.start(m, c.ids())
		}
		_ = c.members[crash%3].node.Campaign(context.Background())
		c.propose(fmt.Sprintf("settled %d", crash))
		arm.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		var group sync.WaitGroup
		for w := range 4 {
			group.Go(func() {
				for i := 0; ; i++ {
					mu.Lock()
					done := taken != nil
					mu.Unlock()
					if done || ctx.Err() != nil {
						return
					}
					name := fmt.Sprintf("c%d-w%d-%d", crash, w, i)
					if _, _, err := c.leader().node.Propose(ctx, []byte(name)); err == nil {
						mu.Lock()
						sofar = append(sofar, name)
						mu.Unlock()
					}
				}
			})
		}
		group.Wait()
		cancel()
		if taken == nil {
			t.Fatal("no step to crash at came up")
		}
		acked = append(acked, taken.acked...)
		// What was sent after that moment was never sent.
		for _, m := range c.members {
			m.hangUp()
		}
		for i, m := range c.members {
			c.stop(m)
			m.fs, m.wrap = taken.fs[i], nil
			c.listen(m, m.link.Addr())
		}
		for _, m := range c.members {
			c.connect(m)
		}
		for _, m := range c.members {
			c.start(m, c.ids())
		}
		_ = c.members[r.IntN(3)].node.Campaign(context.Background())
		last := c.propose(fmt.Sprintf("after crash %d", crash))
		have := map[string]int{}
		lead := c.leader()
		for _, m := range c.members {
			caughtUp(t, c, m, last)
		}
		for _, name := range lead.machine.all() {
			have[name]++
		}
		for _, name := range acked {
			if have[name] != 1 {
				t.Fatalf("after crash %d the acknowledged entry %s is there %d times (seed %d)", crash, name, have[name], seed)
			}
		}
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged; this shows nothing")
	}
	t.Logf("%d crashes, %d acknowledged entries", crashes, len(acked))
}

// TestAMemberWhoseDiskFailsGivesUpItsRole: the others elect, and this one says
// why it stopped.
func TestAMemberWhoseDiskFailsGivesUpItsRole(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.leader()
	c.stop(lead)
	var full atomic.Bool
	lead.wrap = func(fs vfs.FS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return fmt.Errorf("no space left on device")
			}
			return nil
		}))
	}
	c.start(lead, c.ids())
	c.propose("before")
	until(t, "the member to lead again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = lead.node.TakeOver(ctx)
		r := lead.node.Role()
		return r.Leader == lead.id && r.Ready
	})
	full.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, _, err := lead.node.Propose(ctx, []byte("too much")); err == nil {
		// The two others are a majority, so that it may have got through.
		t.Log("the entry was committed by the others")
	}
	until(t, "the member to stop", func() bool { return lead.node.Err() != nil })
	if r := lead.node.Role(); r.Leader == lead.id {
		t.Errorf("a member that stopped with %v still leads", lead.node.Err())
	}
	until(t, "another leader", func() bool {
		for _, m := range c.members {
			if r := m.node.Role(); m != lead && r.Leader == m.id && r.Ready {
				return true
			}
		}
		return false
	})
	t.Logf("it stopped with: %v", lead.node.Err())
	lead.broken = true
}
