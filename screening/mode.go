package screening

import (
	"context"
	"fmt"
)

// SetMode changes how a project's statistics are kept, while saves by ByMode go on. It
// returns when the whole fleet has followed: it waits for PreWriteDeadline +
// WriterGrace, and then brings the rows to where they belong (docs/screening.md section
// 11). Called again with the same mode it continues what was interrupted.
func (s *Store) SetMode(ctx context.Context, project string, to Mode) error {
	if to != ModeOff && to != ModeTransactional && to != ModeFold {
		return fmt.Errorf("screening: no such mode: %q", to)
	}
	var own *Transition
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		own, err = s.beginTransition(ctx, project, to)
		return err
	})
	if err != nil || own == nil {
		return err
	}
	if err := pause(ctx, s.o.PreWriteDeadline+s.o.WriterGrace); err != nil {
		return fmt.Errorf("%q is %s, but not everybody may know: %w; set the mode again", project, to, err)
	}
	if own.From != ModeOff {
		if _, err := s.Drain(ctx, project); err != nil {
			return err
		}
	}
	control, err := s.Control(ctx, project)
	if err != nil {
		return err
	}
	if own.From == ModeOff && own.same(control.Transition) {
		for _, f := range control.Families {
			if err := s.rebuild(ctx, project, f, own); err != nil {
				return err
			}
		}
	}
	return s.retry(ctx, func(ctx context.Context) error {
		control, err := s.Control(ctx, project)
		switch {
		case err != nil:
			return err
		case control.Transition == nil && control.Mode == to:
			return nil // somebody else has ended it
		case !own.same(control.Transition):
			return fmt.Errorf("%w: the mode of %q has been changed again meanwhile", ErrModeDisagrees, project)
		}
		control.Transition = nil
		control.Version++
		return s.transact(ctx, func(ctx context.Context) error { return swap(ctx, s.controls, []Control{control}, controlKey) })
	})
}

// beginTransition sets the mode and returns the transition to it, or nil when there is
// nothing to do.
func (s *Store) beginTransition(ctx context.Context, project string, to Mode) (*Transition, error) {
	control, err := s.Control(ctx, project)
	switch {
	case err != nil:
		return nil, err
	case control.Transition != nil && control.Transition.To == to:
		return control.Transition, nil
	case control.Transition != nil:
		return nil, fmt.Errorf("%w: %q is on its way to %s; let that end first", ErrModeDisagrees, project, control.Transition.To)
	case control.Mode == to:
		return nil, nil
	}
	from := control.Mode
	control.Mode = to
	control.Epoch++
	control.Version++
	control.Transition = &Transition{From: from, To: to, Epoch: control.Epoch, At: s.o.Now()}
	return control.Transition, s.transact(ctx, func(ctx context.Context) error {
		if err := swap(ctx, s.controls, []Control{control}, controlKey); err != nil {
			return err
		}
		return s.restate(ctx, control, func(g *guard) {
			g.Epoch = control.Epoch
			if from == ModeOff || to == ModeOff {
				g.State = Stale
			}
		})
	})
}

// restate changes all guards of a project inside a transaction.
func (s *Store) restate(ctx context.Context, control Control, edit func(*guard)) error {
	b := batch{project: control.Project}
	guards, err := list[guard](ctx, s.guards, in("_id", b.families(control.Families)))
	if err != nil {
		return blame(err, Interrupted)
	}
	for i := range guards {
		edit(&guards[i])
		guards[i].Version++
	}
	return swap(ctx, s.guards, guards, guardKey)
}
