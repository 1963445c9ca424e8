package screeningwrite

import (
	"errors"

	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/screening"
)

// record tells the lab what the batch was. Samples are in nanoseconds, sizes in bytes,
// rates per second.
func (b *batch) record(t *trial.T, e *evidence) {
	var took, attempts []int64
	conflicts, exhausted := map[screening.Cause]int{}, map[screening.Cause]int{}
	n := map[string]int{}
	for _, s := range b.submissions {
		took = append(took, int64(s.took))
		for _, a := range s.attempts {
			attempts = append(attempts, int64(a))
		}
		for _, k := range s.out.Conflicts {
			conflicts[k.Cause]++
			n["conflicts"]++
		}
		n["free_retries"] += s.out.Free
		if s.saved {
			n["saved"]++
			if !s.moves {
				n["no_delta"]++
			}
		}
		if s.resolved || s.out.Resolved || s.open {
			n["unknown_commits"]++
		}
		switch {
		case s.saved || s.err == nil:
		case errors.Is(s.err, screening.ErrExhausted):
			n["exhausted"]++
			exhausted[s.out.Conflicts[len(s.out.Conflicts)-1].Cause]++
		default:
			n["failed"]++
		}
	}
	t.Samples("submission", took)
	t.Samples("attempt", attempts)
	t.Samples("sync", []int64{int64(b.sync)})
	for _, key := range []string{"conflicts", "free_retries", "saved", "no_delta", "unknown_commits", "exhausted", "failed"} {
		t.Record(key, float64(n[key]))
	}
	t.Record("submissions", float64(len(b.submissions)))
	t.Record("attempts", float64(len(attempts)))
	for key, cause := range causeKeys() {
		t.Record("conflicts_"+key, float64(conflicts[cause]))
	}
	// A submission is exhausted by statistics when its last attempt lost against a write
	// that only statistics need, which a fold is too.
	t.Record("exhausted_statistics", float64(exhausted[screening.Statistics]+exhausted[screening.StudyFold]))
	t.Record("exhausted_study", float64(exhausted[screening.StudySave]))
	t.Record("exhausted_token", float64(exhausted[screening.ProjectToken]))
	t.Record("exhausted_unattributed", float64(exhausted[screening.Unattributed]))
	t.Record("connections_opened", float64(b.seen.connections))
	t.Record("largest_document", float64(e.largest))
	t.Record("save_rate", float64(n["saved"])/b.window.Seconds())
	if b.f.arm.path == screening.Fold {
		t.Record("entries_folded", float64(e.drain.entries+b.during.entries))
		t.Record("worker_lost", float64(e.drain.lost+b.during.lost))
		if e.drain.folded > 0 && !e.drain.killed {
			t.Record("drain_rate", float64(e.drain.folded)/e.drain.took.Seconds())
		}
	}
	if b.seen.commands != nil {
		b.recordCommands(t)
	}
	if b.struck {
		t.Note("%s struck in the middle of the batch: %d saved, %d exhausted, %d failed, %d with an outcome that was unknown at first", b.f.cell.regime.fault, n["saved"], n["exhausted"], n["failed"], n["unknown_commits"])
	}
}

// causeKeys are the causes as metrics name them.
func causeKeys() map[string]screening.Cause {
	return map[string]screening.Cause{
		"study": screening.StudySave, "fold": screening.StudyFold, "token": screening.ProjectToken, "statistics": screening.Statistics,
		"unattributed": screening.Unattributed, "interrupted": screening.Interrupted,
	}
}

// recordCommands: by name for the window; per attempt only where one reviewer is alone,
// since otherwise an attempt's commands cannot be told from its neighbours'.
func (b *batch) recordCommands(t *trial.T) {
	total := 0
	for name, k := range b.seen.commands {
		t.Record("commands_"+name, float64(k))
		total += k
	}
	t.Record("commands", float64(total))
	if b.f.cell.reviewers > 1 {
		return
	}
	var per []int64
	for _, s := range b.submissions {
		for _, k := range s.commands {
			per = append(per, int64(k))
		}
	}
	t.Samples("commands_per_attempt", per)
}
