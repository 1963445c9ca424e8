package consensus

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAnEntryBelongsToTheTermItWasMadeIn(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.leader()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	term := lead.node.Role().Term
	p, err := lead.node.Begin(ctx, term+1, []byte("of a later term"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(ctx); !errors.Is(err, ErrNotLeader) {
		t.Errorf("an entry of another term gave %v", err)
	}
	if p, err = lead.node.Begin(ctx, term, []byte("now")); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(ctx)
	end()
	if _, _, err := p.Wait(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("waiting without time gave %v", err)
	} else if err == nil {
		return // it was applied already
	}
	if _, _, err := p.Wait(ctx); err != nil {
		t.Errorf("waiting again gave %v", err)
	}
}

func TestCopiesAreCounted(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.leader()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	e, _, err := lead.node.Propose(ctx, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := lead.node.Replicated(ctx, e.Index, 3); err != nil {
		t.Fatal(err)
	}
	var other *member
	for _, m := range c.members {
		if m != lead {
			other = m
		}
	}
	c.stop(other)
	if e, _, err = lead.node.Propose(ctx, []byte("y")); err != nil {
		t.Fatal(err)
	}
	short, end := context.WithTimeout(ctx, 30*time.Millisecond)
	defer end()
	if err := lead.node.Replicated(short, e.Index, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third copy that is not there gave %v", err)
	}
}

func TestAPausedLeaderIsReplacedAndFollows(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.leader()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resume := make(chan struct{})
	lead.link.Pause(true)
	if err := lead.node.Pause(ctx, resume); err != nil {
		t.Fatal(err)
	}
	until(t, "another leader", func() bool {
		for _, m := range c.members {
			if r := m.node.Role(); m != lead && r.Leader == m.id && r.Ready {
				return true
			}
		}
		return false
	})
	if r := lead.node.Role(); r.Leader != lead.id {
		t.Error("a leader that stands still noticed that time goes by")
	}
	close(resume)
	lead.link.Pause(false)
	until(t, "the old leader to follow", func() bool {
		r := lead.node.Role()
		return r.Leader != 0 && r.Leader != lead.id
	})
}
