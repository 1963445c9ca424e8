package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/check"
)

var checkFuncs = map[string]CheckFunc{
	"pass": func(_ context.Context, j *Judging) check.Result {
		return check.Result{Name: "it calls itself so", Verdict: check.Pass, Operations: len(j.Observations)}
	},
	"fail":    func(context.Context, *Judging) check.Result { return check.Result{Verdict: check.Fail} },
	"zero":    func(context.Context, *Judging) check.Result { return check.Result{} },
	"vacuous": func(context.Context, *Judging) check.Result { return check.Result{Verdict: check.Pass} },
	"invalid": func(context.Context, *Judging) check.Result { return check.Result{Verdict: 99, Operations: 1} },
	"panic":   func(context.Context, *Judging) check.Result { panic("judge fell over") },
	"goexit":  func(context.Context, *Judging) check.Result { runtime.Goexit(); return check.Result{} },
	"slow": func(ctx context.Context, _ *Judging) check.Result {
		<-ctx.Done()
		return check.Result{Verdict: check.Pass, Operations: 1}
	},
	"slow fail": func(ctx context.Context, _ *Judging) check.Result {
		<-ctx.Done()
		return check.Result{Verdict: check.Fail}
	},
	"hang": func(_ context.Context, j *Judging) check.Result {
		wait(released)
		return check.Result{Verdict: check.Pass, Operations: 1}
	},
	"vast": func(context.Context, *Judging) check.Result {
		return check.Result{Verdict: check.Fail, Message: strings.Repeat("m", 1<<20), Examples: make([]string, 1000)}
	},
	"meddle": func(_ context.Context, j *Judging) check.Result {
		j.Observations[0].Status, j.Observations[0] = StatusFailed, nil
		return check.Result{Verdict: check.Pass, Operations: 1}
	},
	"places": func(_ context.Context, j *Judging) check.Result {
		return check.Result{Verdict: check.Pass, Operations: 1, Message: j.Check.Name + " " + j.Cell.Name + " " + filepath.Base(j.Scratch) + " " + filepath.Base(j.ArmDir)}
	},
}

// judged runs one trial of arm a and lets a check of the given text judge it.
func judged(t *testing.T, r *rig) check.Result {
	t.Helper()
	o := r.once()
	c := &r.p.Checks[0]
	return r.Judge(context.Background(), c, Judging{Cell: r.p.Cells()[0], Round: o.Round, Observations: []*Observation{o}})
}

func TestHowAJudgeEnds(t *testing.T) {
	for _, c := range []struct {
		judge   string
		verdict check.Verdict
		message string
	}{
		{`shell: "exit 0"`, check.Pass, ""},
		{`shell: "echo fine"`, check.Pass, "fine"},
		{`shell: "echo lost 3 of 5 >&2; exit 1"`, check.Fail, "lost 3 of 5"},
		{`shell: "exit 1"`, check.Fail, "exit status 1, and it printed nothing"},
		{`shell: "echo usage; exit 2"`, check.Unknown, "exit status 2 (0 passes, 1 fails). usage"},
		{`shell: "no-such-judge"`, check.Unknown, "exit status 127"},
		{`shell: "kill -9 $$"`, check.Unknown, "SIGKILL"},
		{`shell: "kill -TERM $$"`, check.Unknown, "SIGTERM"},
		{`shell: "sleep 300", timeout: 300ms`, check.Unknown, "killed after 300ms"},
		{`shell: "sleep 300 & exit 0"`, check.Pass, ""},
		{`shell: "yes | head -c 50000000; exit 1"`, check.Fail, "y\ny"},
		{`command: [no-such-judge]`, check.Unknown, "no-such-judge"},
		{`command: ["true"]`, check.Pass, ""},
		{`command: ["false"]`, check.Fail, "exit status 1"},
		{`command: [test, "${ASSAY_ARM}", "=", a]`, check.Pass, ""},
		{`func: pass`, check.Pass, ""},
		{`func: fail`, check.Fail, ""},
		{`func: zero`, check.Unchecked, ""},
		{`func: vacuous`, check.Unknown, "looked at 0 operations"},
		{`func: invalid`, check.Unknown, ""},
		{`func: panic`, check.Unknown, "judge fell over"},
		{`func: goexit`, check.Unknown, "instead of returning"},
		{`func: slow, timeout: 100ms`, check.Unknown, "ran out of time (100ms)"},
		{`func: slow fail, timeout: 100ms`, check.Fail, ""},
		{`func: hang, timeout: 100ms`, check.Unknown, "still runs after its time-out of 100ms"},
		{`func: vast`, check.Fail, "mmm"},
		{`func: places`, check.Pass, "c all a a"},
		{`reported: true`, check.Unchecked, "did not report"},
	} {
		r := newRig(t, shell("true"), "checks: [{name: c, scope: trial, "+c.judge+"}]")
		res := judged(t, r)
		if res.Verdict != c.verdict || !strings.Contains(res.Message, c.message) || res.Name != "c" {
			t.Errorf("%s: %s %s %q", c.judge, res.Name, res.Verdict, res.Message)
		}
		if len(res.Message) > 4000 || len(res.Examples) > maxShown {
			t.Errorf("%s: a message of %d bytes, %d examples", c.judge, len(res.Message), len(res.Examples))
		}
	}
}

func TestWhatAJudgeSaysItLookedAt(t *testing.T) {
	const ask = `operations: 10, kinds: [write, read], faults: [cut]`
	say := func(s string) string { return fmt.Sprintf("echo '%s' > $ASSAY_OUT", s) }
	enough := say(`{"operations": 10, "kinds": {"write": 5, "read": 1}, "faults": {"cut": 2}, "message": "all there", "examples": ["x"]}`)
	for _, c := range []struct {
		what, line string
		verdict    check.Verdict
		message    string
	}{
		{"enough", enough, check.Pass, "all there"},
		{"enough, and a failure", enough + "; exit 1", check.Fail, "all there"},
		{"enough, and a crash", enough + "; exit 3", check.Unknown, "exit status 3"},
		{"nothing", "true", check.Unknown, "looked at 1 operations, needs 10"},
		{"too few", say(`{"operations": 9, "kinds": {"write": 5, "read": 1}, "faults": {"cut": 2}}`), check.Unknown, "looked at 9"},
		{"none", say(`{"operations": 0}`), check.Unknown, "looked at 0"},
		{"no read", say(`{"operations": 10, "kinds": {"write": 5, "read": 0}, "faults": {"cut": 2}}`), check.Unknown, "no read succeeded"},
		{"no kinds", say(`{"operations": 10, "faults": {"cut": 2}}`), check.Unknown, "no write succeeded"},
		{"the fault did not fire", say(`{"operations": 10, "kinds": {"write": 5, "read": 1}, "faults": {"kill": 2}}`), check.Unknown, "fault cut did not fire"},
		{"negative", say(`{"operations": 10, "kinds": {"write": 5, "read": 1, "x": -1}, "faults": {"cut": 2}}`), check.Unknown, "negative"},
		{"no JSON", say("ten"), check.Unknown, "not one JSON object"},
		{"no JSON, and a failure", say("ten") + "; exit 1", check.Fail, "not one JSON object"},
		{"two objects", enough + "; " + strings.Replace(enough, ">", ">>", 1), check.Unknown, "not one JSON object"},
		{"a count twice", say(`{"operations": 0, "operations": 10, "kinds": {"write": 5, "read": 1}, "faults": {"cut": 2}}`), check.Unknown, "stands twice"},
		{"wrong types", say(`{"operations": "10"}`), check.Unknown, "not one JSON object"},
		{"an empty file", "touch $ASSAY_OUT", check.Unknown, "not one JSON object"},
		{"a folder", "mkdir $ASSAY_OUT", check.Unknown, "not a regular file"},
		{"a pipe", "mkfifo $ASSAY_OUT", check.Unknown, "not a regular file"},
		{"a link", "ln -s /dev/zero $ASSAY_OUT", check.Unknown, "not one JSON object"},
		{"a gigabyte", "truncate -s 1G $ASSAY_OUT", check.Unknown, "it has 1073741824 bytes"},
		{"its own folder removed", "rm -rf $(dirname $ASSAY_OUT)", check.Unknown, "looked at 1"},
	} {
		r := newRig(t, shell("true"), fmt.Sprintf("checks: [{name: c, scope: trial, shell: %q, %s}]", c.line, ask))
		began := time.Now()
		res := judged(t, r)
		if res.Verdict != c.verdict || !strings.Contains(res.Message, c.message) || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %s %q after %s", c.what, res.Verdict, res.Message, time.Since(began))
		}
		// Its word must not reach the next judge.
		silent := r.p.Checks[0]
		silent.Shell = "true"
		if res := r.Judge(context.Background(), &silent, Judging{Cell: r.p.Cells()[0], Observations: []*Observation{{Arm: "a"}}}); res.Verdict != check.Unknown {
			t.Errorf("after %s a silent judge: %s %q", c.what, res.Verdict, res.Message)
		}
	}
}

// A harness that was killed leaves what the judge under way had written.
func TestNobodyElseSpeaksForAJudge(t *testing.T) {
	r := newRig(t, shell("true"), "checks: [{name: c, scope: run, shell: \"true\", operations: 10}]")
	if err := os.WriteFile(filepath.Join(r.dir, "scratch", "out", "check.jsonl"), []byte(`{"operations": 10}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := r.Judge(context.Background(), &r.p.Checks[0], Judging{}); res.Verdict != check.Unknown {
		t.Errorf("%s %q", res.Verdict, res.Message)
	}
}

func TestWhereAJudgeRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	t.Setenv(dumpVar, dump)
	t.Setenv("ASSAY_NONSENSE", "from outside")
	for scope, want := range map[string]map[string]string{
		"trial": {"ASSAY_ARM": "a", "ASSAY_ROUND": "2", "ASSAY_SEED": "102", "MINE": "x", "ASSAY_SCRATCH": "scratch/trial/a", "ASSAY_ARM_DIR": "scratch/arms/a"},
		"round": {"ASSAY_ARM": "", "ASSAY_ROUND": "2", "ASSAY_SCRATCH": "scratch/trial"},
		"cell":  {"ASSAY_ARM": "", "ASSAY_SCRATCH": "scratch/trial"},
		"run":   {"ASSAY_ARM": "", "ASSAY_SCRATCH": "scratch/trial"},
	} {
		r := newRig(t, shell("true", "env: {MINE: x}"), fmt.Sprintf("checks: [{name: c, scope: %s, command: [%s]}]", scope, self), "factors: [{name: size, levels: [16]}]")
		o := r.trial("a", 2)
		res := r.Judge(context.Background(), &r.p.Checks[0], Judging{Cell: r.p.Cells()[0], Round: 2, Observations: []*Observation{o}})
		if res.Verdict != check.Pass {
			t.Fatalf("%s: %s %q", scope, res.Verdict, res.Message)
		}
		env := environ(t, dump)
		for k, v := range want {
			if strings.HasPrefix(v, "scratch") {
				v = filepath.Join(r.dir, v)
			}
			if env[k] != v {
				t.Errorf("scope %s: %s is %q, not %q", scope, k, env[k], v)
			}
		}
		if env["ASSAY_PHASE"] != "check" || env["ASSAY_FACTOR_SIZE"] != "16" || env["ASSAY_CELL"] != "size=16" {
			t.Errorf("scope %s: %v", scope, env)
		}
		if _, ok := env["ASSAY_NONSENSE"]; ok {
			t.Errorf("scope %s: a variable of an outer run came through", scope)
		}
	}
}

func TestAJudgeSeesWhatTheRoundLeft(t *testing.T) {
	r := newRig(t, `  - {name: a, shell: "echo same > $ASSAY_SCRATCH/result"}
  - {name: b, shell: "echo $ASSAY_ROUND > $ASSAY_SCRATCH/result; test $ASSAY_ROUND = 1 || echo same > $ASSAY_SCRATCH/result"}`,
		`checks: [{name: c, scope: round, shell: "cmp $ASSAY_SCRATCH/a/result $ASSAY_SCRATCH/b/result"}]`)
	for round, verdict := range []check.Verdict{check.Pass, check.Fail, check.Pass} {
		obs := []*Observation{r.trial("b", round), r.trial("a", round)}
		if res := r.Judge(context.Background(), &r.p.Checks[0], Judging{Cell: r.p.Cells()[0], Round: round, Observations: obs}); res.Verdict != verdict {
			t.Errorf("round %d: %s %q", round, res.Verdict, res.Message)
		}
	}
}

// What a judge does to the observations it is shown stays with it.
func TestAJudgeCannotChangeObservations(t *testing.T) {
	r := newRig(t, shell("true"), "checks: [{name: c, scope: cell, func: meddle}]")
	obs := []*Observation{r.once()}
	r.Judge(context.Background(), &r.p.Checks[0], Judging{Observations: obs})
	if obs[0] == nil || obs[0].Status != StatusOK {
		t.Errorf("it did: %+v", obs[0])
	}
}

func TestReportedByAFunction(t *testing.T) {
	each(t, func(t *testing.T, design string) {
		r := newRig(t, function("reporter"), design, "checks: [{name: c, scope: trial, reported: true}]")
		for round, verdict := range []check.Verdict{check.Pass, check.Fail} {
			o := r.trial("a", round)
			if res := r.Judge(context.Background(), &r.p.Checks[0], Judging{Observations: []*Observation{o}}); res.Verdict != verdict {
				t.Errorf("round %d: %s %q", round, res.Verdict, res.Message)
			}
		}
	})
}
