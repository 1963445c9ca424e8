package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/assaylab/assay/artrie"
	"golang.org/x/sys/unix"
)

// Folders that are made once and copied for each measurement that changes them: a
// large tree in a checkpoint, the same by a store that has a memory budget, and the
// same operations in a log alone.
const prepared, preparedBudget, preparedLog = "prepared", "prepared-budget", "prepared-log"

func prepareSection() section {
	return section{name: "prepare", arms: []arm{
		{name: prepared, run: func(c config) (figures, error) { return prepare(c, prepared, true, 0) }},
		{name: preparedBudget, run: func(c config) (figures, error) { return prepare(c, preparedBudget, true, 1<<40) }},
		{name: preparedLog, run: func(c config) (figures, error) { return prepare(c, preparedLog, false, 0) }},
	}}
}

func prepare(c config, name string, checkpoint bool, budget int64) (figures, error) {
	t, err := filled(filepath.Join(c.Dir, name), c.Keys, budget)
	if err != nil {
		return nil, err
	}
	if checkpoint {
		if _, err = t.Checkpoint(); err == nil {
			_, err = t.Checkpoint()
		}
	}
	return figures{}, errors.Join(err, t.Close())
}

// filled is a new store with so many keys, of which nothing is in a checkpoint.
func filled(dir string, keys int, budget int64) (*artrie.Trie, error) {
	t, err := artrie.Open(dir, &artrie.Options{Durability: artrie.None, CheckpointBytes: -1, MemoryBudget: budget})
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if _, err := t.Insert(key(i)); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// onCopy measures on a copy of a prepared folder.
func onCopy(c config, name string, f func(dir string) (figures, error)) (figures, error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	dir = filepath.Join(dir, "db")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.Dir, name))); err != nil {
		return nil, err
	}
	unix.Sync()
	return f(dir)
}

// uncache has the kernel forget what it has read of a folder.
func uncache(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkpointSection compares a checkpoint after few changes with a full one.
func checkpointSection() section {
	return section{
		name: "checkpoint",
		arms: []arm{{name: "artrie", run: measureCheckpoint}},
		rows: func(r results) []row {
			return []row{
				atMost("bytes", 2, r.med("artrie", "part-bytes"), "bytes after 1,000 changes, % of a full checkpoint", "full: %.1f bytes per key", r.med("artrie", "full-bytes")),
				atMost("time", 2, r.med("artrie", "part-time"), "time of it, % of a full checkpoint's", "full %.0f ms, part %.1f ms", 1e3*r.med("artrie", "full"), 1e3*r.med("artrie", "part")),
			}
		},
	}
}

// measureCheckpoint changes 1,000 keys at a time: half are new, a quarter gets
// another value, a quarter goes.
func measureCheckpoint(c config) (f figures, err error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	t, err := filled(dir, c.Keys, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	full, err := t.Checkpoint()
	if err != nil {
		return nil, err
	}
	f = figures{"full": full.Elapsed.Seconds(), "full-bytes": float64(full.Bytes) / float64(c.Keys)}
	var took, wrote []float64
	for n := range 7 {
		for i := range 1000 {
			at := n*1000 + i
			switch known := key(int(mix(uint64(at)) % uint64(c.Keys))); i % 4 {
			case 0:
				err = t.Put(known, []byte("changed"))
			case 1:
				_, err = t.Delete(known)
			default:
				_, err = t.Insert(key(c.Keys + at))
			}
			if err != nil {
				return nil, err
			}
		}
		part, err := t.Checkpoint()
		if err != nil {
			return nil, err
		}
		took = append(took, part.Elapsed.Seconds())
		wrote = append(wrote, float64(part.Bytes))
	}
	f["part"] = median(took)
	f["part-time"] = 100 * f["part"] / full.Elapsed.Seconds()
	f["part-bytes"] = 100 * median(wrote) / float64(full.Bytes)
	return f, nil
}

// recoverySection opens stores that were closed long ago.
func recoverySection() section {
	return section{
		name: "recovery",
		arms: []arm{
			{name: "log", run: func(c config) (figures, error) {
				return onCopy(c, preparedLog, func(dir string) (figures, error) { return reopen(c, dir) })
			}},
			{name: "checkpoint", run: func(c config) (figures, error) {
				return onCopy(c, prepared, func(dir string) (figures, error) { return reopen(c, dir) })
			}},
		},
		rows: func(r results) []row {
			return []row{
				atLeast("replay", 1e6, r.med("log", "records"), "records of the log per second", "open %.0f ms, nothing in the page cache", 1e3*r.med("log", "open")),
				atMost("open", 300, 1e3*r.med("checkpoint", "open"), "ms from Open to the first answer, from a checkpoint", "nothing in the page cache"),
			}
		},
	}
}

func reopen(c config, dir string) (f figures, err error) {
	if err := uncache(dir); err != nil {
		return nil, err
	}
	start := time.Now()
	t, err := artrie.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if _, ok, err := t.Get(key(0)); !ok || err != nil {
		return nil, fmt.Errorf("the first key: %v, %v", ok, err)
	}
	took := time.Since(start).Seconds()
	return figures{"open": took, "records": float64(t.Stats().Replayed) / took}, nil
}

// keyBytes is about what a key of the workload takes in memory; budgets are parts of it.
const keyBytes = 52

// evictionSection: uniform reads and durable writes with a part of the tree in memory.
func evictionSection() section {
	s := section{name: "eviction", arms: []arm{syncArm()}}
	for _, part := range []int64{1, 3, 10} {
		s.arms = append(s.arms, arm{
			name: fmt.Sprintf("1of%d", part),
			run: func(c config) (figures, error) {
				return onCopy(c, preparedBudget, func(dir string) (figures, error) { return measureEviction(c, dir, part) })
			},
		})
	}
	s.rows = func(r results) []row {
		const mib = 1 << 20
		t := func(a string) string {
			return fmt.Sprintf("%s: %.0f MiB, %.0f writes/s, %.0f reads/s, %.2f faults per read, %.1f µs of processor per read", a,
				r.med(a, "peak")/mib, r.med(a, "ops"), r.med(a, "reads"), r.med(a, "misses"), 1e6*r.med(a, "cpu"))
		}
		return []row{
			atMost("memory", 0.45, r.ratio("1of3", "1of1", "peak"), "peak resident size, budget a third, to all in memory", "%s; %s", t("1of3"), t("1of1")),
			atLeast("writes", 0.7, r.ratio("1of3", "1of1", "ops"), "durable writes/s, the same", "S %.0f µs", 1e6*r.med("S", "p50")),
			info("tenth-memory", r.ratio("1of10", "1of1", "peak"), "peak resident size, budget a tenth", "%s", t("1of10")),
			info("tenth-writes", r.ratio("1of10", "1of1", "ops"), "durable writes/s, the same", ""),
			atMost("budget", 1.05, max(r.med("1of3", "counted"), r.med("1of10", "counted")), "nodes in memory against the budget, highest sample", ""),
		}
	}
	return s
}
