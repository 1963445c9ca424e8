package replset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// RunMember runs one member of a set whose Options.Command has started this program.
// It reads what the set says on stdin and answers on stdout, to which nobody else may
// write. It returns when stdin or ctx ends, nil then; so a member does not outlive
// its set.
func RunMember(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	orders := json.NewDecoder(stdin)
	var c member.Config
	if err := orders.Decode(&c); err != nil {
		return fmt.Errorf("replset: a member is started by its set, which gives it its configuration on standard input: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ch := &child{out: &lines{w: stdout}, changed: member.NewEvent(), cancels: map[int]context.CancelFunc{}}
	var err error
	if err = os.MkdirAll(c.Dir, 0o755); err == nil {
		ch.m, err = member.Start(c, vfs.Default, ch.changed.Fire)
	}
	if err != nil {
		return errors.Join(err, ch.out.send(report{Failed: err.Error()}))
	}
	ch.group.Go(func() { ch.tell(ctx) })
	// Not waited for: it may be in a Read that never ends.
	go func() {
		defer cancel()
		for {
			var o order
			if orders.Decode(&o) != nil {
				return
			}
			ch.obey(ctx, o)
		}
	}()
	<-ctx.Done()
	err = ch.m.Close()
	ch.group.Wait()
	return err
}

// child is a member as its set sees it through the pipes.
type child struct {
	m       *member.Member
	out     *lines
	changed *member.Event
	group   sync.WaitGroup

	mu      sync.Mutex
	cancels map[int]context.CancelFunc
}

// tell reports the member's role now and whenever it has changed, in a goroutine of
// its own, so that a set that does not read holds up nobody.
func (ch *child) tell(ctx context.Context) {
	for {
		changed := ch.changed.Next()
		role := ch.m.Role()
		r := report{Role: &role}
		if err := ch.m.Err(); err != nil {
			r.Failed = err.Error()
		}
		if ch.out.send(r) != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (ch *child) obey(ctx context.Context, o order) {
	switch o.Do {
	case doFaults:
		if o.Faults != nil {
			ch.m.SetFaults(*o.Faults)
		}
		_ = ch.out.send(report{ID: o.ID})
		return
	case doCancel:
		ch.mu.Lock()
		if cancel := ch.cancels[o.Instead]; cancel != nil {
			cancel()
		}
		ch.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if o.Within > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.Within)
	}
	ch.mu.Lock()
	ch.cancels[o.ID] = cancel
	ch.mu.Unlock()
	ch.group.Go(func() {
		defer func() {
			ch.mu.Lock()
			delete(ch.cancels, o.ID)
			ch.mu.Unlock()
			cancel()
		}()
		r := report{ID: o.ID}
		err := ch.carryOut(ctx, o.Do, &r)
		if err != nil {
			r.Error, r.NotLeader, r.TooLate = err.Error(), errors.Is(err, server.ErrNotLeader), errors.Is(err, context.DeadlineExceeded)
		}
		_ = ch.out.send(r)
	})
}

func (ch *child) carryOut(ctx context.Context, do verb, r *report) (err error) {
	switch do {
	case doStepDown:
		return ch.m.StepDown(ctx)
	case doStepUp:
		return ch.m.StepUp(ctx)
	case doClean:
		return ch.m.Clean(ctx)
	case doCheck:
		r.Found, err = ch.m.Check(ctx)
		return err
	}
	return fmt.Errorf("a member does not know the order %q; are set and member of the same version?", do)
}
