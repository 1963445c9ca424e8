package ordered

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestAStoreOpensAfterAnyPowerFailure crashes before each change of the files of a store
// that is made and opened again, keeping of what was not synced what is drawn.
func TestAStoreOpensAfterAnyPowerFailure(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		mem := vfs.NewCrashableMem()
		var mu sync.Mutex
		var crashed []*vfs.MemFS
		stepping := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: r}))
			}
			return nil
		}))
		for range 2 {
			open(t, FS{stepping})
		}
		if len(crashed) < 20 {
			t.Fatalf("only %d places to crash at", len(crashed))
		}
		for _, fs := range crashed {
			open(t, FS{fs})
		}
	}
}

func open(t *testing.T, fs vfs.FS) {
	t.Helper()
	db, err := pebble.Open("db", &pebble.Options{FS: fs, DisableWAL: true, Logger: quiet{t}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

type quiet struct{ t *testing.T }

func (quiet) Infof(string, ...any)        {}
func (quiet) Errorf(string, ...any)       {}
func (q quiet) Fatalf(f string, v ...any) { q.t.Fatalf(f, v...) }
