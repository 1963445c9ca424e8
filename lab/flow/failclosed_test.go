package flow

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// Whatever goes wrong in a trial or a judgement, the verdict is not go.
func TestNothingThatGoesWrongPasses(t *testing.T) {
	const end = "\n[ $ASSAY_ROUND = 2 ] && [ $ASSAY_ARM = treatment ] && [ $ASSAY_CELL = size=1 ] || exit 0\n"
	in := func(bad string) string { return script + end + bad + "\n" }
	warm := func(bad string) string {
		return script + strings.Replace(end, "ASSAY_ROUND = 2", "ASSAY_ROUND = 0", 1) + bad + "\n"
	}
	for what, c := range map[string]struct {
		script  string
		replace []string
		outcome string
		class   gate.Class
	}{
		"as it should be":                         {script: script, outcome: "PROCEED", class: gate.Go},
		"a trial fails":                           {script: in("exit 1"), outcome: "UNCHECKED", class: gate.Invalid},
		"a trial crashes":                         {script: in("kill -9 $$"), outcome: "UNCHECKED", class: gate.Invalid},
		"a warm-up fails":                         {script: warm("exit 1"), outcome: "UNCHECKED", class: gate.Invalid},
		"it says so and fails":                    {script: in(`echo '{"check": "sound", "status": "fail"}'; exit 1`), outcome: "ABORT", class: gate.NoGo},
		"it says so and crashes":                  {script: in(`echo '{"check": "sound", "status": "fail"}' > $ASSAY_OUT; kill -9 $$`), outcome: "ABORT", class: gate.NoGo},
		"it says both":                            {script: in(`echo '{"check": "sound", "status": "fail"}'`), outcome: "ABORT", class: gate.NoGo},
		"it says so of a warm-up":                 {script: warm(`echo '{"check": "sound", "status": "fail"}'`), outcome: "ABORT", class: gate.NoGo},
		"it fails a check nobody declared":        {script: in(`echo '{"check": "extra", "status": "fail"}'`), outcome: "ABORT", class: gate.NoGo},
		"it fails the judge's check":              {script: in(`echo '{"check": "left", "status": "fail"}'`), outcome: "ABORT", class: gate.NoGo},
		"it passes what the judge fails":          {script: in(`echo '{"check": "left", "status": "pass"}'; rm $ASSAY_SCRATCH/left`), outcome: "ABORT", class: gate.NoGo},
		"it says half of it":                      {script: in(`printf '{"check": "sound", "status": "fa' > $ASSAY_OUT`), outcome: "UNCHECKED", class: gate.Invalid},
		"it is not sure":                          {script: in(`echo '{"check": "sound", "status": "unknown"}'`), outcome: "UNCHECKED", class: gate.Invalid},
		"it reports nothing":                      {script: "#!/bin/sh\n[ $ASSAY_ROUND = 2 ] && echo '{\"ops\": 1}' && exit 0\n" + strings.TrimPrefix(script, "#!/bin/sh\n"), outcome: "ABORT", class: gate.NoGo},
		"its value is twice there":                {script: in(`echo '{"ops": 1}'`), outcome: "MISSING-DATA", class: gate.Invalid},
		"its value is none":                       {script: in(`echo '{"ops": "NaN"}'`), outcome: "MISSING-DATA", class: gate.Invalid},
		"it leaves too little":                    {script: in(`: > $ASSAY_SCRATCH/left`), outcome: "ABORT", class: gate.NoGo},
		"the arms disagree":                       {script: in(`echo other > $ASSAY_SCRATCH/left`), outcome: "ABORT", class: gate.NoGo},
		"it never ends":                           {script: in("exec sleep 300"), replace: []string{`"1"]}`, `"1"], timeout: 1s}`}, outcome: "UNCHECKED", class: gate.Invalid},
		"it prints without end":                   {script: in("exec yes"), outcome: "UNCHECKED", class: gate.Invalid},
		"prepare fails":                           {script: script, replace: []string{`"1"]}`, `"1"], prepare: "test $ASSAY_ROUND != 2"}`}, outcome: "UNCHECKED", class: gate.Invalid},
		"the program is missing":                  {script: script, replace: []string{`[./arm.sh, "1"]`, `["${ASSAY_ARM_DIR}/none"]`}, outcome: "ABORT", class: gate.NoGo},
		"another arm reports a check not its own": {script: script + "[ $ASSAY_ARM = control ] && echo '{\"check\": \"mine\", \"status\": \"fail\"}'\ntrue\n", replace: []string{"checks:", "checks:\n  - {name: mine, scope: trial, shell: \"true\", arms: [treatment]}"}, outcome: "ABORT", class: gate.NoGo},
		"a round's judge crashes":                 {script: script, replace: []string{"shell: 'cmp", "shell: 'kill -9 $$; cmp"}, outcome: "UNCHECKED", class: gate.Invalid},
		"a cell's judge is missing":               {script: script, replace: []string{"scope: cell, shell: '", "scope: cell, shell: 'no-such-judge && "}, outcome: "UNCHECKED", class: gate.Invalid},
		"the run's judge never ends":              {script: script, replace: []string{"scope: run, shell: '", "scope: run, timeout: 500ms, shell: 'sleep 300 && "}, outcome: "UNCHECKED", class: gate.Invalid},
		"a judge looked at too little":            {script: script, replace: []string{"scope: run,", "scope: run, operations: 2,"}, outcome: "UNCHECKED", class: gate.Invalid},
		"a fault did not fire":                    {script: script, replace: []string{"scope: run,", "scope: run, faults: [cut],"}, outcome: "UNCHECKED", class: gate.Invalid},
	} {
		b := newBench(t, with(append(c.replace, "[1, 2]", "[1]")...))
		b.write("arm.sh", c.script)
		o := b.run("run")
		if o.Verdict.Outcome != c.outcome || o.Verdict.Class != c.class {
			t.Errorf("%s: %s %s: %s", what, o.Verdict.Outcome, o.Verdict.Class, o.Verdict.Why)
		}
		if o.Verdict.Outcome != "PROCEED" && o.Verdict.Outcome != "MISSING-DATA" && len(o.Results.Cells) > 0 {
			t.Errorf("%s: figures were computed", what)
		}
		intact(t, b.path("run"))
	}
}

func TestASetupThatFailsEndsTheRun(t *testing.T) {
	b := newBench(t, with(`"1"]}`, `"1"], setup: "test -e allowed || { echo cannot build; exit 1; }", cleanup: "echo x >> cleaned"}`))
	_, err := Run(context.Background(), b.plan, b.freeze(), Options{Out: b.path("run")})
	if err == nil || !strings.Contains(err.Error(), "setup of arm treatment") || !strings.Contains(err.Error(), "cannot build") {
		t.Fatalf("%v", err)
	}
	if slurp(t, b.path("cleaned")) != "x\n" {
		t.Error("not cleaned up")
	}
	if run := intact(t, b.path("run")); run.Ended() {
		t.Error("the run is said to have ended")
	}
	b.write("allowed", "")
	if o := b.resume("run"); o.Verdict.Outcome != "PROCEED" {
		t.Errorf("gone on: %s", o.Verdict.Outcome)
	}
}

func TestACleanUpThatFailsIsNoted(t *testing.T) {
	b := newBench(t, with(`"1"]}`, `"1"], cleanup: "echo stuck; exit 3"}`))
	var told []string
	o, err := Run(context.Background(), b.plan, b.freeze(), Options{Out: b.path("run"), Events: Events{Note: func(s string) { told = append(told, s) }}})
	if err != nil {
		t.Fatal(err)
	}
	noted := false
	for _, rec := range o.Run.Records {
		noted = noted || rec.Note != nil && strings.Contains(rec.Note.Text, "clean-up of arm treatment") && strings.Contains(rec.Note.Text, "stuck")
	}
	if !noted || len(told) != 1 {
		t.Errorf("noted %v, told %q", noted, told)
	}
}

// What cannot be written must not be lost from the count.
func TestALedgerThatBreaksEndsTheRun(t *testing.T) {
	b := newBench(t, with())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	o := Options{Out: b.path("run"), Events: Events{Trial: func(o *trial.Observation) {
		if n++; n == 4 {
			// A record that cannot be encoded.
			o.Checks = append(o.Checks, check.Result{Name: "x", Verdict: 99})
		}
	}}}
	if _, err := Run(ctx, b.plan, b.freeze(), o); err == nil || !strings.Contains(err.Error(), "record") {
		t.Fatalf("%v", err)
	}
	if got := len(trials(intact(t, b.path("run")))); got != 3 || n != 4 {
		t.Errorf("%d trials are recorded of %d", got, n)
	}
	if o := b.resume("run"); o.Verdict.Outcome != "PROCEED" {
		t.Errorf("gone on: %s", o.Verdict.Outcome)
	}
}

// Damage to an unfinished run is found before anything is added to it.
func TestADamagedRunDoesNotGoOn(t *testing.T) {
	b := newBench(t, with())
	b.stopAfter(6, b.starting("run", Options{}))
	chain := slurp(t, b.path("run/observations.jsonl"))
	var damage *ledger.IntegrityError
	for what, now := range map[string]string{
		"a figure changed":  strings.Replace(chain, `"values":{"ops":1`, `"values":{"ops":2`, 1),
		"a failure removed": strings.Replace(chain, `"status":"ok"`, `"status":"OK"`, 1),
	} {
		b.write("run/observations.jsonl", now)
		if now == chain {
			t.Fatalf("%s: nothing was changed", what)
		}
		for verb, err := range map[string]error{
			"resume":  func() error { _, err := Resume(context.Background(), b.path("run"), nil, Options{}); return err }(),
			"analyze": func() error { _, err := Analyze(b.path("run"), true); return err }(),
			"report":  func() error { _, err := Load(b.path("run")); return err }(),
		} {
			if !errors.As(err, &damage) {
				t.Errorf("%s, %s: %v", what, verb, err)
			}
		}
		if slurp(t, b.path("run/observations.jsonl")) != now {
			t.Errorf("%s: the chain was written", what)
		}
	}
}
