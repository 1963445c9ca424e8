package lockfreeflip

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assaylab/assay/artrie"
)

// Words of the arms' environment and of the factors.
const (
	patternDisjoint = "disjoint"
	patternHot      = "hot"

	evictionOff     = "off"
	evictionIdle    = "idle"     // on, and nothing ever has to leave
	evictionCold    = "cold"     // subtrees leave that nobody touches
	evictionFaultIn = "fault-in" // and come back, because readers touch them

	readersPaced    = "paced"
	readersSpinning = "spinning"
)

// budget is a memory bound that is never reached: eviction is on, with its
// accounting and its marks of use, and what leaves is what a round evicts.
const budget = 1 << 40

// plan is what one trial does, read from the protocol's words.
type plan struct {
	options artrie.Options
	pattern string
	evict   string
	spin    bool
	start   int
	cold    int
	each    int // keys per writer
}

// words reads settings and keeps the first fault.
type words struct {
	env  map[string]string
	read []string
	err  error
}

// get is a setting. Those that nobody asks for are found by leftOver.
func (w *words) get(key string) (string, bool) {
	w.read = append(w.read, key)
	v, ok := w.env[key]
	return v, ok
}

// leftOver refuses settings that nothing reads: a misspelt one would leave an
// arm with the default and its name.
func (w *words) leftOver() {
	for key := range w.env {
		if strings.HasPrefix(key, "FLIP_") && !slices.Contains(w.read, key) {
			w.fail("unknown setting %s; known are %s", key, strings.Join(w.read, " "))
		}
	}
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// number is the setting as a whole number, def where it is not given.
func (w *words) number(key string, def int) int {
	v, ok := w.get(key)
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		w.fail("%s is a whole number and not %q", key, v)
	}
	return n
}

// one is the index of the setting among the words; 0 where it is not given.
func (w *words) one(key string, of ...string) int {
	v, ok := w.get(key)
	if !ok {
		return 0
	}
	for i, o := range of {
		if v == o {
			return i
		}
	}
	w.fail("%s is one of %q and not %q", key, of, v)
	return 0
}

// readPlan reads an arm's environment (FLIP_…) and the cell's factors.
func readPlan(env, factors map[string]string) (plan, error) {
	e, f := words{env: env}, words{env: factors}
	p := plan{
		options: artrie.Options{
			Mode:          artrie.Mode(e.one("FLIP_MODE", "overlay", "owned")),
			Committer:     artrie.Committer(e.one("FLIP_COMMITTER", "batch", "cas")),
			Durability:    artrie.Durability(e.one("FLIP_DURABILITY", "group", "immediate")),
			ImageInMemory: e.one("FLIP_IMAGE", "file", "memory") == 1,
			SegmentBytes:  segmentBytes, CheckpointBytes: -1,
		},
		each:    e.number("FLIP_KEYS_PER_WRITER", 2000),
		start:   f.number("keys", 0),
		pattern: []string{patternDisjoint, patternHot}[f.one("pattern", patternDisjoint, patternHot)],
		spin:    f.one("readers", readersPaced, readersSpinning) == 1,
	}
	p.evict = []string{evictionOff, evictionIdle, evictionCold, evictionFaultIn}[f.one("eviction", evictionOff, evictionIdle, evictionCold, evictionFaultIn)]
	if v, ok := e.get("FLIP_SYNC_EVERY"); ok {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			e.fail("FLIP_SYNC_EVERY is a duration and not %q", v)
		}
		p.options.SyncEvery = d
	}
	if cold := e.number("FLIP_COLD_KEYS", 100_000); p.evict != evictionOff {
		p.options.MemoryBudget, p.cold = budget, cold
	}
	if p.each == 0 {
		e.fail("FLIP_KEYS_PER_WRITER must not be 0")
	}
	e.leftOver()
	return p, errors.Join(e.err, f.err)
}
