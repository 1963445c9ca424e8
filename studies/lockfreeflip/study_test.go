package lockfreeflip

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

// small is a protocol of the study's shape for one planted defect.
const small = `
assay: 1
name: planted
question: Does the study find it?
expectation: It does.
arms:
  - {name: control, func: store, timeout: 1m, env: {FLIP_MODE: owned, FLIP_DURABILITY: POLICY, FLIP_KEYS_PER_WRITER: "50", FLIP_COLD_KEYS: "400"}}
  - {name: treatment, func: TREATMENT, timeout: 1m, env: {FLIP_MODE: overlay, FLIP_DURABILITY: POLICY, FLIP_KEYS_PER_WRITER: "50", FLIP_COLD_KEYS: "400"}}
factors:
  - {name: eviction, levels: [EVICTION]}
design: {rounds: ROUNDS, seed: 1, isolation: process}
metrics:
  - {name: throughput, unit: op/s, better: higher, source: json, key: ops_per_s}
  - {name: memory, unit: MiB, better: lower, source: json, key: peak_mib}
checks:
  - {name: reopen_exact, scope: trial, reported: true, operations: 400}
  - {name: acknowledged_is_durable, scope: trial, reported: true, operations: 400}
  - {name: seen_is_durable, scope: trial, reported: true}
  - {name: reads_exact, scope: trial, reported: true}
  - {name: syncs_per_write, scope: trial, reported: true, operations: 400}
  - {name: regime_held, scope: trial, reported: true}
  - {name: same_start, scope: round, func: same_start}
primary: {metric: throughput, test: welch, floor: {d: 3}}
vetoes:
  - {name: memory, metric: memory, require: ratio <= 1.25}
decision: {preset: four-branch}
`

// carryOut runs a protocol to its verdict. exploratory, if not empty, is why it
// decides nothing.
func carryOut(t *testing.T, text, exploratory string) *flow.Outcome {
	t.Helper()
	s := withDefects()
	s.Protocols = map[string][]byte{"": []byte(text)}
	plan, err := flow.ReadStudy(s, "")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := flow.Freeze(context.Background(), plan, exploratory)
	if err != nil {
		t.Fatal(err)
	}
	o, err := flow.Run(context.Background(), plan, lock, flow.Options{Out: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func verdictOf(o *flow.Outcome, name string) check.Verdict {
	for _, c := range o.Results.Checks {
		if c.Name == name {
			return c.Verdict
		}
	}
	return check.Unchecked
}

// TestDefectsThatAbort plants one defect at a time in the treatment; the check
// that is there for it must fail, and the run end in ABORT.
func TestDefectsThatAbort(t *testing.T) {
	for arm, c := range map[string]struct{ durability, eviction, check string }{
		"acknowledges-before-sync": {"immediate", `"off"`, "acknowledged_is_durable"},
		"loses-the-newest-key":     {"immediate", `"off"`, "reopen_exact"},
		"evicts-the-unsaved":       {"immediate", "cold", "reopen_exact"},
		"shows-before-sync":        {"immediate", `"off"`, "seen_is_durable"},
		"syncs-twice":              {"immediate", `"off"`, "syncs_per_write"},
	} {
		t.Run(arm, func(t *testing.T) {
			text := strings.NewReplacer("TREATMENT", arm, "POLICY", c.durability, "EVICTION", c.eviction, "ROUNDS", "1").Replace(small)
			o := carryOut(t, text, "one round of a planted defect")
			if o.Verdict.Outcome != "ABORT" || o.Verdict.Class != gate.NoGo {
				t.Errorf("%s %s: %s", o.Verdict.Outcome, o.Verdict.Class, o.Verdict.Why)
			}
			if v := verdictOf(o, c.check); v != check.Fail {
				t.Errorf("%s is %v; all: %+v", c.check, v, o.Results.Checks)
			}
			if len(o.Results.Cells) > 0 {
				t.Error("figures were computed")
			}
		})
	}
}

// TestDefectsThatRegress plants defects that no check can see: the treatment
// is as correct as the control, and worse.
func TestDefectsThatRegress(t *testing.T) {
	for _, arm := range []string{"slow", "leaks"} {
		t.Run(arm, func(t *testing.T) {
			text := strings.NewReplacer("TREATMENT", arm, "POLICY", "group", "EVICTION", `"off"`, "ROUNDS", "5").Replace(small)
			o := carryOut(t, text, "")
			if !o.Results.Clear {
				t.Fatalf("a check failed: %+v", o.Results.Checks)
			}
			if o.Verdict.Outcome != "REGRESSION" || o.Verdict.Class != gate.NoGo {
				t.Errorf("%s %s: %s", o.Verdict.Outcome, o.Verdict.Class, o.Verdict.Why)
			}
			if arm == "leaks" && !slices.ContainsFunc(o.Verdict.Vetoes, func(r gate.RuleResult) bool { return r.Rule == "memory" && r.State == gate.Broken }) {
				t.Errorf("the memory veto did not block: %+v", o.Verdict.Vetoes)
			}
		})
	}
}

// TestARoundWaitsForItsReaders: where readers run only when the writers are all but done,
// the round does not end before one of them has seen a key.
func TestARoundWaitsForItsReaders(t *testing.T) {
	text := strings.NewReplacer("TREATMENT", "readers-come-late", "POLICY", "group", "EVICTION", `"off"`, "ROUNDS", "1").Replace(small)
	o := carryOut(t, text, "one round with late readers")
	for _, c := range o.Results.Checks {
		if c.Verdict != check.Pass {
			t.Errorf("%s: %v: %s %q", c.Name, c.Verdict, c.Message, c.Examples)
		}
	}
}

// TestQuick is the quick form of the default protocol: every arm in every cell.
func TestQuick(t *testing.T) {
	o := carryOut(t, string(quick), "the quick form")
	if o.Verdict.Class != gate.Inconclusive || o.Verdict.Exit != 3 {
		t.Errorf("%s %s: %s", o.Verdict.Outcome, o.Verdict.Class, o.Verdict.Why)
	}
	for _, c := range o.Results.Checks {
		if c.Verdict != check.Pass {
			t.Errorf("%s: %v: %s %q", c.Name, c.Verdict, c.Message, c.Examples)
		}
	}
}

func read(t *testing.T, variant string) *protocol.Protocol {
	t.Helper()
	plan, err := flow.ReadStudy(New(), variant)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Protocol
}

// TestTheProtocolsSayOneThing: the four files measure and check the same, and
// the quick ones differ from theirs in size alone.
func TestTheProtocolsSayOneThing(t *testing.T) {
	first := read(t, "")
	for variant := range New().Protocols {
		p := read(t, variant)
		if !reflect.DeepEqual(p.Metrics, first.Metrics) {
			t.Errorf("%q has other metrics", variant)
		}
		var a, b []string
		for _, c := range p.Checks {
			a = append(a, c.Name)
		}
		for _, c := range first.Checks {
			b = append(b, c.Name)
		}
		if !slices.Equal(a, b) {
			t.Errorf("%q has the checks %v, the default has %v", variant, a, b)
		}
		quick, isQuick := strings.CutSuffix(variant, "quick")
		if !isQuick {
			if why := p.Infeasible(); len(why) > 0 {
				t.Errorf("%q cannot decide: %v", variant, why)
			}
			continue
		}
		full := read(t, strings.TrimSuffix(quick, "-"))
		if fmt.Sprint(armsOf(p)) != fmt.Sprint(armsOf(full)) {
			t.Errorf("%q has the arms %v, its full form has %v", variant, armsOf(p), armsOf(full))
		}
		var cells, fullCells []string
		for _, c := range p.Cells() {
			cells = append(cells, strings.Replace(c.Name, "keys=30000,", "keys=1000000,", 1)+" "+c.Class+fmt.Sprint(c.Arms))
		}
		for _, c := range full.Cells() {
			fullCells = append(fullCells, c.Name+" "+c.Class+fmt.Sprint(c.Arms))
		}
		if !slices.Equal(cells, fullCells) {
			t.Errorf("%q has the cells\n%s\nits full form has\n%s", variant, strings.Join(cells, "\n"), strings.Join(fullCells, "\n"))
		}
	}
}

// armsOf are the arms without what makes them small.
func armsOf(p *protocol.Protocol) (out []string) {
	for _, a := range p.Arms {
		env := map[string]string{}
		for k, v := range a.Env {
			if k != "FLIP_KEYS_PER_WRITER" && k != "FLIP_COLD_KEYS" {
				env[k] = v
			}
		}
		out = append(out, fmt.Sprint(a.Name, a.Class, env))
	}
	return out
}

func TestBadWordsAreRefused(t *testing.T) {
	for _, c := range []struct{ env, factors map[string]string }{
		{env: map[string]string{"FLIP_MODE": "shared"}},
		{env: map[string]string{"FLIP_DURABILITY": "none"}},
		{env: map[string]string{"FLIP_KEYS_PER_WRITER": "0"}},
		{env: map[string]string{"FLIP_KEYS_PER_WRITER": "-1"}},
		{env: map[string]string{"FLIP_SYNC_EVERY": "soon"}},
		{env: map[string]string{"FLIP_DURABLITY": "immediate"}},
		{factors: map[string]string{"eviction": "on"}},
		{factors: map[string]string{"keys": "many"}},
		{factors: map[string]string{"readers": "some"}},
	} {
		if p, err := readPlan(c.env, c.factors); err == nil {
			t.Errorf("%v %v: %+v", c.env, c.factors, p)
		}
	}
}
