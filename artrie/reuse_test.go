package artrie

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/image"
)

// crashBefore cuts the power before the first operation that matches.
func crashBefore(fs *crashfs.FS, match func(crashfs.Op) bool) fsys.FS {
	return &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
		if match(op) {
			fs.Crash()
		}
		return nil
	}}
}

// draw takes images of a crash until one is as wanted, and returns that one.
func draw(t *testing.T, fs *crashfs.FS, wanted func(*crashfs.FS) bool) *crashfs.FS {
	t.Helper()
	for seed := range uint64(2000) {
		if im := fs.Image(crashfs.LoseSome, rand.New(rand.NewPCG(seed, 0))); wanted(im) {
			return im
		}
	}
	t.Fatal("no crash leaves what this test is about")
	return nil
}

func has(fs *crashfs.FS, name string) bool { return fs.Contents("db/"+name) != nil }

// TestNamesOfALostCheckpointAreNotUsedAgain: a crash keeps the manifest of a new
// generation and loses its node file, so opening passes over it and removes it. The next
// checkpoint crashes, and the removal is lost: the old manifest is there again. It must
// not find a node file of its generation that was written for another one (K6).
func TestNamesOfALostCheckpointAreNotUsedAgain(t *testing.T) {
	fs := crashfs.New()
	// No segment is prepared meanwhile: its sync of the folder would settle the names.
	wide := func(fs fsys.FS) *Options {
		o := arrangement{}.options(fs)
		o.SegmentBytes = 64 << 10
		return o
	}
	s, err := Open("db", wide(crashBefore(fs, func(op crashfs.Op) bool {
		return op.Kind == "syncdir" && has(fs, image.ManifestName(1))
	})))
	if err != nil {
		t.Fatal(err)
	}
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
	fill(s, 0, 40)
	if _, err := s.Checkpoint(); err == nil {
		t.Fatal("the power was not cut")
	}
	_ = s.Close() // the power is off
	one := draw(t, fs, func(im *crashfs.FS) bool {
		return has(im, image.ManifestName(1)) && !has(im, image.NodesName(1))
	})

	s, err = Open("db", wide(crashBefore(one, func(op crashfs.Op) bool {
		return op.Kind == "create" && strings.HasSuffix(op.Name, "checkpoint.tmp")
	})))
	if err != nil {
		t.Fatal(err)
	}
	fill(s, 40, 90)
	if _, err := s.Checkpoint(); err == nil {
		t.Fatal("the power was not cut again")
	}
	_ = s.Close() // the power is off
	back := 0
	for seed := range uint64(60) {
		two := one.Image(crashfs.LoseSome, rand.New(rand.NewPCG(seed, 0)))
		if has(two, image.ManifestName(1)) {
			back++
		}
		if got, err := readAll(two); err != nil || !equal(got, want) {
			names, _ := two.List("db")
			t.Fatalf("image %d: read %d keys of %d, %v; the folder has %v", seed, len(got), len(want), err, names)
		}
	}
	if back == 0 {
		t.Fatal("the old manifest never came back")
	}
}
