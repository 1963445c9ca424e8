package screeningwrite

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/studies/internal/studytest"
)

func TestTheProtocolsAreSound(t *testing.T) {
	for _, variant := range []string{"", "quick"} {
		plan, err := flow.ReadStudy(New(nil), variant)
		if err != nil {
			t.Fatalf("%s: %v", variant, err)
		}
		if why := plan.Protocol.Infeasible(); len(why) > 0 && variant == "" {
			t.Errorf("the full protocol cannot decide: %v", why)
		}
		if _, err := parsePlan(plan.Protocol.Told()); err != nil {
			t.Errorf("%s: its own settings are refused: %v", variant, err)
		}
		for _, c := range plan.Protocol.Cells() {
			factors := map[string]string{}
			for _, f := range plan.Protocol.Factors {
				factors[f.Name] = c.Level(f.Name)
			}
			if _, err := parseCell(factors); err != nil {
				t.Errorf("%s: %s: %v", variant, c.Name, err)
			}
		}
	}
}

// What the quick form measures, checks and asks is what the full one does.
func TestTheQuickFormAsksTheSame(t *testing.T) {
	part := func(b []byte) []byte {
		s := bytes.ReplaceAll(b, []byte("rtt_500us, rtt_2ms, rtt_10ms"), []byte("rtt_2ms"))
		return s[bytes.Index(s, []byte("\nmetrics:")):]
	}
	if !bytes.Equal(part(full), part(quick)) {
		t.Error("metrics, checks, gates or decision differ")
	}
	for name := range planned(t, "quick") {
		if _, ok := planned(t, "")[name]; !ok {
			t.Errorf("cell %s is not in the full form", name)
		}
	}
}

// TestTheQuickMatrix is the whole quick form, on three members that can fail, in this
// process.
func TestTheQuickMatrix(t *testing.T) {
	o := carryOut(t, nil, arms(), 0, small("members", "3", "studies", "1200"))
	for name, r := range worst(o) {
		if r.Verdict != check.Pass {
			t.Errorf("%s is %s: %s", name, r.Verdict, r.Message)
		}
	}
	if len(worst(o)) < 9 {
		t.Errorf("only %d checks", len(worst(o)))
	}
	if v := o.Verdict; v.Outcome != "EXPLORATORY" || v.Class != gate.Inconclusive {
		t.Errorf("%s (%s): %s", v.Outcome, v.Class, v.Why)
	}
	for _, r := range o.Verdict.Gates {
		if strings.HasPrefix(r.Rule, "no_statistics") && r.State != gate.Holds {
			t.Errorf("%s in %s is %s", r.Rule, r.Cell, r.State)
		}
	}
	// Commands were not counted, which is not none.
	for _, r := range o.Run.Records {
		if r.Trial == nil {
			continue
		}
		for key := range r.Trial.Values {
			if strings.HasPrefix(key, "commands") {
				t.Fatalf("%s %s has a figure %s", r.Trial.Cell, r.Trial.Arm, key)
			}
		}
	}
}

// It runs on a set by its URI. Commands are counted by name in all cells, per attempt
// only where one reviewer is alone.
func TestCommandsAreCountedOnASetThatIsThere(t *testing.T) {
	set := replset.Start(t, replset.Options{Members: 1, NoSync: true})
	one, two := cellName(targetSame, 1, "off", "free"), cellName(targetSame, 2, "off", "free")
	o := carryOut(t, nil, arms(), 1, small("mongo_uri", set.URI(), "count_commands", "on", "members", "3"), one, two)
	least, most := map[string]float64{"source_only": 2, "fold": 4, "transactional": 12}, map[string]float64{"source_only": 2, "fold": 4, "transactional": 21}
	for _, r := range o.Run.Records {
		if r.Trial == nil {
			continue
		}
		tr := r.Trial
		if n := tr.Values["commands"]; tr.Cell == one && (n < least[tr.Arm] || n > most[tr.Arm] || tr.Values["commands_findAndModify"] != 1) {
			t.Errorf("%s: %v commands, %v to %v wanted", tr.Arm, n, least[tr.Arm], most[tr.Arm])
		}
		per := slices.ContainsFunc(tr.Samples, func(s trial.SampleRef) bool { return s.Name == "commands_per_attempt" && s.Count > 0 })
		if per != (tr.Cell == one) {
			t.Errorf("%s %s: commands per attempt are given: %v", tr.Cell, tr.Arm, per)
		}
	}
	if r := worst(o)[checkBudget]; r.Verdict != check.Pass {
		t.Errorf("%s: %s", r.Verdict, r.Message)
	}
}

// TestMembersThatAreProcesses is what a run does by default.
func TestMembersThatAreProcesses(t *testing.T) {
	o := carryOut(t, studytest.MemberCommand(t), arms(), 1, map[string]string{"members": "3", "processes": "on", "sync": "on"},
		cellName(targetDifferent, 10, "off", "kill"), cellName(targetDifferent, 2, "on", "free"))
	for _, name := range []string{checkPersisted, checkCauses, checkBefore, checkAfter, checkFault + faultKill, checkBudget, "completed"} {
		if r := worst(o)[name]; r.Verdict != check.Pass {
			t.Errorf("%s is %s: %s", name, r.Verdict, r.Message)
		}
	}
	if r := worst(o)[checkFault+faultKill]; r.Faults[faultKill] == 0 {
		t.Error("no primary was killed")
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	for name, c := range planned(t, "") {
		fault := strings.HasSuffix(name, "regime=kill") || strings.HasSuffix(name, "regime=stepdown")
		for _, settings := range []map[string]string{{"members": "1"}, {"members": "3", "mongo_uri": "mongodb://x"}} {
			if skip(settings, c) != fault {
				t.Errorf("%v: %s is left out: %v", settings, name, !fault)
			}
		}
		if skip(map[string]string{"members": "3"}, c) {
			t.Errorf("%s is left out", name)
		}
		if skip(map[string]string{"members": "2"}, c) != strings.HasSuffix(name, "regime=kill") {
			t.Errorf("%s of two members is left out or not", name)
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	plan, err := flow.ReadStudy(New(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"members": "0", "processes": "yes", "sync": "", "count_commands": "1", "trace": "ON", "studies": "3", "rtt": "-1ms",
	} {
		told := plan.Protocol.Told()
		told[name] = value
		if _, err := parsePlan(told); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %q is taken: %v", name, value, err)
		}
	}
	good := map[string]string{"target": targetSame, "reviewers": "2", "eligibility": "off", "regime": "free"}
	if _, err := parseCell(good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]string{{"target", "other"}, {"target", targetSkewed}, {"reviewers", "0"}, {"reviewers", "x"}, {"eligibility", "yes"}, {"regime", "storm"}, {"regime", "library"}} {
		factors := map[string]string{"target": targetSame, "reviewers": "2", "eligibility": "off", "regime": "free"}
		factors[bad[0]] = bad[1]
		if _, err := parseCell(factors); err == nil {
			t.Errorf("%s = %q is taken", bad[0], bad[1])
		}
	}
	if _, err := parseCell(map[string]string{"target": targetDifferent, "reviewers": "11", "eligibility": "off", "regime": "free"}); err == nil {
		t.Error("eleven reviewers on ten studies of their own")
	}
}
