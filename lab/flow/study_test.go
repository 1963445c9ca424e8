package flow

import (
	"context"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
)

var studies = []*Study{{
	Name: "functions", About: "a study of functions",
	Protocols: map[string][]byte{"": []byte(functions)},
	Arms: map[string]trial.ArmFunc{
		"plain": func(_ context.Context, t *trial.T) error { t.Record("ops", float64(t.Seed%1000)); return nil },
		"plus": func(_ context.Context, t *trial.T) error {
			t.Record("ops", float64(t.Seed%1000+100+t.Seed%7))
			return nil
		},
	},
	Checks: map[string]trial.CheckFunc{
		"each": func(_ context.Context, j *trial.Judging) check.Result {
			return check.Result{Verdict: check.Pass, Operations: len(j.Observations)}
		},
	},
}}

const functions = `
assay: 1
name: functions
question: Is more more?
arms:
  - {name: control, func: plain}
  - {name: treatment, func: plus}
design: {rounds: 6, seed: 3}
metrics: [{name: ops, source: json, better: higher}]
checks: [{name: each, scope: run, func: each, operations: 12}]
primary: {metric: ops}
decision: {preset: four-branch}
`
