package lockfreeflip

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/trial"
)

// The protocols. decision is the question as a team has it, replication that of
// the benchmark it grew from; the quick ones try all of it and decide nothing.
var (
	//go:embed protocols/decision.yaml
	decision []byte
	//go:embed protocols/quick.yaml
	quick []byte
	//go:embed protocols/replication.yaml
	replication []byte
	//go:embed protocols/replication-quick.yaml
	replicationQuick []byte
)

// New is the study with its protocols.
func New() *flow.Study {
	return &flow.Study{
		Name:  "lockfree-flip",
		About: "may a durable trie under one lock be replaced by a lock-free overlay?",
		Protocols: map[string][]byte{
			"": decision, "quick": quick,
			"replication": replication, "replication-quick": replicationQuick,
		},
		Arms: map[string]trial.ArmFunc{
			"store": func(ctx context.Context, t *trial.T) error { return run(ctx, t, defect{}) },
		},
		Checks: map[string]trial.CheckFunc{"same_start": sameStart},
	}
}

// sameStart: all arms of a round began with the same files, byte for byte. Each
// trial has compared its own copy with the digest that it reports.
func sameStart(_ context.Context, j *trial.Judging) check.Result {
	res := check.Result{Verdict: check.Pass}
	for _, o := range j.Observations {
		digest, ok := o.Values["start_digest"]
		if !ok {
			return check.Result{Verdict: check.Unknown, Message: fmt.Sprintf("arm %s does not say what it began with", o.Arm)}
		}
		if first := j.Observations[0].Values["start_digest"]; digest != first {
			res.Verdict = check.Fail
			res.Message = fmt.Sprintf("arm %s began with other content (%012x) than arm %s (%012x)", o.Arm, uint64(digest), j.Observations[0].Arm, uint64(first))
		}
		res.Operations++
	}
	return res
}
