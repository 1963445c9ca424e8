package replset

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// local is a member in this process.
type local struct {
	config   member.Config // with the faults of its next start
	onChange func()
	fs       vfs.FS
	crash    *vfs.MemFS // fs, where a kill loses what was not synced

	current atomic.Pointer[member.Member] // nil while it is down
}

func newLocal(c member.Config, o *Options, onChange func()) *local {
	l := &local{config: c, onChange: onChange}
	switch {
	case o.LoseUnsynced:
		l.crash = vfs.NewCrashableMem()
		l.fs = l.crash
	case o.Dir == "":
		l.fs = vfs.NewMem()
	default:
		l.fs = vfs.Default
	}
	if l.fs != vfs.Default {
		l.config.SegmentBytes = memorySegment
	}
	if o.hooks.disk != nil {
		l.fs = o.hooks.disk(c.Index, l.fs)
	}
	return l
}

// memorySegment is the size of the log's files in memory, where a large one saves nothing.
const memorySegment = 256 << 10

func (l *local) start() error {
	if l.fs == vfs.Default {
		if err := os.MkdirAll(l.config.Dir, 0o755); err != nil {
			return err
		}
	}
	m, err := member.Start(l.config, l.fs, l.onChange)
	if err != nil {
		return err
	}
	l.current.Store(m)
	l.onChange()
	return nil
}

func (l *local) mute() error {
	l.current.Load().Mute()
	return nil
}

func (l *local) kill() error {
	m := l.current.Swap(nil)
	var left *vfs.MemFS
	if l.crash != nil {
		// The moment of death. Nothing was heard of the member since it was muted, so
		// that what anybody was told is older; what it had under way is caught in the
		// middle of it.
		left = l.crash.CrashClone(vfs.CrashCloneCfg{})
	}
	err := m.Close()
	if left != nil {
		l.crash, l.fs = left, left
	}
	return err
}

func (l *local) close() error {
	if m := l.current.Swap(nil); m != nil {
		return m.Close()
	}
	return nil
}

func (l *local) pause() error  { return l.current.Load().Pause() }
func (l *local) resume() error { return l.current.Load().Resume() }

func (l *local) role() (server.Role, bool) {
	if m := l.current.Load(); m != nil {
		return m.Role(), true
	}
	return server.Role{Primary: -1}, false
}

func (l *local) err() error {
	if m := l.current.Load(); m != nil {
		return m.Err()
	}
	return nil
}

// running calls f with the member, if it runs.
func (l *local) running(f func(*member.Member) error) error {
	if m := l.current.Load(); m != nil {
		return f(m)
	}
	return errDown
}

func (l *local) stepDown(ctx context.Context) error {
	return l.running(func(m *member.Member) error { return m.StepDown(ctx) })
}

func (l *local) stepUp(ctx context.Context) error {
	return l.running(func(m *member.Member) error { return m.StepUp(ctx) })
}

func (l *local) clean(ctx context.Context) error {
	return l.running(func(m *member.Member) error { return m.Clean(ctx) })
}

func (l *local) check(ctx context.Context) (faults []string, err error) {
	err = l.running(func(m *member.Member) error {
		faults, err = m.Check(ctx)
		return err
	})
	return faults, err
}

func (l *local) setFaults(f member.Faults) error {
	l.config.Faults = f
	if m := l.current.Load(); m != nil {
		m.SetFaults(f)
	}
	return nil
}

func (l *local) pid() int          { return 0 }
func (l *local) peakMemory() int64 { return 0 }
