package screening_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// lifeline is the network of one client, which can be cut for good: before a command
// is sent, or when it has been sent and its answer has not come.
type lifeline struct {
	mu       sync.Mutex
	cut      bool // nothing goes out any more
	deaf     bool // nothing comes in any more
	conns    []net.Conn
	commands int
	at       int  // the command to die at, from 1
	after    bool // it is sent
	died     chan struct{}
	seen     *recorder
}

func (l *lifeline) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut || l.deaf {
		return nil, errors.New("this client is dead")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.conns = append(l.conns, c)
	return &line{Conn: c, l: l}, nil
}

func (l *lifeline) command(string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commands++; l.commands != l.at {
		return
	}
	if l.after {
		l.deaf = true // and dies when an answer comes
		return
	}
	l.cut = true
	close(l.died)
}

func (l *lifeline) dead() bool {
	select {
	case <-l.died:
		return true
	default:
		return false
	}
}

type line struct {
	net.Conn
	l *lifeline
}

func (c *line) Write(b []byte) (int, error) {
	c.l.mu.Lock()
	cut := c.l.cut
	c.l.mu.Unlock()
	if cut {
		c.Close()
		return 0, errors.New("dead")
	}
	return c.Conn.Write(b)
}

func (c *line) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.l.mu.Lock()
	deaf := c.l.deaf
	if deaf && !c.l.cut {
		c.l.cut = true // whatever it did next would not be of a process that is gone
		close(c.l.died)
	}
	c.l.mu.Unlock()
	if deaf {
		c.Close()
		return 0, errors.New("dead")
	}
	return n, err
}

// mortal is a store whose process dies at the command numbered.
func mortal(t *testing.T, uri, db string, at int, after bool, o screening.Options) (*screening.Store, *lifeline) {
	t.Helper()
	seen := &recorder{}
	l := &lifeline{at: at, after: after, died: make(chan struct{}), seen: seen}
	seen.watch(l.command)
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetMonitor(seen.monitor()).SetDialer(l).SetServerSelectionTimeout(5 * time.Second).SetRetryWrites(false).SetRetryReads(false))
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	s, err := screening.Open(t.Context(), c.Database(db), o)
	must(t, err)
	return s, l
}

// long says whether a process also dies before its command is sent. That differs from
// dying after the one before was sent only in that the answer came.
func long() bool { return os.Getenv("ASSAY_LONG") != "" }

// small is a set of its own for processes that die.
func small(t *testing.T) string {
	t.Helper()
	return replset.Start(t, replset.Options{Members: 1, NoSync: true, TransactionLifetime: 10 * time.Second}).URI()
}

// bury ends the transactions of the dead, as the server would when their lifetime is
// over.
func (f *fixture) bury(l *lifeline) {
	f.t.Helper()
	l.seen.mu.Lock()
	sessions := slices.Clone(l.seen.sessions)
	l.seen.mu.Unlock()
	if len(sessions) > 0 {
		must(f.t, f.db.Client().Database("admin").RunCommand(within(f.t), bson.D{{Key: "killSessions", Value: sessions}}).Err())
	}
}

// TestTheWorkerSurvivesAKillAtAnyCommand kills a worker at each of its commands in
// turn, and has a fresh one go on.
func TestTheWorkerSurvivesAKillAtAnyCommand(t *testing.T) {
	t.Parallel()
	uri := small(t)
	f := beginOn(t, uri)
	f.mode(screening.ModeFold)
	saved, kills := 0, 0
	survived := map[bool]bool{false: !long()}
	for at := 1; !survived[false] || !survived[true]; at++ {
		for _, after := range []bool{false, true} {
			if survived[after] {
				continue
			}
			kills++
			for i := range 3 {
				dec := decision(fmt.Sprint("s", i), fmt.Sprint("r", kills), (at+i)%2 == 0)
				dec.Session = &screening.Session{ID: "n"}
				out, err := f.admin.Save(within(t), screening.Fold, dec)
				must(t, err)
				saved += out.Entries
			}
			doomed, l := mortal(t, uri, f.db.Name(), at, after, screening.Options{})
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			done := make(chan error, 1)
			go func() {
				_, err := doomed.Drain(ctx, project)
				done <- err
			}()
			select {
			case <-l.died: // what it still tries, nobody hears
			case err := <-done:
				survived[after] = err == nil && !l.dead()
			}
			cancel()
			f.bury(l)
			f.drain()
			if p := f.parity(); p.Pending != 0 || p.Receipts != int64(saved) || p.Operations != int64(saved) {
				t.Fatalf("killed at command %d, sent %v: %d pending, %d receipts and %d operations for %d entries", at, after, p.Pending, p.Receipts, p.Operations, saved)
			}
		}
		if at > 100 {
			t.Fatal("a drain of three studies has no end")
		}
	}
}

func TestAnEntryThatCannotBeFoldedIsQuarantined(t *testing.T) {
	for name, spoil := range map[string]bson.M{
		"unknown epoch":     {"pending.0.epoch": int64(99)},
		"unknown namespace": {"pending.0.ns": "unheard"},
		"unknown family":    {"pending.0.moves.0.family": "Unheard"},
		"cannot be read":    {"pending.0": bson.M{"note": 7, "moves": "none"}},
		"incomplete":        {"pending.0.moves": bson.A{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, tally.ProjectScreening, tally.MembershipScreening)
			f.mode(screening.ModeFold)
			_, err := f.admin.Save(within(t), screening.Fold, decision("s0", "r", true))
			must(t, err)
			_, err = f.admin.Save(within(t), screening.Fold, decision("s1", "r", true))
			must(t, err)
			_, err = f.db.Collection("study").UpdateOne(within(t), bson.M{"_id": "s0"}, bson.M{"$set": spoil})
			must(t, err)
			before, err := f.admin.Read(within(t), project, tally.ProjectScreening)
			must(t, err)
			if before.Exact {
				t.Error("a read over an entry that cannot be folded calls itself exact")
			}
			if d := f.drain(); d.Entries != 1 || d.Quarantined != 1 {
				t.Fatalf("%+v", d)
			}
			q, err := f.admin.Quarantine(within(t), project)
			must(t, err)
			if len(q) != 1 || q[0].Study != "s0" || !strings.Contains(q[0].Reason, strings.Fields(name)[len(strings.Fields(name))-1]) || len(q[0].Entry) == 0 {
				t.Fatalf("quarantine has %+v", q)
			}
			v, err := f.admin.Read(within(t), project, tally.ProjectScreening)
			must(t, err)
			if v.Exact || v.Quarantined != 1 {
				t.Errorf("%+v", v)
			}
			p, err := f.admin.Parity(within(t), project)
			must(t, err)
			if len(p.Faults) == 0 {
				t.Error("parity does not see it")
			}
			for _, fam := range []tally.Family{tally.ProjectScreening, tally.MembershipScreening} {
				must(t, f.admin.Rebuild(within(t), project, fam))
			}
			f.parity()
			if q, err = f.admin.Quarantine(within(t), project); err != nil || len(q) != 1 || len(q[0].Settled) == 0 {
				t.Errorf("after the rebuild quarantine has %+v, %v", q, err)
			}
		})
	}
}

func TestACorruptRowIsRefused(t *testing.T) {
	for path, mode := range map[screening.SavePath]screening.Mode{screening.Transactional: screening.ModeTransactional, screening.Fold: screening.ModeFold} {
		t.Run(path.String(), func(t *testing.T) {
			f := begin(t)
			f.mode(mode)
			save := func(reviewer string) {
				t.Helper()
				_, err := f.admin.Save(within(t), path, decision("s0", reviewer, true))
				must(t, err)
				f.drain()
			}
			save("a")
			_, err := f.db.Collection("statisticsCurrent").UpdateOne(within(t), bson.M{"family": tally.ProjectScreening}, bson.M{"$inc": bson.M{"counters.includes": int64(1)}})
			must(t, err)
			if _, err := f.admin.Read(within(t), project, tally.ProjectScreening); !errors.Is(err, screening.ErrCorrupt) {
				t.Errorf("read: %v", err)
			}
			save("b") // the decision is not held up by it
			if _, err := f.admin.Read(within(t), project, tally.ProjectScreening); !errors.Is(err, screening.ErrCorrupt) {
				t.Errorf("read after a save: %v", err)
			}
			v, err := f.admin.Read(within(t), project, tally.MembershipScreening)
			if err != nil || !v.Exact || len(v.Rows) != 2 {
				t.Errorf("the family beside it: %+v, %v", v, err)
			}
			if p, err := f.admin.Parity(within(t), project); err != nil || len(p.Faults) == 0 {
				t.Errorf("parity does not see it: %v", err)
			}
			must(t, f.admin.Rebuild(within(t), project, tally.ProjectScreening))
			save("c")
			f.parity()
		})
	}
}

func TestTwoWorkersFoldEachEntryOnce(t *testing.T) {
	f := begin(t)
	f.mode(screening.ModeFold)
	ctx := within(t)
	saved := 0
	for i := range 40 {
		out, err := f.admin.Save(ctx, screening.Fold, decision(fmt.Sprint("s", i%10), fmt.Sprint("r", i), i%3 == 0))
		must(t, err)
		saved += out.Entries
	}
	var wg sync.WaitGroup
	folded := make([]int, 3)
	for i := range folded {
		w := f.rival(screening.Options{})
		wg.Go(func() {
			d, err := w.Drain(ctx, project)
			if err != nil {
				t.Error(err)
			}
			folded[i] = d.Entries
		})
	}
	wg.Wait()
	if sum := folded[0] + folded[1] + folded[2]; sum != saved {
		t.Errorf("%v entries folded, %d saved", folded, saved)
	}
	if p := f.parity(); p.Receipts != int64(saved) || p.Pending != 0 {
		t.Errorf("%+v", p)
	}
}

func TestABadWorkerIsFound(t *testing.T) {
	for _, d := range []defect.Defect{defect.LostDelta(), defect.DoubleApply()} {
		f := begin(t)
		f.mode(screening.ModeFold)
		_, err := f.admin.Save(within(t), screening.Fold, decision("s0", "r", true))
		must(t, err)
		_, err = f.rival(screening.Options{Defect: d}).Drain(within(t), project)
		must(t, err)
		p, err := f.admin.Parity(within(t), project)
		must(t, err)
		if p.Receipts != 1 || p.Pending != 0 || !slices.ContainsFunc(p.Faults, func(s string) bool { return strings.Contains(s, "the recount") }) {
			t.Errorf("%v: %+v", d, p)
		}
	}
}
