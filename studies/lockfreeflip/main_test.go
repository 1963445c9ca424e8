package lockfreeflip

import (
	"context"
	"os"
	"testing"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/trial"
)

// TestMain also runs single trials: the harness starts this program again for each.
func TestMain(m *testing.M) {
	s := withDefects()
	if exit, ok := trial.Child(context.Background(), trial.Funcs{Arms: s.Arms, Checks: s.Checks}); ok {
		os.Exit(exit)
	}
	os.Exit(m.Run())
}

// withDefects is the study with an arm function for each planted defect. They
// exist in this test binary and nowhere else.
func withDefects() *flow.Study {
	s := New()
	for name, d := range planted {
		s.Arms[name] = func(ctx context.Context, t *trial.T) error { return run(ctx, t, d) }
	}
	return s
}
