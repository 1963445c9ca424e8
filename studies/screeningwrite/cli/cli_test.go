package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/studies/internal/studytest"
	"github.com/assaylab/assay/studies/screeningwrite"
)

func cellName(target string, reviewers int, eligibility, regime string) string {
	return fmt.Sprintf("target=%s,reviewers=%d,eligibility=%s,regime=%s", target, reviewers, eligibility, regime)
}

// finished is the folder of a run of some cells, on members in this process.
func finished(t *testing.T, cells ...string) string {
	t.Helper()
	o := studytest.CarryOut(t, screeningwrite.New(nil), "quick", flow.Narrowing{
		Rounds: 2, Cells: cells, Settings: map[string]string{"processes": "off", "sync": "off", "count_commands": "on"},
	})
	t.Logf("%s: %s", o.Verdict.Outcome, o.Verdict.Why)
	return o.Run.Dir
}

func printed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

func TestARunIsExported(t *testing.T) {
	dir := finished(t, cellName("same_study", 1, "off", "free"), cellName("different_studies", 2, "on", "free"), cellName("same_study", 2, "off", "lockstep"),
		cellName("different_studies", 10, "off", "stepdown"), cellName("different_studies", 10, "off", "kill"))
	text, err := printed(t, "artifact", dir)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Durations  map[string]map[string]any
		RoundTrips map[string]map[string]int
		Notes      map[string]string
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"same_study_1_reviewers_source_only", "same_study_1_reviewers_materialized", "same_study_1_reviewers_fold",
		"different_studies_2_reviewers_eligibility_source_only", "different_studies_2_reviewers_eligibility_fold"} {
		if a.Durations[key]["Submissions"] == nil || a.Notes[key+"_outcomes"] == "" || a.Notes[key+"_commands_per_attempt"] == "" {
			t.Errorf("nothing under %s", key)
		}
	}
	for key, has := range map[string][]string{
		"same_study_1_reviewers_p95_gate":                       {"verdict=", "overhead="},
		"same_study_1_reviewers_fold_gate_b":                    {"verdict=", "latency_gated=true", "statistics_clean=true"},
		"different_studies_2_reviewers_eligibility_fold_gate_b": {"latency_gated=true"},
		"gate_b_summary":                                                      {"cells=2;", "statistics_unclean_cells=0"},
		"connection_pool_warmup":                                              {"64"},
		"same_study_1_reviewers_fold_outcomes":                                {"submissions=2;", "saved=2;", "commands=8;"},
		"same_study_1_reviewers_fold_commands_per_attempt":                    {"mean=4.00"},
		"different_studies_2_reviewers_eligibility_fold_commands_per_attempt": {"not_counted"},
		"same_study_2_reviewers_lockstep_source_only_outcomes":                {"version_conflicts=2;", "exhausted=0;"},
		"different_studies_2_reviewers_eligibility_source_only_outcomes":      {"no_delta_saves="},
	} {
		for _, part := range has {
			if !strings.Contains(a.Notes[key], part) {
				t.Errorf("%s is %q, without %s", key, a.Notes[key], part)
			}
		}
	}
	if _, there := a.Durations["different_studies_2_reviewers_eligibility_materialized"]; there {
		t.Error("an arm that did not run has durations")
	}
	if a.RoundTrips["same_study_1_reviewers_source_only"]["find"] != 2 {
		t.Errorf("%v", a.RoundTrips["same_study_1_reviewers_source_only"])
	}
	text, err = printed(t, "tables", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{"Gate (b)", "Gate (a)", "Outcomes and conflicts", "| same study | 1 | off |", "It decides nothing", "| stepdown |", "findAndModify"} {
		if !strings.Contains(text, has) {
			t.Errorf("the tables lack %q:\n%s", has, text)
		}
	}
}

func TestWhatIsNotExported(t *testing.T) {
	dir := finished(t, cellName("same_study", 1, "off", "free"))
	for what, spoil := range map[string]func(*flow.Outcome){
		"a run whose checks have not all passed": func(o *flow.Outcome) { o.Results.Clear = false },
		"a run of another study":                 func(o *flow.Outcome) { o.Run.Protocol.Name = "other" },
	} {
		o, err := flow.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newResults(o); err != nil {
			t.Fatal(err)
		}
		spoil(o)
		if _, err := newResults(o); err == nil {
			t.Errorf("%s is exported", what)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"artifact"}, {"tables", "a", "b"}, {"other"}, {"artifact", t.TempDir()}} {
		if _, err := printed(t, args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
