package artrie

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// TestImageInMemory writes, deletes and evicts while checkpoints write what
// they have gathered, cuts the power at a random change, and demands all that
// was acknowledged. Half of the runs fail an operation of a checkpoint instead.
func TestImageInMemory(t *testing.T) {
	runs := uint64(20)
	if long() {
		runs = 400
	}
	crashed, refused := 0, 0
	for seed := range runs {
		c, r := imageInMemory(t, seed)
		if c {
			crashed++
		}
		if r {
			refused++
		}
	}
	if crashed == 0 || refused == 0 {
		t.Errorf("%d power cuts and %d failures came about; some of each must", crashed, refused)
	}
}

func imageInMemory(t *testing.T, seed uint64) (crashed, refused bool) {
	rng := rand.New(rand.NewPCG(seed, 17))
	fs := crashfs.New()
	var changes atomic.Int64
	var failed atomic.Bool
	at := 40 + rng.Int64N(200)
	errFull := errors.New("no space")
	hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
		if !op.Changes() || changes.Add(1) < at {
			return nil
		}
		if seed%2 == 0 {
			fs.Crash()
		} else if op.Kind == "write" && len(op.Name) > 8 && op.Name[3:9] == "nodes-" && !failed.Swap(true) {
			return errFull
		}
		return nil
	}}
	opt := arrangement{mode: Owned}.options(hook)
	opt.ImageInMemory, opt.SegmentBytes = true, 64<<10
	s, err := Open("db", opt)
	if err != nil {
		t.Fatal(err)
	}
	const writers, keys = 4, 150
	var acked [writers]atomic.Int64
	var busy, checking sync.WaitGroup
	stop := make(chan struct{})
	checking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Checkpoint(); errors.Is(err, crashfs.ErrCrashed) || errors.Is(err, ErrPoisoned) {
				return
			}
			if _, err := s.Evict(0); err != nil {
				t.Errorf("seed %d: evict: %v", seed, err)
			}
		}
	})
	for w := range writers {
		busy.Go(func() {
			for i := range keys {
				// The same keys again and again: edits in place, if they may.
				if err := s.Put(fmt.Sprintf("shared-%d-%d", w, i%7), fmt.Append(nil, i)); err != nil {
					return
				}
				if _, err := s.Insert(fmt.Sprintf("w%d-%04d", w, i)); err != nil {
					return
				}
				acked[w].Store(int64(i) + 1)
			}
		})
	}
	busy.Wait()
	close(stop)
	checking.Wait()
	fs.Crash()
	crashed, refused = seed%2 == 0 && changes.Load() >= at, failed.Load()
	_ = s.Close() // the power is off
	s, err = Open("db", arrangement{}.options(fs.Image(crashfs.Loss(rng.IntN(3)), rng)))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer s.Close()
	if err := s.Check(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	for w := range writers {
		n := int64(0)
		for range s.Prefix(fmt.Sprintf("w%d-", w)) {
			n++
		}
		if a := acked[w].Load(); n < a || n > a+1 {
			t.Errorf("seed %d: writer %d: %d keys, %d were acknowledged", seed, w, n, a)
		}
		for i := max(0, acked[w].Load()-7); i < acked[w].Load(); i++ {
			v, ok, err := s.Get(fmt.Sprintf("shared-%d-%d", w, i%7))
			if got := string(v); !ok || err != nil || got != fmt.Sprint(i) && got != fmt.Sprint(i+7) {
				t.Errorf("seed %d: writer %d: the value of round %d is %q, %v, %v", seed, w, i, v, ok, err)
			}
		}
	}
	return crashed, refused
}
