package screening_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

func ticketOf(t *testing.T, err error) screening.Ticket {
	t.Helper()
	var unknown *screening.UnknownError
	if !errors.As(err, &unknown) || !errors.Is(err, screening.ErrOutcomeUnknown) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	return unknown.Ticket
}

// TestASaveIsKilledAtAnyCommand kills the process of a save at each of its commands,
// and has another resolve what became of it: the answer must be what the study says,
// then and for ever.
func TestASaveIsKilledAtAnyCommand(t *testing.T) {
	t.Parallel()
	uri := small(t)
	for path, mode := range paths() {
		for _, eligibility := range []bool{false, true} {
			if path == screening.ByMode || path == screening.Transactional && !eligibility {
				continue // other cases have all of its commands
			}
			f := beginOn(t, uri)
			if mode != screening.ModeOff {
				f.mode(mode)
			}
			eligible(f, nil, path)
			saved, unsaved, survived := 0, 0, map[bool]bool{false: !long()}
			for at := 1; !survived[false] || !survived[true]; at++ {
				for _, after := range []bool{false, true} {
					if survived[after] {
						continue
					}
					s, l := mortal(t, uri, f.db.Name(), at, after, screening.Options{Eligibility: eligibility})
					d := decision("s0", "r", (at%2 == 0) == after)
					d.Operation = bson.NewObjectID()
					_, err := f.open(screening.Options{Eligibility: true}).Save(within(t), path, decision("s0", "r", !d.Include))
					must(t, err)
					before := f.study("s0")
					control, err := f.admin.Control(within(t), project)
					must(t, err)
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					done := make(chan error, 1)
					go func() {
						defer cancel()
						_, err := s.Save(ctx, path, d)
						done <- err
					}()
					select {
					case err := <-done:
						if !l.dead() {
							survived[after] = err == nil // else it was the machine: once more, one command later
							continue
						}
					case <-l.died: // what it still tries, nobody hears
					}
					f.bury(l)
					ok, err := f.admin.Resolve(within(t), screening.Ticket{Project: project, Study: "s0", Operation: d.Operation,
						Version: before.Version, Folds: before.Folds, Epoch: control.Epoch, Durable: path != screening.SourceOnly})
					must(t, err)
					now := f.study("s0")
					if has := slices.Contains(now.Recent, d.Operation); has != ok {
						t.Errorf("%v, eligibility %v, command %d, sent %v: resolved to saved %v, the study has it: %v", path, eligibility, at, after, ok, has)
					}
					if ok {
						saved++
					} else {
						unsaved++
						if now.Version == before.Version {
							t.Errorf("%v: not saved, but the write may yet land", path)
						}
					}
				}
				if at > 60 {
					t.Fatal("a save has no end")
				}
			}
			if saved == 0 || unsaved == 0 {
				t.Errorf("%v, eligibility %v: %d victims had saved, %d had not; it takes both", path, eligibility, saved, unsaved)
			}
			f.drain()
			f.parity()
		}
	}
}

func TestAnUnknownOutcomeIsResolved(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	ctx := within(t)
	loaded := f.study("s0")
	ticket := func(op bson.ObjectID, durable bool) screening.Ticket {
		return screening.Ticket{Project: project, Study: "s0", Operation: op, Version: loaded.Version, Folds: loaded.Folds, Epoch: 2, Durable: durable}
	}
	// Not saved: the version is raised, so that the write can never match.
	ok, err := f.admin.Resolve(ctx, ticket(bson.NewObjectID(), true))
	if ok || err != nil || f.study("s0").Version != loaded.Version+1 {
		t.Errorf("%v, %v, version %d", ok, err, f.study("s0").Version)
	}
	loaded = f.study("s0")
	d := decision("s0", "r", true)
	d.Operation = bson.NewObjectID()
	_, err = f.admin.Save(ctx, screening.Fold, d)
	must(t, err)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"recent", func() {}},
		{"pending", func() { f.forget("s0") }},
		{"receipt", func() { f.drain() }},
	} {
		step.do()
		if ok, err := f.admin.Resolve(ctx, ticket(d.Operation, true)); !ok || err != nil {
			t.Errorf("%s: %v, %v", step.name, ok, err)
		}
	}
	// Many saves later, absence is proof for what would have left a record only.
	for i := range 20 {
		_, err := f.admin.Save(ctx, screening.Fold, decision("s0", "r", i%2 == 0))
		must(t, err)
	}
	if ok, err := f.admin.Resolve(ctx, ticket(bson.NewObjectID(), true)); ok || err != nil {
		t.Errorf("absence was no proof: %v, %v", ok, err)
	}
	_, err = f.admin.Resolve(ctx, ticket(bson.NewObjectID(), false))
	ticketOf(t, err)
	_, err = f.admin.Resolve(ctx, screening.Ticket{Project: project, Operation: bson.NewObjectID()})
	ticketOf(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = f.admin.Resolve(gone, ticket(bson.NewObjectID(), true))
	ticketOf(t, err)
}

func TestADropRangeForbidsAGuess(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	ctx := within(t)
	loaded := f.study("s0")
	d := decision("s0", "r", true)
	d.Operation = bson.NewObjectID()
	_, err := f.admin.Save(ctx, screening.Fold, d)
	must(t, err)
	control, err := f.admin.Control(ctx, project)
	must(t, err)
	n, err := f.admin.Drop(ctx, project, "test")
	must(t, err)
	if n != 1 {
		t.Errorf("%d entries dropped, want 1", n)
	}
	_, err = f.admin.Read(ctx, project, tally.ProjectScreening)
	f.refused("read after a drop", err, screening.ErrNotServing)
	for i := range 20 {
		_, err := f.admin.Save(ctx, screening.Fold, decision("s0", "r", i%2 == 0))
		must(t, err)
	}
	ticket := screening.Ticket{Project: project, Study: "s0", Operation: d.Operation, Version: loaded.Version, Folds: loaded.Folds, Epoch: control.Epoch, Durable: true}
	_, err = f.admin.Resolve(ctx, ticket)
	ticketOf(t, err)
	ticket.Epoch += 1 // after the drop
	if ok, err := f.admin.Resolve(ctx, ticket); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if n, err := f.admin.RetireReceipts(ctx, project, time.Now().Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("%d receipts retired, %v", n, err)
	}
	_, err = f.admin.Resolve(ctx, ticket)
	ticketOf(t, err)
	// A late entry of the dropped epoch is kept, and seen.
	_, err = f.db.Collection("study").UpdateOne(ctx, bson.M{"_id": "s1"}, bson.M{"$push": bson.M{"pending": screening.Entry{ID: bson.NewObjectID(), Operation: bson.NewObjectID(),
		Namespace: screening.ScreeningNamespace, Epoch: control.Epoch, Moves: []tally.Move{{Family: tally.ProjectScreening, Counters: tally.Counters{"includes": 1}}}}},
		"$inc": bson.M{"pendingCount": 1, "version": 1}})
	must(t, err)
	if got := f.drain(); got.Quarantined != 1 {
		t.Errorf("%+v", got)
	}
	for _, fam := range tally.Families() {
		must(t, f.admin.Rebuild(ctx, project, fam))
	}
	f.parity()
}

func TestAKilledPrimaryLosesNoAcknowledgedSave(t *testing.T) {
	t.Parallel()
	set := replset.Start(t, replset.Options{NoSync: true})
	for path, mode := range paths() {
		t.Run(path.String(), func(t *testing.T) {
			f := beginOn(t, set.URI())
			f.t = t
			if mode != screening.ModeOff {
				f.mode(mode)
			}
			ctx := within(t)
			working, stop := context.WithCancel(ctx)
			var worker sync.WaitGroup
			worker.Go(func() { f.admin.Work(working, project, 5*time.Millisecond, nil) })
			type fate struct {
				op    bson.ObjectID
				study string
				saved bool
			}
			var mu sync.Mutex
			var fates []fate
			var unknown []screening.Ticket
			resolved, progress := 0, make(chan struct{}, 1000)
			var savers sync.WaitGroup
			for r := range 4 {
				o := screening.Options{WriterGrace: 5 * time.Second}
				s := f.open(o)
				if r%2 == 0 { // without the driver's own second try
					c, _ := dial(t, set.URI(), options.Client().SetRetryWrites(false))
					var err error
					s, err = screening.Open(ctx, c.Database(f.db.Name()), o)
					must(t, err)
				}
				savers.Go(func() {
					for i := 0; working.Err() == nil; i++ {
						d := decision(fmt.Sprint("s", (r+i)%3), fmt.Sprint("r", r), i%2 == 0)
						d.Operation = bson.NewObjectID()
						out, err := s.Save(ctx, path, d)
						mu.Lock()
						var u *screening.UnknownError
						if errors.As(err, &u) {
							unknown = append(unknown, u.Ticket)
						} else {
							fates = append(fates, fate{d.Operation, d.Study, err == nil})
						}
						if out.Resolved {
							resolved++
						}
						mu.Unlock()
						if err == nil {
							select {
							case progress <- struct{}{}:
							default:
							}
						}
					}
				})
			}
			await := func(n int) {
				t.Helper()
				for range n {
					select {
					case <-progress:
					case <-ctx.Done():
						t.Fatal("nothing is saved any more")
					}
				}
			}
			await(10)
			must(t, set.StepDown(ctx))
			await(10)
			dead := set.Primary()
			must(t, set.Kill(dead))
			await(10)
			must(t, set.Restart(dead))
			await(10)
			stop()
			savers.Wait()
			worker.Wait()
			for _, ticket := range unknown {
				ok, err := f.admin.Resolve(within(t), ticket)
				var still *screening.UnknownError
				if errors.As(err, &still) && path == screening.SourceOnly {
					continue // more than 16 saves later, and no record: honest
				}
				must(t, err)
				fates = append(fates, fate{ticket.Operation, ticket.Study, ok})
			}
			f.drain()
			f.parity()
			f.wentAsTold(func(each func(op bson.ObjectID, study string, saved bool)) {
				for _, k := range fates {
					each(k.op, k.study, k.saved)
				}
			})
			t.Logf("%d told, %d resolved at once, %d later", len(fates), resolved, len(unknown))
		})
	}
}

// wentAsTold checks what can be seen of each operation against what its caller was told.
func (f *fixture) wentAsTold(fates func(func(op bson.ObjectID, study string, saved bool))) {
	f.t.Helper()
	traces := map[bson.ObjectID]bool{}
	for i := range 10 {
		for _, op := range f.study(fmt.Sprint("s", i)).Recent {
			traces[op] = true
		}
	}
	var receipts []struct {
		Op bson.ObjectID `bson:"op"`
	}
	cur, err := f.db.Collection("statisticsSourceOperationReceipt").Find(within(f.t), bson.M{})
	must(f.t, err)
	must(f.t, cur.All(within(f.t), &receipts))
	for _, r := range receipts {
		traces[r.Op] = true
	}
	saved, seen := map[string]int{}, 0
	fates(func(op bson.ObjectID, study string, ok bool) {
		if ok {
			saved[study]++
		}
		if !ok && traces[op] {
			f.t.Errorf("operation %s was told not saved, and is there", op.Hex())
		}
		if ok && traces[op] {
			seen++
		}
	})
	if seen == 0 {
		f.t.Error("no trace of any operation")
	}
	for study, n := range saved {
		if s := f.study(study); int64(n) > s.Version-s.Folds-1 {
			f.t.Errorf("study %s: %d saves acknowledged, %d writes", study, n, s.Version-s.Folds-1)
		}
	}
}

func TestASaveThatIgnoresTheVersionIsFound(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	var met sync.Once
	ready := make(chan struct{})
	s := f.open(screening.Options{Defect: defect.IgnoredVersion(), Hooks: between(func(screening.Attempt) {
		met.Do(func() {
			_, err := f.admin.Save(within(t), screening.Fold, decision("s0", "rival", true))
			must(t, err)
			close(ready)
		})
	}, 1)})
	_, err := s.Save(within(t), screening.Fold, decision("s0", "r", true))
	must(t, err)
	<-ready
	study := f.study("s0")
	if len(study.Decisions) == 2 {
		t.Error("the defect did nothing")
	}
	// What finds it: two saves were acknowledged, one decision is there; and the loser's
	// entry went with it, so parity alone would not.
	if slices.ContainsFunc(study.Decisions, func(d tally.Decision) bool { return d.Reviewer == "rival" }) {
		t.Error("the rival's decision survived")
	}
}

func TestAMiscountedConflictIsFound(t *testing.T) {
	for _, d := range []defect.Defect{{}, defect.MiscountedConflict()} {
		f := begin(t)
		f.mode(screening.ModeTransactional)
		s := f.open(screening.Options{Defect: d})
		// Another study's save takes the control row between snapshot and write.
		rival := f.rival(screening.Options{})
		var once sync.Once
		f.seen.watch(func(line string) {
			if line == "findAndModify study" {
				once.Do(func() {
					_, err := rival.Save(within(t), screening.Transactional, decision("s1", "rival", true))
					must(t, err)
				})
			}
		})
		out, err := s.Save(within(t), screening.Transactional, decision("s0", "r", true))
		must(t, err)
		f.seen.watch(nil)
		want := screening.Statistics
		if d != (defect.Defect{}) {
			want = screening.StudySave
		}
		if got := causes(out); !slices.Equal(got, []screening.Cause{want}) {
			t.Errorf("%v: causes %v", d, got)
		}
		// What finds it: the conflict blames a save of the study, and the study did not move.
		moved := f.study("s0").Version-out.Conflicts[0].Version > 1
		if blamed := out.Conflicts[0].Cause == screening.StudySave; blamed && moved {
			t.Error("the defect cannot be told")
		}
		f.parity()
	}
}

// TestTheFenceWaitsForAnOpenTransaction: a transaction that has written the study and
// whose client is gone may still commit for all that is known, until it has ended.
func TestTheFenceWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	uri := small(t)
	f := beginOn(t, uri)
	f.mode(screening.ModeTransactional)
	before := f.study("s0")
	d := decision("s0", "r", true)
	d.Operation = bson.NewObjectID()
	s, l := mortal(t, uri, f.db.Name(), 5, true, screening.Options{}) // 4 writes the study, 5 is after it
	go func() { _, _ = s.Save(context.Background(), screening.Transactional, d) }()
	ctx := within(t)
	select {
	case <-l.died:
	case <-ctx.Done():
		t.Fatal("it did not get to its fifth command")
	}
	fencing := make(chan struct{}, 100)
	f.seen.watch(func(line string) {
		if line == "update study" {
			fencing <- struct{}{}
		}
	})
	type answer struct {
		saved bool
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		saved, err := f.admin.Resolve(ctx, screening.Ticket{Project: project, Study: "s0", Operation: d.Operation, Version: before.Version, Durable: true})
		got <- answer{saved, err}
	}()
	select {
	case <-fencing:
	case <-ctx.Done():
		t.Fatal("no fence was tried")
	}
	select {
	case a := <-got:
		t.Fatalf("resolved to %+v while the transaction was open", a)
	default:
	}
	f.bury(l)
	if a := <-got; a.saved || a.err != nil {
		t.Errorf("saved %v, %v", a.saved, a.err)
	}
	if s := f.study("s0"); s.Version != before.Version+1 || len(s.Decisions) != 0 {
		t.Errorf("%+v", s)
	}
	f.parity()
}

// TestWhoGivesUpLeavesNothingOpen cancels a save at each of its commands; whoever comes
// next must not wait for a transaction that nobody ends.
func TestWhoGivesUpLeavesNothingOpen(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeTransactional)
	rival := f.rival(screening.Options{})
	for at, done := 1, false; !done; at++ {
		ctx, cancel := context.WithCancel(within(t))
		n := 0
		f.seen.watch(func(string) {
			if n++; n == at {
				cancel()
			}
		})
		_, err := f.admin.Save(ctx, screening.Transactional, decision("s0", "r", at%2 == 0))
		f.seen.watch(nil)
		done = err == nil && n < at
		cancel()
		next, stop := context.WithTimeout(context.Background(), 20*time.Second) // a lifetime is 60 s
		for {
			_, err = rival.Save(next, screening.Transactional, decision("s0", "rival", at%2 == 0))
			if !errors.Is(err, screening.ErrExhausted) {
				break
			}
		}
		stop()
		if err != nil {
			t.Fatalf("after a save that was given up at command %d: %v", at, err)
		}
	}
	f.parity()
}
