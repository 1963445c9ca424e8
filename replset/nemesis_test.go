package replset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

const awake = "the primary sleeps and is cut off when it wakes"

// nemesis does harm to a set for a while, as a seed says.
type nemesis struct {
	set   *replset.Set
	rng   *rand.Rand
	only  []string // faults; nil is all
	fired map[string]int
}

// A fault is done, lasts, and is undone.
type fault struct {
	name  string
	least time.Duration // how long it lasts at least
	do    func(n *nemesis, ctx context.Context, p int) error
	undo  func(n *nemesis, p int) error
}

var faults = []fault{
	{"kill the primary", 100 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error { return n.set.Kill(p) }, (*nemesis).restart},
	{"kill a secondary", 20 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error { return n.set.Kill((p + 1) % 3) },
		func(n *nemesis, p int) error { return n.set.Restart((p + 1) % 3) }},
	{"kill all", 0, func(n *nemesis, _ context.Context, _ int) error { return n.set.KillAll() }, (*nemesis).restartAll},
	{"pause the primary", 250 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error { return n.set.Pause(p) },
		func(n *nemesis, p int) error { return n.set.Resume(p) }},
	{awake, 100 * time.Millisecond, (*nemesis).sleepAlone, (*nemesis).heal},
	{"pause a secondary", 20 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error { return n.set.Pause((p + 1) % 3) },
		func(n *nemesis, p int) error { return n.set.Resume((p + 1) % 3) }},
	{"partition the primary", 300 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error {
		return n.set.Partition([]int{p}, []int{(p + 1) % 3, (p + 2) % 3})
	}, (*nemesis).heal},
	{"partition all", 50 * time.Millisecond, func(n *nemesis, _ context.Context, _ int) error { return n.set.Partition() }, (*nemesis).heal},
	{"the primary is not heard", 200 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error {
		return errors.Join(n.set.Cut(p, (p+1)%3), n.set.Cut(p, (p+2)%3))
	}, (*nemesis).heal},
	{"the primary is deaf", 200 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error {
		return errors.Join(n.set.Cut((p+1)%3, p), n.set.Cut((p+2)%3, p))
	}, (*nemesis).heal},
	{"delay", 50 * time.Millisecond, func(n *nemesis, _ context.Context, p int) error {
		d := time.Duration(1+n.rng.IntN(15)) * time.Millisecond
		return errors.Join(n.set.Delay(p, (p+1)%3, d), n.set.Delay((p+2)%3, p, d))
	}, (*nemesis).heal},
	{"step down", 0, func(n *nemesis, ctx context.Context, _ int) error {
		err := n.set.StepDown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil // nobody could take over in that time
		}
		return err
	}, nil},
	{"answers that call for a retry", 20 * time.Millisecond, (*nemesis).retries, nil},
}

// retries makes the primary carry out writes and then say that it shuts down, so that
// clients send them again.
func (n *nemesis) retries(ctx context.Context, p int) error {
	c, err := mongo.Connect(options.Client().ApplyURI(n.set.MemberURI(p)).SetServerSelectionTimeout(time.Second))
	if err != nil {
		return err
	}
	defer c.Disconnect(context.Background())
	err = c.Database("admin").RunCommand(ctx, bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.M{"times": 10}},
		{Key: "data", Value: bson.M{
			"failCommands":      bson.A{"update", "findAndModify", "commitTransaction"},
			"writeConcernError": bson.M{"code": 91, "errmsg": "the nemesis says so"},
			"errorLabels":       bson.A{"RetryableWriteError"},
		}},
	}).Err()
	if err != nil && n.set.Primary() != p {
		return nil // it was gone by then
	}
	return err
}

// sleepAlone pauses the primary until another has been elected, and lets it go on where
// it hears of nothing: for an election timeout there are two.
func (n *nemesis) sleepAlone(ctx context.Context, p int) error {
	if err := errors.Join(n.set.Pause(p), n.set.Partition([]int{p}, []int{(p + 1) % 3, (p + 2) % 3})); err != nil {
		return err
	}
	for n.set.Primary() == p && ctx.Err() == nil {
		pause(ctx, time.Millisecond)
	}
	pause(ctx, 50*time.Millisecond) // writes on the new one
	return n.set.Resume(p)
}

func (n *nemesis) restart(p int) error { return n.set.Restart(p) }

// restartAll brings two back before the third, so that it is they who go on: what
// only the third has is gone.
func (n *nemesis) restartAll(p int) error {
	first := n.rng.IntN(3)
	for _, i := range []int{first, (first + 1) % 3} {
		if err := n.set.Restart(i); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := n.set.AwaitPrimary(ctx); err != nil {
		return err
	}
	return n.set.Restart((first + 2) % 3)
}

func (n *nemesis) heal(int) error { return n.set.Heal() }

// rage goes on until the time is over and enough has happened, and leaves a set that
// is whole.
func (n *nemesis) rage(ctx context.Context, d, wait time.Duration, enough func() bool) error {
	over := time.Now().Add(d)
	left := []fault(nil) // each kind comes up before any comes again
	for time.Now().Before(over) || !n.busy() || !enough() && time.Now().Before(over.Add(wait)) {
		found, cancel := context.WithTimeout(ctx, patience)
		p, err := n.set.AwaitPrimary(found)
		cancel()
		if err != nil {
			return err
		}
		if len(left) == 0 {
			left = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return n.only != nil && !slices.Contains(n.only, f.name) })
			n.rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		f := left[0]
		left = left[1:]
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		err = f.do(n, limit, p)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		n.fired[f.name]++
		pause(ctx, f.least+time.Duration(n.rng.IntN(60))*time.Millisecond)
		if f.undo != nil {
			if err := f.undo(n, p); err != nil {
				return fmt.Errorf("undoing %s: %w", f.name, err)
			}
		}
		pause(ctx, time.Duration(n.rng.IntN(60))*time.Millisecond)
	}
	return nil
}

// busy says whether faults enough have fired to mean something.
func (n *nemesis) busy() bool {
	if n.only != nil {
		return len(n.fired) == len(n.only)
	}
	return len(n.fired) >= 3
}

func (n *nemesis) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(n.fired)) {
		out = append(out, fmt.Sprintf("%d× %s", n.fired[name], name))
	}
	return fmt.Sprint(out)
}

// pause lets the set and its clients run.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
