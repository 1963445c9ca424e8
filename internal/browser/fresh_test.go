package browser

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/report"
	"github.com/assaylab/assay/lab/trial"
)

// lookups is a study that is carried out while the test waits: which way to look a
// key up in a sorted list takes fewer steps. Steps are counted, so that the verdict
// depends on the seeds alone; the time is real.
const lookups = `
assay: 1
name: lookups
question: May keys be looked up another way?
hypotheses: ["H1: it takes fewer steps.", "H0: it does not."]
arms:
  - {name: today, func: %s}
  - {name: change, func: %s}
factors:
  - {name: keys, levels: [100, 1000]}
  - {name: asked, levels: [some, all]}
overrides:
  - {cells: {keys: 100, asked: some}, class: stress}
design: {rounds: 10, warmup: 1, seed: 11, isolation: shared}
metrics:
  - {name: steps, better: lower, source: json, count: true}
  - {name: time, unit: ms, better: lower, source: wall}
  - {name: lookup_p90, unit: ns, better: lower, source: samples, key: lookup, quantile: 0.9}
checks:
  - {name: every_key, scope: trial, reported: true, operations: 10, kinds: [found]}
primary: {metric: steps, cells: {asked: some}, floor: {change: 0.1}}
vetoes:
  - {name: steps_of_all, metric: steps, cells: {asked: all}, require: ratio <= 1.1, because: a scan must not become slower}
gates:
  - {name: few_steps, metric: steps, cells: {keys: 1000}, statistic: max, require: treat <= 1000000}
decision: {preset: four-branch}
`

// find looks for a key and says how many steps it took.
type find func(list []int, key int) (at, steps int)

var ways = map[string]find{
	"one_by_one": func(list []int, key int) (int, int) {
		at := slices.Index(list, key)
		if at < 0 {
			return at, len(list)
		}
		return at, at + 1
	},
	"by_halves": halves(0),
	"forgetful": halves(1), // the planted defect: it never looks at the last key
}

func halves(left int) find {
	return func(list []int, key int) (at, steps int) {
		lo, hi := 0, len(list)-left
		for lo < hi {
			steps++
			switch mid := (lo + hi) / 2; {
			case list[mid] == key:
				return mid, steps
			case list[mid] < key:
				lo = mid + 1
			default:
				hi = mid
			}
		}
		return -1, steps
	}
}

func arm(look find) trial.ArmFunc {
	return func(_ context.Context, t *trial.T) error {
		var n int
		if _, err := fmt.Sscan(t.Factors["keys"], &n); err != nil {
			return err
		}
		draw := rand.New(rand.NewPCG(t.Seed, 1))
		list := make([]int, n)
		for i := range list {
			list[i] = 10*i + draw.IntN(10)
		}
		asked := list
		if t.Factors["asked"] == "some" {
			asked = make([]int, n/10)
			for i := range asked {
				asked[i] = list[draw.IntN(n)]
			}
			asked = append(asked, list[n-1])
		}
		res := check.Result{Name: "every_key", Verdict: check.Pass, Kinds: map[string]int{}}
		total := 0
		var steps []int64
		t.Begin()
		for _, key := range asked {
			at, n := look(list, key)
			total += n
			steps = append(steps, int64(n))
			res.Operations++
			if at >= 0 && list[at] == key {
				res.Kinds["found"]++
				continue
			}
			res.Verdict, res.Message = check.Fail, "a key that is in the list was not found"
			res.Examples = append(res.Examples, fmt.Sprintf("key %d of a list that ends with %d: found at %d", key, list[len(list)-1], at))
		}
		t.End()
		t.Record("steps", float64(total))
		t.Samples("lookup", steps)
		t.Report(res)
		return nil
	}
}

// fresh carries the study out, whole or until so many trials have ended.
func fresh(t testing.TB, today, change string, until int) *report.Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := carryOut(t.Context(), dir, lookupStudy("lookups", today, change), until); err != nil {
		t.Fatal(err)
	}
	o, err := flow.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.Source()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lookupStudy is the study under a name, with two of the ways as its arms.
func lookupStudy(name, today, change string) *flow.Study {
	text := strings.Replace(fmt.Sprintf(lookups, today, change), "name: lookups", "name: "+name, 1)
	study := &flow.Study{Name: name, Protocols: map[string][]byte{"": []byte(text)}, Arms: map[string]trial.ArmFunc{}}
	for name, way := range ways {
		study.Arms[name] = arm(way)
	}
	return study
}

// carryOut runs a study in a folder, whole or until so many trials have ended.
func carryOut(ctx context.Context, dir string, study *flow.Study, until int) error {
	plan, err := flow.ReadStudy(study, "")
	if err != nil {
		return err
	}
	lock, err := flow.Freeze(ctx, plan, "")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	trials := 0
	_, err = flow.Run(ctx, plan, lock, flow.Options{Out: dir, Events: flow.Events{Trial: func(*trial.Observation) {
		if trials++; trials == until {
			stop()
		}
	}}})
	if until > 0 {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("not stopped after %d trials: %w", until, err)
	}
	return err
}

// crowded is a page with as many cells as a reader can be expected to bear, and with
// names that no layout likes.
func crowded(t testing.TB) *report.Source {
	s := fresh(t, "one_by_one", "by_halves", 0)
	s.Results.Question = strings.Repeat("May a question be as long as anybody cares to write it down? ", 8)
	s.Verdict.Why = strings.Repeat("A reason may be long as well, and hold-words-that-cannot-be-broken-anywhere. ", 6)
	return s
}
