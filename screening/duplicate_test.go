package screening_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/screening"
)

func (f *fixture) forget(study string) {
	f.t.Helper()
	_, err := f.db.Collection("study").UpdateOne(within(f.t), bson.M{"_id": study}, bson.M{"$set": bson.M{"recent": bson.A{}}})
	must(f.t, err)
}

// TestAnOperationIsSavedOnce sends an operation again, when it is known from one place
// only.
func TestAnOperationIsSavedOnce(t *testing.T) {
	for _, c := range []struct {
		known string
		path  screening.SavePath
		mode  screening.Mode
		hide  func(f *fixture)
		again bool
	}{
		{"recent", screening.SourceOnly, screening.ModeOff, func(*fixture) {}, false},
		{"pending", screening.Fold, screening.ModeFold, func(f *fixture) { f.forget("s0") }, false},
		{"receipt", screening.Fold, screening.ModeFold, func(f *fixture) { f.drain(); f.forget("s0") }, true},
		{"receipt", screening.ByMode, screening.ModeFold, func(f *fixture) { f.drain(); f.forget("s0") }, true},
		{"receipt", screening.Transactional, screening.ModeTransactional, func(f *fixture) { f.forget("s0") }, false},
		{"receipt", screening.ByMode, screening.ModeTransactional, func(f *fixture) { f.forget("s0") }, false},
		{"quarantine", screening.Fold, screening.ModeFold, func(f *fixture) {
			_, err := f.db.Collection("study").UpdateOne(within(t), bson.M{"_id": "s0"}, bson.M{"$set": bson.M{"pending.0.epoch": int64(99)}})
			must(t, err)
			f.drain()
			f.forget("s0")
		}, true},
	} {
		t.Run(c.path.String()+" "+c.known, func(t *testing.T) {
			f := begin(t)
			f.t = t
			if c.mode != screening.ModeOff {
				f.mode(c.mode)
			}
			d := decision("s0", "r", true)
			d.Operation = bson.NewObjectID()
			_, err := f.admin.Save(within(t), c.path, d)
			must(t, err)
			c.hide(f)
			before := f.study("s0").Version
			d.Include, d.Resubmission = false, c.again
			_, err = f.admin.Save(within(t), c.path, d)
			if !errors.Is(err, screening.ErrDuplicate) {
				t.Fatalf("got %v", err)
			}
			if s := f.study("s0"); s.Version != before || !s.Decisions[0].Include {
				t.Errorf("the duplicate changed the study: %+v", s)
			}
		})
	}
}

// TestAFoldCannotHideADuplicate has a fold move the operation's entry from the study,
// where the retry has not looked yet, to the receipts, where it has (F4).
func TestAFoldCannotHideADuplicate(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	rival := f.rival(screening.Options{})
	d := decision("s0", "r", true)
	d.Operation = bson.NewObjectID()
	var mu sync.Mutex
	finds, studies := 0, 0
	looked := make(chan struct{})
	f.seen.answered(func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if name != "find" {
			return
		}
		// Three of the first attempt; then four of the retry, but its study.
		if finds++; finds == 7 {
			close(looked)
		}
	})
	f.seen.watch(func(line string) {
		if line != "find study" {
			return
		}
		mu.Lock()
		studies++
		n := studies
		mu.Unlock()
		if n != 2 {
			return
		}
		select {
		case <-looked:
		case <-time.After(20 * time.Second):
			t.Error("the retry does not read concurrently")
		}
		if got, err := rival.Drain(within(t), project); err != nil || got.Entries != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		f.forgetAside("s0")
	})
	s := f.open(screening.Options{Hooks: between(func(screening.Attempt) {
		_, err := rival.Save(within(t), screening.Fold, d)
		must(t, err)
	}, 1)})
	if _, err := s.Save(within(t), screening.Fold, d); !errors.Is(err, screening.ErrDuplicate) {
		t.Errorf("got %v", err)
	}
	f.seen.watch(nil)
	f.seen.answered(nil)
	f.parity()
}

// TestAFoldCannotHideADuplicateFromAResubmission is the same for a first attempt.
func TestAFoldCannotHideADuplicateFromAResubmission(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	rival := f.rival(screening.Options{})
	d := decision("s0", "r", true)
	d.Operation, d.Resubmission = bson.NewObjectID(), true
	_, err := rival.Save(within(t), screening.Fold, d)
	must(t, err)
	var once sync.Once
	f.seen.watch(func(line string) {
		if line == "find study" { // whatever is read with it may have been read by now
			once.Do(func() {
				select {
				case <-time.After(50 * time.Millisecond):
				case <-t.Context().Done():
				}
				_, err := rival.Drain(within(t), project)
				must(t, err)
				f.forgetAside("s0")
			})
		}
	})
	if _, err := f.open(screening.Options{}).Save(within(t), screening.Fold, d); !errors.Is(err, screening.ErrDuplicate) {
		t.Errorf("got %v", err)
	}
	f.seen.watch(nil)
}

// forgetAside is forget on a client that is not watched.
func (f *fixture) forgetAside(study string) {
	c, _ := dial(f.t, uri)
	_, err := c.Database(f.db.Name()).Collection("study").UpdateOne(context.Background(), bson.M{"_id": study}, bson.M{"$set": bson.M{"recent": bson.A{}}})
	must(f.t, err)
}

func TestARetiredOperationIsRefused(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeTransactional)
	d := decision("s0", "r", true)
	d.Operation = bson.NewObjectIDFromTimestamp(time.Now().Add(-time.Hour))
	_, err := f.admin.Save(within(t), screening.Transactional, d)
	must(t, err)
	n, err := f.admin.RetireReceipts(within(t), project, time.Now().Add(-time.Minute))
	must(t, err)
	if n != 1 {
		t.Errorf("%d receipts retired, want 1", n)
	}
	f.forget("s0")
	for path, mode := range map[screening.SavePath]screening.Mode{screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold} {
		f.mode(mode)
		d.Resubmission, d.Include = true, false
		if _, err := f.admin.Save(within(t), path, d); !errors.Is(err, screening.ErrRetired) {
			t.Errorf("%v: got %v", path, err)
		}
	}
	d.Operation = bson.NewObjectID()
	_, err = f.admin.Save(within(t), screening.ByMode, d)
	must(t, err)
}
