package artrie

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/image"
)

// TestNamesOfALostCheckpointAreNotUsedAgain: the node file of the newest checkpoint is
// damaged, so opening passes over its manifest, which stays in its slot. The next checkpoint
// crashes before it writes a manifest. The old manifest must not find a node file of its
// generation that was written for another one (K6).
func TestNamesOfALostCheckpointAreNotUsedAgain(t *testing.T) {
	fs := crashfs.New()
	a := arrangement{mode: Owned} // whose checkpoints each begin a generation
	want := map[string][]byte{}
	fill := func(s *Trie, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			k, v := ngram(i), fmt.Append(nil, i)
			if err := s.Put(k, v); err != nil {
				t.Fatal(err)
			}
			want[k] = v
		}
	}
	s := open(t, fs, a)
	for i := range 2 {
		fill(s, 40*i, 40*i+40)
		if _, err := s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s, fs)
	name := "db/" + image.NodesName(2)
	fs.Replace(name, fs.Contents(name)[:100])

	cut := false
	s = open(t, &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
		if op.Kind == "write" && strings.HasSuffix(op.Name, image.SlotsName) {
			cut = true
			fs.Crash()
		}
		return nil
	}}, a)
	if s.last.Number != 1 {
		t.Fatalf("checkpoint %d was taken, its node file is damaged", s.last.Number)
	}
	fill(s, 80, 200)
	if _, err := s.Checkpoint(); err == nil || !cut {
		t.Fatalf("the power was not cut: %v", err)
	}
	_ = s.Close() // the power is off
	for seed := range uint64(20) {
		loss := crashfs.LoseSome
		if seed < 2 {
			loss = crashfs.Loss(seed)
		}
		im := fs.Image(loss, rand.New(rand.NewPCG(seed, 0)))
		if got, err := readAll(im); err != nil || !equal(got, want) {
			names, _ := im.List("db")
			t.Fatalf("image %d: read %d keys of %d, %v; the folder has %v", seed, len(got), len(want), err, names)
		}
	}
}
