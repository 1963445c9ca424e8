package crashfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// TestWhatACrashMayTake: the synced stays, the rest is drawn by sector and by name.
func TestWhatACrashMayTake(t *testing.T) {
	f := New()
	if err := f.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	file, err := f.Create("d/a")
	if err != nil {
		t.Fatal(err)
	}
	write := func(b byte) {
		t.Helper()
		if _, err := file.WriteAt(bytes.Repeat([]byte{b}, 4*Sector), 0); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if err := errors.Join(file.Sync(), f.SyncDir("d"), f.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	write(2)
	write(3)
	if err := f.Rename("d/a", "d/b"); err != nil {
		t.Fatal(err)
	}
	if b := f.Image(LoseAll, nil).Contents("d/a"); len(b) != 4*Sector || b[0] != 1 {
		t.Errorf("after losing everything: %d bytes", len(b))
	}
	none := f.Image(LoseNone, nil)
	if b := none.Contents("d/b"); len(b) != 4*Sector || b[0] != 3 {
		t.Errorf("after losing nothing: %d bytes", len(b))
	}
	if b := none.Image(LoseAll, nil).Contents("d/a"); len(b) == 0 || b[0] != 1 {
		t.Error("what a killed process wrote became durable by itself")
	}
	torn, renamed := map[string]bool{}, map[bool]bool{}
	for seed := range uint64(200) {
		image := f.Image(LoseSome, rand.New(rand.NewPCG(seed, 0)))
		b := image.Contents("d/b")
		renamed[b != nil] = true
		if b == nil {
			b = image.Contents("d/a")
		}
		torn[string([]byte{b[0], b[Sector], b[2*Sector], b[3*Sector]})] = true
	}
	if len(torn) < 30 || len(renamed) != 2 {
		t.Errorf("200 crashes gave %d contents and %d names", len(torn), len(renamed))
	}
	f.Crash()
	if _, err := f.Open("d/b"); !errors.Is(err, ErrCrashed) {
		t.Errorf("open after the crash: %v", err)
	}
}
