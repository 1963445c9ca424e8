package authorityreads

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/studies/internal/studytest"
)

// TestMain is also the member of a set whose members are processes.
func TestMain(m *testing.M) { studytest.Main(m) }

// short are settings of a run that takes seconds.
func short() map[string]string {
	return map[string]string{
		"settle": "100ms", "measure": "600ms", "before": "300ms", "after": "2s", "outage": "1s",
		"deadline": "800ms", "people": "200", "hot": "8", "write_every": "20ms", "timing": "fast", "fault_load": "1x8",
	}
}

// compared is the quick protocol with another arm in the place of the treatment and
// the linearizable reader as its reference, all checks asked of both.
func compared(treatment string) []byte {
	s := string(quick)
	from, to := strings.Index(s, "\narms:\n"), strings.Index(s, "\nfactors:\n")
	s = s[:from] + fmt.Sprintf("\narms:\n  - {name: linearizable, func: linearizable}\n  - {name: %[1]s, func: %[1]s}\n", treatment) + s[to:]
	s = strings.ReplaceAll(s, "arms: [linearizable, shared]", "arms: [linearizable, "+treatment+"]")
	s = strings.ReplaceAll(s, "treatment: linearizable", "treatment: "+treatment)
	s = strings.NewReplacer("latency-3x32", "latency-1x8", "hot-3x32", "hot-1x8").Replace(s)
	return []byte(strings.ReplaceAll(s, "arm: shared,", "arm: "+treatment+","))
}

// carryOut runs the quick protocol's cells with an arm beside the linearizable reader.
func carryOut(t *testing.T, member []string, treatment string, extra arm, settings map[string]string, cells ...string) *flow.Outcome {
	t.Helper()
	all := arms()
	if extra.source != nil {
		all[treatment] = extra
	}
	for i := range cells {
		cells[i] = "scenario=" + cells[i]
	}
	study := newStudy(member, all, map[string][]byte{"": compared(treatment)})
	return studytest.CarryOut(t, study, "", flow.Narrowing{Rounds: 1, Warmup: -1, Cells: cells, Settings: settings})
}

// verdicts are the verdicts of the checks of an arm, worst of all its trials.
func verdicts(o *flow.Outcome, arm string) map[string]check.Result {
	out := map[string]check.Result{}
	for _, r := range o.Run.Records {
		if r.Trial == nil || r.Trial.Arm != arm {
			continue
		}
		for _, c := range r.Trial.Checks {
			worst, seen := out[c.Name]
			if !seen || check.Merge(worst.Verdict, c.Verdict) != worst.Verdict {
				out[c.Name] = c
			}
		}
	}
	return out
}
