package replset_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/assaylab/assay/replset"
)

// TestSoak runs histories with all faults in turn, of five seconds each, for the time
// that ASSAY_SOAK names: ASSAY_SOAK=30m go test ./replset -run TestSoak -timeout 0 -v.
func TestSoak(t *testing.T) {
	text := os.Getenv("ASSAY_SOAK")
	if text == "" {
		t.Skip("ASSAY_SOAK says for how long")
	}
	d, err := time.ParseDuration(text)
	must(t, err)
	over := time.Now().Add(d)
	for runs := 1; time.Now().Before(over); runs++ {
		seed := rand.Uint64N(1 << 32)
		o := replset.Options{LoseUnsynced: seed%3 > 0, LinearizableByWrite: seed%4 == 0}
		if seed%3 == 0 {
			o.Dir = t.TempDir()
		}
		o = o.With(replset.Hooks{KeepEntries: 32 << (seed % 8), SessionTimeout: 2 * time.Second})
		p := plan{options: o, seed: seed, last: 5 * time.Second, wait: patience, log: t.Logf}
		if err := p.run(); err != nil {
			t.Fatalf("run %d, seed %d: %v", runs, seed, err)
		}
	}
}
