package authorityreads

import (
	"os"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
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
			if _, err := parseScenario(c.Level("scenario")); err != nil {
				t.Errorf("%s: %v", variant, err)
			}
		}
	}
}

// timed are the checks that a machine without time to spare may fail: they are told
// here, and judged by a run.
var timed = map[string]bool{checkDeadline: true, checkRecovered: true, checkSupported: true}

// TestAShortRun carries the study out on members that are processes, in seconds.
func TestAShortRun(t *testing.T) {
	settings := short()
	o := carryOut(t, studytest.MemberCommand(t), "shared", arm{}, settings, "latency-1x8", "kill-fast", "nomajority", "dual-primary")
	for _, arm := range []string{"linearizable", "shared"} {
		have := verdicts(o, arm)
		for _, name := range []string{checkSupported, checkDeadline, checkStale, checkOrder, checkRecovered, checkDual, checkTornDown} {
			switch r := have[name]; {
			case r.Verdict == check.Pass:
			case timed[name] && r.Verdict == check.Fail:
				t.Logf("%s: %s failed, which a starved machine may: %s", arm, name, r.Message)
			default:
				t.Errorf("%s: %s is %s: %s %v", arm, name, r.Verdict, r.Message, r.Examples)
			}
		}
	}
	for _, r := range o.Run.Records {
		if r.Trial != nil && r.Trial.Status != "ok" {
			t.Errorf("%s %s: %s %v", r.Trial.Cell, r.Trial.Arm, r.Trial.Status, r.Trial.Notes)
		}
	}
	if o.Verdict.Class == gate.Go {
		t.Error("a part of the protocol ended in go")
	}
}

// TestASetThatIsThere runs on a set by its URI: what needs more than a command is left
// out, and the run decides nothing.
func TestASetThatIsThere(t *testing.T) {
	set := replset.Start(t, replset.Options{})
	settings := short()
	settings["mongo_uri"], settings["skip_latency"] = set.URI(), "on"
	o := carryOut(t, nil, "shared", arm{}, settings)
	ran := map[string]bool{}
	for _, r := range o.Run.Records {
		if r.Trial != nil {
			ran[r.Trial.Cell] = true
			if r.Trial.Status != "ok" {
				t.Errorf("%s: %v", r.Trial.Cell, r.Trial.Notes)
			}
		}
	}
	if len(ran) != 1 || !ran["scenario=stepdown"] {
		t.Errorf("ran %v", ran)
	}
	for _, arm := range []string{"linearizable", "shared"} {
		for _, name := range []string{checkStale, checkOrder} {
			if r := verdicts(o, arm)[name]; r.Verdict != check.Pass {
				t.Errorf("%s: %s is %s: %s", arm, name, r.Verdict, r.Message)
			}
		}
	}
	if v := o.Verdict; v.Outcome != "ABORT" && v.Class != gate.Inconclusive || !strings.Contains(o.Run.Lock.Exploratory, "without cells") {
		t.Errorf("%s, %q", o.Verdict.Class, o.Run.Lock.Exploratory)
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	cells := map[string]protocol.Cell{}
	plan, err := flow.ReadStudy(New(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.Protocol.Cells() {
		cells[c.Level("scenario")] = c
	}
	for _, c := range []struct {
		settings map[string]string
		runs     string
	}{
		{map[string]string{"faults": "all"}, "latency-1x1 latency-3x32 latency-10x32 hot-3x32 stepdown kill kill-fast partition nomajority dual-primary"},
		{map[string]string{"faults": "kill,partition", "skip_latency": "on"}, "kill partition"},
		{map[string]string{"faults": "dual-primary", "skip_latency": "on"}, "dual-primary"},
		{map[string]string{"faults": "all", "mongo_uri": "mongodb://x"}, "latency-1x1 latency-3x32 latency-10x32 hot-3x32 stepdown"},
	} {
		for name, cell := range cells {
			want := strings.Contains(" "+c.runs+" ", " "+name+" ")
			if skip(c.settings, cell) == want {
				t.Errorf("%v: %s runs: %v", c.settings, name, !want)
			}
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	plan, err := flow.ReadStudy(New(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"deadline": "0s", "measure": "-1s", "after": "20s", "people": "0", "hot": "three", "timing": "slow", "confirm": "", "keep": "yes", "write_every": "0s", "before": "2h",
	} {
		told := plan.Protocol.Told()
		told[name] = value
		if _, err := parsePlan(told); err == nil {
			t.Errorf("%s = %q is taken", name, value)
		}
	}
	for _, load := range []string{"", "3", "x", "0x1", "3x", "1000x1000"} {
		if (&scenario{}).sized(load) == nil {
			t.Errorf("load %q is taken", load)
		}
	}
	for _, name := range []string{"", "latency", "latency-0x1", "latency-1x", "cold-1x1", "kill-slow"} {
		if _, err := parseScenario(name); err == nil {
			t.Errorf("scenario %q is taken", name)
		}
	}
}

func TestNothingIsLeftOfASet(t *testing.T) {
	r := &run{member: studytest.MemberCommand(t), scratch: t.TempDir()}
	s, err := r.fresh(t.Context(), plan{}, replset.Fast)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	// The same looks find what is left.
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.pids = []int{os.Getpid()}
	again, err := r.fresh(t.Context(), plan{}, replset.Fast)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	again.pids = append(again.pids, os.Getpid())
	if err := again.close(); err == nil || !strings.Contains(err.Error(), "is left") {
		t.Errorf("a process that is left is not found: %v", err)
	}
}
