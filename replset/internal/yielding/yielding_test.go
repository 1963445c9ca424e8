package yielding

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWhoWritesATableGivesWay has one processor for two: one makes blocks and never waits for
// anything, the other one is ready to run all the time.
func TestWhoWritesATableGivesWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	fs := FS{vfs.NewMem()}
	first := func(name string) int64 {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var block, ran atomic.Int64
		go func() { ran.Store(block.Load()) }()
		for ran.Load() == 0 {
			for start := time.Now(); time.Since(start) < yieldAfter; {
			}
			block.Add(1)
			if _, err := f.Write([]byte("block")); err != nil {
				t.Fatal(err)
			}
		}
		return ran.Load()
	}
	if n := first("000001.sst"); n > 3 {
		t.Errorf("the other one ran after %d blocks of %v", n, yieldAfter)
	}
}

func TestWhatIsWrittenIsThere(t *testing.T) {
	fs := FS{vfs.NewMem()}
	for _, name := range []string{"000001.sst", "MANIFEST-000001"} {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if n, err := f.Write([]byte("block")); n != 5 || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		st, err := fs.Stat(name)
		if err != nil || st.Size() != 15 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if _, err := fs.Create("nowhere/000001.sst", vfs.WriteCategoryUnspecified); err == nil {
		t.Error("a table was made in a folder that is not there")
	}
}
