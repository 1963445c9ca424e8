package screeningwrite

import (
	"fmt"
	"maps"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/studies/internal/studytest"
)

// TestMain is also the member of a set whose members are processes.
func TestMain(m *testing.M) { studytest.Main(m) }

// small are settings of a set that costs little: one member, in this process, without
// waiting for a disk.
func small(more ...string) map[string]string {
	s := map[string]string{"members": "1", "processes": "off", "sync": "off", "studies": "200"}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i]] = more[i+1]
	}
	return s
}

func cellName(target string, reviewers int, eligibility, regime string) string {
	return fmt.Sprintf("target=%s,reviewers=%d,eligibility=%s,regime=%s", target, reviewers, eligibility, regime)
}

// carryOut runs the quick protocol with these arms and settings; no cells are all.
func carryOut(t *testing.T, member []string, all map[string]arm, rounds int, settings map[string]string, cells ...string) *flow.Outcome {
	t.Helper()
	study := newStudy(member, all, map[string][]byte{"": quick})
	return studytest.CarryOut(t, study, "", flow.Narrowing{Rounds: rounds, Warmup: -1, Cells: cells, Settings: settings})
}

// with are the arms with a changed one.
func with(name string, change func(*arm)) map[string]arm {
	all := maps.Clone(arms())
	a := all[name]
	change(&a)
	all[name] = a
	return all
}

// worst are the results of the checks, worst of all trials, rounds and the run.
func worst(o *flow.Outcome) map[string]check.Result {
	out := map[string]check.Result{}
	for _, c := range o.Results.Checks {
		out[c.Name] = c
	}
	return out
}

// planned are the cells of a protocol by name.
func planned(t *testing.T, variant string) map[string]protocol.Cell {
	t.Helper()
	plan, err := flow.ReadStudy(New(nil), variant)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]protocol.Cell{}
	for _, c := range plan.Protocol.Cells() {
		out[c.Name] = c
	}
	return out
}
