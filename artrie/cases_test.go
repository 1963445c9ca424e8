package artrie

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/artrie/internal/image"
)

// The cases below are defects that another durable trie had, each of which lost or
// doubled something acknowledged. The race between choosing a victim and
// overwriting it is radix.TestEvictionNeedsTheVeryNode.

// TestRecoverCheckpointReopenCountsOnce: what was replayed from the log must not be
// counted, or replayed, again after the checkpoint that has it.
func TestRecoverCheckpointReopenCountsOnce(t *testing.T) {
	for _, a := range arrangements() {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			for i := range 20 {
				if err := s.Put(ngram(i%15), fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Delete(ngram(3)); err != nil {
				t.Fatal(err)
			}
			fs.Crash() // the process is killed
			_ = s.Close()
			fs = fs.Image(crashfs.LoseNone, nil)
			s = open(t, fs, a)
			if got := s.Stats().Replayed; got != 21 || s.Len() != 14 {
				t.Fatalf("replayed %d operations to %d keys", got, s.Len())
			}
			c, err := s.Checkpoint()
			if err != nil || c.Covered != 21 {
				t.Fatalf("the checkpoint covers %d operations, %v", c.Covered, err)
			}
			closed(t, s, fs)
			s = open(t, fs, a)
			if got := s.Stats().Replayed; got != 0 || s.Len() != 14 || int64(len(contents(t, s, ""))) != 14 {
				t.Fatalf("replayed %d operations again, %d keys", got, s.Len())
			}
			if err := s.Put("next", nil); err != nil || s.log.Last() != 22 {
				t.Fatalf("the next operation is number %d, %v", s.log.Last(), err)
			}
			closed(t, s, fs)
		})
	}
}

// TestCrashBetweenImageAndLog: the image is durable and nothing after it has
// happened. The image itself says what it covers, so nothing is applied twice.
func TestCrashBetweenImageAndLog(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			var published bool
			room := false // the slots have been made
			hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
				if published && op.Changes() {
					fs.Crash()
				}
				if op.Kind == "write" && strings.HasSuffix(op.Name, image.SlotsName) {
					room, published = true, room
				}
				return nil
			}}
			s := open(t, hook, a)
			for i := range 20 {
				if _, err := s.Insert(ngram(i)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Delete(ngram(7)); err != nil {
				t.Fatal(err)
			}
			_, _ = s.Checkpoint() // it meets the crash
			_ = s.Close()
			if !published {
				t.Fatal("no manifest was written")
			}
			// It may be there or not.
			for _, loss := range []crashfs.Loss{crashfs.LoseAll, crashfs.LoseNone} {
				image := fs.Image(loss, nil)
				s := open(t, image, a)
				want := 0
				if loss == crashfs.LoseAll {
					want = 21
				}
				if got := s.Stats().Replayed; got != want || s.Len() != 19 {
					t.Fatalf("loss %d: replayed %d operations, want %d; %d keys", loss, got, want, s.Len())
				}
				closed(t, s, image)
			}
		})
	}
}

// TestNothingOfACheckpointTakesANumber: a record that no writer ever finishes would
// be a hole that the watermark never passes, and the log would grow for ever.
func TestNothingOfACheckpointTakesANumber(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			written := uint64(0)
			for round := range 8 {
				for i := range 30 {
					if err := s.Put(ngram(i), []byte(strings.Repeat("v", 200))); err != nil {
						t.Fatal(err)
					}
					written++
				}
				if c, err := s.Checkpoint(); err != nil || c.Covered != written {
					t.Fatalf("round %d: covers %d operations of %d, %v", round, c.Covered, written, err)
				}
				if round == 4 {
					closed(t, s, fs)
					s = open(t, fs, a)
				}
			}
			// Two checkpoints are kept, so the log of two rounds is.
			if got, most := s.Stats().LogBytes, int64(5*30*256); got > most {
				t.Errorf("the log has %d bytes, more than %d: it is not reclaimed", got, most)
			}
			closed(t, s, fs)
		})
	}
}

// TestReplayDecidesAsTheWritersDid races insert and delete of one key: what the
// last reader saw is what the log gives back.
func TestReplayDecidesAsTheWritersDid(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {committer: CAS, durability: Immediate}, {committer: CAS, durability: None}, {mode: Owned}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			for round := range 40 {
				var busy sync.WaitGroup
				errs := make([]error, 4)
				for w := range 4 {
					busy.Go(func() {
						for i := range 3 {
							var err error
							switch (w + i) % 3 {
							case 0:
								_, err = s.Insert("key")
							case 1:
								_, err = s.Delete("key")
							default:
								err = s.Put("key", fmt.Append(nil, round, w, i))
							}
							errs[w] = errors.Join(errs[w], err)
						}
					})
				}
				busy.Wait()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				seen, there, err := s.Get("key")
				if err != nil {
					t.Fatal(err)
				}
				if round%7 == 3 {
					if _, err := s.Checkpoint(); err != nil {
						t.Fatal(err)
					}
				}
				image := fs.Image(crashfs.LoseNone, nil)
				again := open(t, image, arrangement{})
				if got, ok, err := again.Get("key"); err != nil || ok != there || string(got) != string(seen) {
					t.Fatalf("round %d: %q %v was seen, replay gives %q %v, %v", round, seen, there, got, ok, err)
				}
				closed(t, again, image)
			}
			closed(t, s, fs)
		})
	}
}
