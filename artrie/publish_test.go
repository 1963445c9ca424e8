package artrie

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// publishes says whether the operation that a hook sees is one of publishing a manifest.
func publishes() bool {
	pc := make([]uintptr, 24)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "image.(*Slots).Publish") {
			return true
		}
		if !more {
			return false
		}
	}
}

// TestAFailedPublication fails each operation of publishing a manifest in turn, done or not done,
// and goes on. The power is cut when the next checkpoint has written its blocks and not its
// manifest, if there is a next one, and at the end (K8).
func TestAFailedPublication(t *testing.T) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}} {
		for name, fault := range map[string]error{"eio": syscall.EIO, "short": crashfs.Short, "late": crashfs.Late} {
			t.Run(fmt.Sprintf("%v/%s", a, name), func(t *testing.T) {
				failed, final := 0, 0
				for at := 1; ; at++ {
					p := publication{fs: crashfs.New(), a: a, fault: fault, at: at, acked: map[string]string{}, maybe: map[string][]string{}}
					if err := p.run(); err != nil {
						t.Fatalf("operation %d: %v", at, err)
					}
					if p.n < at {
						break
					}
					if p.fired {
						failed++
					}
					if p.final {
						final++
					}
				}
				// In the first publication the file is made; of each, write and sync are final.
				if failed < 6 || final < 5 || final == failed {
					t.Errorf("%d operations failed, %d of them for good", failed, final)
				}
			})
		}
	}
}

// publication is a run in which one operation of those that publish fails.
type publication struct {
	fs    *crashfs.FS
	a     arrangement
	fault error
	at    int // which operation
	n     int // operations so far
	fired bool
	next  bool  // another manifest was about to be written after it
	lost  error // what a power cut would have taken then
	final bool  // no other checkpoint is made
	acked map[string]string
	maybe map[string][]string // what failed writes may have left
}

func (p *publication) before(op crashfs.Op) error {
	if !publishes() {
		return nil
	}
	p.n++
	if p.n == p.at && (p.fault != crashfs.Short || op.Kind == "write") {
		p.fired = true
		return p.fault
	}
	if p.fired && !p.next {
		p.next, p.lost = true, p.cut()
	}
	return nil
}

func (p *publication) run() error {
	s, err := Open("db", p.a.options(&crashfs.Faulty{FS: p.fs, Before: p.before}))
	if err != nil {
		return err
	}
	write := func(i int) {
		k, v := fmt.Sprintf("k%02d", i%17), fmt.Sprint(i, strings.Repeat("v", 40*i))
		if err := s.Put(k, []byte(v)); err != nil {
			p.maybe[k] = append(p.maybe[k], v)
			return
		}
		p.acked[k] = v
		delete(p.maybe, k)
	}
	for i := range 30 {
		write(i)
		if i%6 == 5 {
			_, _ = s.Checkpoint() // what a failure means is asked below
		}
	}
	write(30)
	if _, err = s.Checkpoint(); err != nil && s.writable() == nil {
		_, err = s.Checkpoint()
	}
	if p.final = s.writable() != nil; err != nil && !p.final {
		return fmt.Errorf("the last checkpoint: %w", err)
	}
	if p.fired && p.final == p.next {
		return fmt.Errorf("poisoned: %v; there was another checkpoint: %v", p.final, p.next)
	}
	if p.lost != nil {
		return fmt.Errorf("a power cut in the checkpoint after it: %w", p.lost)
	}
	if err := p.cut(); err != nil {
		return fmt.Errorf("a power cut at the end: %w", err)
	}
	_ = s.Close() // it may be poisoned
	return p.cut()
}

// cut takes the power away in several ways, opens what is left, and takes it away again:
// what one opening has found may be lost to the next.
func (p *publication) cut() error {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, uint64(p.at)))
		image := p.fs.Image(crashfs.Loss(min(seed, 2)), rng)
		for i := range 2 {
			if err := stubbornCheck(image, p.a, p.acked, p.maybe); err != nil {
				return fmt.Errorf("image %d, opening %d: %w", seed, i, err)
			}
			image = image.Image(crashfs.LoseAll, nil)
		}
	}
	return nil
}
