package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie"
	"golang.org/x/sys/unix"
)

// writers is the number of concurrent writers of every durable run.
const writers = 8

// load is what runs beside the writers.
type load struct {
	ops, first int           // how many writes, and the number of their first key
	limit      time.Duration // no write begins after it
	readers    int
	paced      bool          // readers rest for 100 µs after 64 gets
	every      time.Duration // rest between two checkpoints; 0: none
}

// run writes and reads until the load is done, and says how it went, in seconds.
func (l load) run(put func(key string) error, get func(key string) error, checkpoint func() error) (figures, error) {
	per := l.ops / writers
	keys := make([][]string, writers)
	for w := range keys {
		for i := range per {
			keys[w] = append(keys[w], key(l.first+w*per+i))
		}
	}
	runtime.GC()
	var stop atomic.Bool
	var background, busy sync.WaitGroup
	var reads atomic.Int64
	errs := make(chan error, writers+l.readers+1)
	for r := range l.readers {
		background.Go(func() {
			b := make([]byte, 0, keyRoom)
			for x := uint64(r); !stop.Load(); {
				for range 64 {
					x = mix(x)
					b = appendKey(b[:0], int(x%uint64(l.first+l.ops)))
					if err := get(bytesString(b)); err != nil {
						errs <- err
						return
					}
				}
				reads.Add(64)
				if l.paced {
					time.Sleep(100 * time.Microsecond)
				}
			}
		})
	}
	if l.every > 0 {
		background.Go(func() {
			for !stop.Load() {
				if err := checkpoint(); err != nil {
					errs <- err
					return
				}
				time.Sleep(l.every)
			}
		})
	}
	took := make([][]float64, writers)
	start := time.Now()
	for w := range writers {
		took[w] = make([]float64, 0, per)
		busy.Go(func() {
			for _, k := range keys[w] {
				begin := time.Now()
				if begin.Sub(start) > l.limit {
					return
				}
				if err := put(k); err != nil {
					errs <- err
					return
				}
				took[w] = append(took[w], time.Since(begin).Seconds())
			}
		})
	}
	busy.Wait()
	wall := time.Since(start).Seconds()
	stop.Store(true)
	background.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	return figures{
		"ops": float64(len(all)) / wall, "p50": all[len(all)/2], "p999": all[len(all)*999/1000],
		"reads": float64(reads.Load()) / wall,
	}, nil
}

// scratch is a new folder of this process and the function that removes it.
func scratch(c config) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(c.Dir, "arm-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// singleSync measures S: one writer, small writes into a file that is full of zeros.
func singleSync(c config) (figures, error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n := min(c.Ops/8, 1000)
	if _, err := f.Write(make([]byte, n*128)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	var took []float64
	for i := range n {
		begin := time.Now()
		if _, err := f.WriteAt([]byte(strings.Repeat("x", 72)), int64(i)*72); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	return figures{"p50": median(took)}, nil
}

func syncArm() arm { return arm{name: "S", run: singleSync} }

// peersSection: eight writers and nothing else, against the stores that one would pick.
func peersSection() section {
	s := section{name: "peers", arms: []arm{syncArm(), {name: "artrie", run: func(c config) (figures, error) {
		return durable(c, artrie.Options{}, load{ops: c.Ops})
	}}}}
	for _, p := range peers() {
		s.arms = append(s.arms, arm{name: p.name, run: func(c config) (figures, error) { return p.measure(c) }})
	}
	s.rows = func(r results) []row {
		best, text := "", ""
		for _, p := range peers() {
			if best == "" || r.med(p.name, "ops") > r.med(best, "ops") {
				best = p.name
			}
			text += fmt.Sprintf(", %s %.0f", p.name, r.med(p.name, "ops"))
		}
		var limit []float64
		for i, f := range r["artrie"] {
			limit = append(limit, f["ops"]*r["S"][i]["p50"]/writers)
		}
		return []row{
			atLeast("best", 2, r.ratio("artrie", best, "ops"), "writes/s, Group, against the best peer, "+best, "%.0f/s%s", r.med("artrie", "ops"), text),
			atLeast("limit", 0.75, median(limit), "writes/s, Group, against 8 / S", "S %.0f µs", 1e6*r.med("S", "p50")),
			atMost("p50", 1.2, r.syncs("artrie", "p50"), "p50 in S", "%.0f µs", 1e6*r.med("artrie", "p50")),
			atMost("p999", 20, r.syncs("artrie", "p999"), "p99.9 in S", "%.0f µs", 1e6*r.med("artrie", "p999")),
		}
	}
	return s
}

// durable measures a store in an empty folder.
func durable(c config, opt artrie.Options, l load) (figures, error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	return durableIn(c, dir, opt, l)
}

func durableIn(c config, dir string, opt artrie.Options, l load) (f figures, err error) {
	t, err := artrie.Open(dir, &opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	// A store in memory and not in part on disk, as after its first minutes.
	if opt.MemoryBudget == 0 {
		for range t.All() {
		}
	}
	unix.Sync()
	if l.limit = c.Limit; l.readers > 0 && l.every == 0 {
		l.every = 20 * time.Millisecond
	}
	before := t.Stats()
	f, err = l.run(
		func(k string) error { _, err := t.Insert(k); return err },
		func(k string) error { _, _, err := t.Get(k); return err },
		func() error { _, err := t.Checkpoint(); return err })
	if err != nil {
		return nil, err
	}
	st := t.Stats()
	writes := float64(st.Writes - before.Writes)
	f["syncs"] = float64(st.CommitSyncs-before.CommitSyncs) / writes
	f["checkpoints"] = float64(st.Checkpoints - before.Checkpoints)
	f["faults"] = float64(st.Faults - before.Faults)
	return f, t.Err()
}

// control is the arms that the overlay is compared with, under one load.
func controlArms(measure func(config, artrie.Options) (figures, error)) []arm {
	on := func(name string, opt artrie.Options) arm {
		return arm{name: name, run: func(c config) (figures, error) { return measure(c, opt) }}
	}
	return []arm{
		syncArm(),
		on("overlay", artrie.Options{CheckpointBytes: -1}),
		on("owned-immediate", artrie.Options{CheckpointBytes: -1, Mode: artrie.Owned, Durability: artrie.Immediate}),
		on("owned-group", artrie.Options{CheckpointBytes: -1, Mode: artrie.Owned}),
	}
}

func text(r results, arm string) string {
	return fmt.Sprintf("%s %.0f/s p50 %.0f p99.9 %.0f µs", arm, r.med(arm, "ops"), 1e6*r.med(arm, "p50"), 1e6*r.med(arm, "p999"))
}

// emptySection: four paced readers and a checkpoint every 20 ms, from an empty store.
func emptySection() section {
	return section{
		name: "empty",
		arms: controlArms(func(c config, opt artrie.Options) (figures, error) {
			return durable(c, opt, load{ops: c.Ops, readers: 4, paced: true})
		}),
		rows: func(r results) []row {
			return []row{
				atLeast("immediate", 5.5, r.ratio("overlay", "owned-immediate", "ops"), "writes/s, overlay Group to owned Immediate", "%s; S %.0f µs", text(r, "overlay"), 1e6*r.med("S", "p50")),
				atMost("immediate-p50", 0.2, r.ratio("overlay", "owned-immediate", "p50"), "p50, the same", "%s", text(r, "owned-immediate")),
				atMost("immediate-p999", 0.4, r.ratio("overlay", "owned-immediate", "p999"), "p99.9, the same", ""),
				info("group", r.ratio("overlay", "owned-group", "ops"), "writes/s, overlay Group to owned Group", "%s", text(r, "owned-group")),
				info("group-p999", r.ratio("overlay", "owned-group", "p999"), "p99.9, the same", "checkpoints %.0f; %.0f", r.med("overlay", "checkpoints"), r.med("owned-group", "checkpoints")),
			}
		},
	}
}

// largeSection: the same load on a large tree.
func largeSection() section {
	return section{
		name: "large",
		arms: controlArms(func(c config, opt artrie.Options) (figures, error) {
			return onCopy(c, prepared, func(dir string) (figures, error) {
				return durableIn(c, dir, opt, load{ops: c.Ops, first: c.Keys, readers: 4, paced: true})
			})
		}),
		rows: func(r results) []row {
			return []row{
				atLeast("immediate", 50, r.ratio("overlay", "owned-immediate", "ops"), "writes/s, overlay Group to owned Immediate", "%s; S %.0f µs", text(r, "overlay"), 1e6*r.med("S", "p50")),
				atMost("immediate-p50", 0.2, r.ratio("overlay", "owned-immediate", "p50"), "p50, the same", "%s", text(r, "owned-immediate")),
				atMost("immediate-p999", 0.05, r.ratio("overlay", "owned-immediate", "p999"), "p99.9, the same", ""),
				atLeast("group", 10, r.ratio("overlay", "owned-group", "ops"), "writes/s, overlay Group to owned Group", "%s", text(r, "owned-group")),
				atMost("group-p999", 0.05, r.ratio("overlay", "owned-group", "p999"), "p99.9, the same", "checkpoints %.0f; %.0f", r.med("overlay", "checkpoints"), r.med("owned-group", "checkpoints")),
			}
		},
	}
}

// spinSection: four readers that never block, on two processors.
func spinSection() section {
	s := section{name: "spin", arms: []arm{syncArm()}}
	for _, d := range []artrie.Durability{artrie.Group, artrie.Immediate} {
		for _, m := range []artrie.Mode{artrie.Overlay, artrie.Owned} {
			s.arms = append(s.arms, arm{name: m.String() + "-" + d.String(), env: []string{"GOMAXPROCS=2"}, run: func(c config) (figures, error) {
				return durable(c, artrie.Options{CheckpointBytes: -1, Mode: m, Durability: d}, load{ops: c.Few, readers: 4})
			}})
		}
	}
	s.rows = func(r results) (out []row) {
		for _, d := range []string{"group", "immediate"} {
			out = append(out, atLeast(d, 1, r.ratio("overlay-"+d, "owned-"+d, "ops"), "writes/s beside spinning readers, overlay to owned, "+d,
				"%s; %s; reads/s %.3g M, %.3g M; S %.0f µs", text(r, "overlay-"+d), text(r, "owned-"+d), r.med("overlay-"+d, "reads")/1e6, r.med("owned-"+d, "reads")/1e6, 1e6*r.med("S", "p50")))
		}
		return out
	}
	return s
}
