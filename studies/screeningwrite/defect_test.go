package screeningwrite

import (
	"strings"
	"testing"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
)

// Each planted defect breaks one rule that the study is there to guard. A run with it
// must end in ABORT, by the check that is meant for it.
func TestPlantedDefectsShutTheGate(t *testing.T) {
	for _, c := range []struct {
		defect defect.Defect
		arm    string
		cell   string
		by     string
		says   string
	}{
		{defect.LostDelta(), "fold", cellName(targetDifferent, 2, "off", "free"), checkAfter, "authoritative"},
		{defect.DoubleApply(), "fold", cellName(targetDifferent, 1, "off", "free"), checkAfter, "authoritative"},
		{defect.IgnoredVersion(), "fold", cellName(targetSame, 2, "off", "lockstep"), checkPersisted, ""},
		{defect.IgnoredVersion(), "source_only", cellName(targetSame, 5, "off", "lockstep"), checkPersisted, ""},
		{defect.ExtraCommand(), "fold", cellName(targetDifferent, 1, "off", "free"), checkBudget, "its budget is 4"},
		{defect.MiscountedConflict(), "transactional", cellName(targetDifferent, 10, "off", "free"), checkCauses, "cannot be"},
		{defect.MiscountedConflict(), "fold", cellName(targetSame, 10, "off", "draining"), checkCauses, "not charged"},
	} {
		t.Run(c.defect.String()+" in "+c.arm, func(t *testing.T) {
			t.Parallel()
			o := carryOut(t, nil, with(c.arm, func(a *arm) { a.defect = c.defect }), 2, small(), c.cell)
			if v := o.Verdict; v.Outcome != "ABORT" || v.Class != gate.NoGo {
				t.Errorf("the defect ends in %s (%s): %s", v.Outcome, v.Class, v.Why)
			}
			caught := worst(o)[c.by]
			if caught.Verdict != check.Fail || !strings.Contains(strings.Join(caught.Examples, "\n"), c.says) {
				t.Errorf("%s says %s of the defect: %s", c.by, caught.Verdict, caught.Message)
			}
			t.Logf("caught: %s", caught.Message)
		})
	}
}
