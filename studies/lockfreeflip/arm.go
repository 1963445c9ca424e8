package lockfreeflip

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/lab/trial"
)

// store is what a round drives. Tests put defective ones in an arm's place.
type store interface {
	Insert(key string) (added bool, err error)
	Get(key string) (val []byte, found bool, err error)
	Checkpoint() (artrie.CheckpointStats, error)
	EvictPrefix(prefix string) (subtrees int, err error)
	Stats() artrie.Stats
	Close() error
}

// defect is what a planted arm does differently: how it sees the file system
// above the one that loses power, and what it puts around the store. The zero
// defect is none, and all that this program has; planted ones are in its tests.
type defect struct {
	fs   func(fsys.FS) fsys.FS
	wrap func(store) store
}

// run is one trial: lay the content down, drive the round, cut the power at its
// end, judge what is left.
func run(ctx context.Context, t *trial.T, d defect) error {
	p, err := readPlan(t.Env, t.Factors)
	if err != nil {
		return err
	}
	dir := filepath.Join(t.Scratch, "store")
	begin, err := layDown(t.ArmDir, dir, p.start, p.cold)
	if err != nil {
		return err
	}
	t.Record("start_digest", begin.number())

	disk := newPower()
	p.options.FS = disk
	if d.fs != nil {
		p.options.FS = d.fs(disk)
	}
	trie, err := artrie.Open(dir, &p.options)
	if err != nil {
		return err
	}
	if err := warm(trie, begin, p.options.MemoryBudget > 0); err != nil {
		return errors.Join(err, trie.Close())
	}
	var s store = trie
	if d.wrap != nil {
		s = d.wrap(s)
	}
	r := newRound(p, s, disk)
	if err := r.run(ctx, t, dir); err != nil {
		return errors.Join(err, trie.Close())
	}
	t.Report(r.readsExact())
	at := r.places()
	t.Report(r.acknowledgedIsDurable(at))
	t.Report(r.seenIsDurable(at))
	t.Report(r.syncsPerWrite())
	t.Report(r.regimeHeld())
	// The power is off: it cannot end well, and has nothing left to write.
	_ = trie.Close()
	if err := disk.settle(); err != nil {
		return err
	}
	t.Report(r.reopensExactly(dir, begin))
	return nil
}

// warm brings the whole start content into memory, as a store that has run for
// a while has it.
func warm(t *artrie.Trie, s *start, budget bool) error {
	if s.Digest == "" {
		return nil
	}
	n := 0
	var err error
	if budget {
		// A scan would leave cold subtrees where they are.
		s.each(func(key string, _ int) {
			_, found, e := t.Get(key)
			err = errors.Join(err, e)
			if found {
				n++
			}
		})
	} else {
		for range t.All() {
			n++
		}
		err = t.Err()
	}
	if err == nil && n != s.Set.Entries {
		err = fmt.Errorf("the start content has %d keys, not %d", n, s.Set.Entries)
	}
	return err
}
