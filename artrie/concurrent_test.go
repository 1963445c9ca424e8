package artrie

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
)

// call is one operation of a history and what it returned.
type call struct {
	what string // put, delete, insert, get
	key  string
	val  string
}

type answer struct {
	ok  bool
	val string
}

// dictionary is the sequential specification, for one key at a time.
func dictionary() porcupine.Model {
	return porcupine.Model{
		Partition: func(h []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, o := range h {
				k := o.Input.(call).key
				byKey[k] = append(byKey[k], o)
			}
			var out [][]porcupine.Operation
			for _, ops := range byKey {
				out = append(out, ops)
			}
			return out
		},
		Init: func() any { return answer{} },
		Step: func(state, in, out any) (bool, any) {
			s, c, a := state.(answer), in.(call), out.(answer)
			switch c.what {
			case "put":
				return true, answer{true, c.val}
			case "delete":
				return a.ok == s.ok, answer{}
			case "insert":
				if s.ok {
					return !a.ok, s
				}
				return a.ok, answer{ok: true}
			}
			return a == s, s
		},
	}
}

// TestHistoriesAreLinearizable runs writers and readers against checkpoints and
// evictions, and checks the history per key.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, a := range arrangements() {
		if a.durability == Periodic {
			continue
		}
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			var mu sync.Mutex
			var history []porcupine.Operation
			start := time.Now()
			var busy, background sync.WaitGroup
			for client := range 6 {
				busy.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(client), 1))
					for i := range 60 {
						c := call{[]string{"put", "delete", "insert", "get", "get"}[rng.IntN(5)], fmt.Sprintf("ngram-%d", rng.IntN(5)), fmt.Sprint(client, ".", i)}
						begin := time.Since(start).Nanoseconds()
						out, err := perform1(s, c)
						end := time.Since(start).Nanoseconds()
						if err != nil {
							t.Errorf("%+v: %v", c, err)
							return
						}
						mu.Lock()
						history = append(history, porcupine.Operation{ClientId: client, Input: c, Call: begin, Output: out, Return: end})
						mu.Unlock()
					}
				})
			}
			stop := make(chan struct{})
			background.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := s.Checkpoint(); err != nil {
						t.Errorf("checkpoint: %v", err)
						return
					}
					if _, err := s.Evict(0); err != nil {
						t.Errorf("evict: %v", err)
						return
					}
				}
			})
			busy.Wait()
			close(stop)
			background.Wait()
			if len(history) < 300 {
				t.Fatalf("only %d operations", len(history))
			}
			if got := porcupine.CheckOperationsTimeout(dictionary(), history, time.Minute); got != porcupine.Ok {
				t.Fatalf("history is %v", got)
			}
			closed(t, s, fs)
		})
	}
}

func perform1(s *Trie, c call) (out answer, err error) {
	switch c.what {
	case "put":
		out.ok, err = true, s.Put(c.key, []byte(c.val))
	case "delete":
		out.ok, err = s.Delete(c.key)
	case "insert":
		out.ok, err = s.Insert(c.key)
	default:
		var v []byte
		v, out.ok, err = s.Get(c.key)
		out.val = string(v)
	}
	return out, err
}

// TestSnapshotsArePrefixes has each writer count up its own key and a common batch of
// keys; a snapshot must show, of each writer, exactly the first so many writes, and with one
// writer after the other no hole.
func TestSnapshotsArePrefixes(t *testing.T) {
	const writers, writes = 4, 60
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}, {budget: 4 << 10}, {committer: CAS, durability: Immediate}, {mode: Owned, durability: Immediate}} {
		t.Run(a.String(), func(t *testing.T) {
			fs := crashfs.New()
			s := open(t, fs, a)
			var busy, watch sync.WaitGroup
			var done atomic.Bool
			for w := range writers {
				busy.Go(func() {
					for i := range writes {
						if _, err := s.Insert(fmt.Sprintf("w%d-%04d", w, i)); err != nil {
							t.Errorf("insert: %v", err)
							return
						}
					}
				})
			}
			seen := 0
			watch.Go(func() {
				for last := int64(0); !done.Load() || seen == 0; seen++ {
					v := s.Snapshot()
					var next [writers]int
					n := int64(0)
					for k := range v.All() {
						w, _ := strconv.Atoi(k[1:2])
						i, _ := strconv.Atoi(k[3:])
						if i != next[w] {
							t.Errorf("writer %d: %d after %d", w, i, next[w]-1)
							return
						}
						next[w]++
						n++
					}
					if n != v.Len() || n < last {
						t.Errorf("%d keys, counts %d, %d in the snapshot before", n, v.Len(), last)
						return
					}
					last = n
					v.Close()
					if seen%8 == 0 {
						if _, err := s.Checkpoint(); err != nil {
							t.Errorf("checkpoint: %v", err)
						}
					}
				}
			})
			busy.Wait()
			done.Store(true)
			watch.Wait()
			if s.Len() != writers*writes {
				t.Errorf("%d keys", s.Len())
			}
			closed(t, s, fs)
		})
	}
}

// TestConcurrentCrash cuts the power under concurrent writers: of each writer
// exactly the acknowledged writes are there, and at most the one in flight.
func TestConcurrentCrash(t *testing.T) {
	rounds := 12
	if long() {
		rounds = 300
	}
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}, {budget: 4 << 10}, {durability: Immediate}} {
		t.Run(a.String(), func(t *testing.T) {
			for seed := range uint64(rounds) {
				concurrentCrash(t, a, seed)
			}
		})
	}
}

func concurrentCrash(t *testing.T, a arrangement, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	fs := crashfs.New()
	var ops atomic.Int64
	at := 30 + rng.Int64N(150)
	hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
		if op.Changes() && ops.Add(1) == at {
			fs.Crash()
		}
		return nil
	}}
	s, err := Open("db", a.options(hook))
	if err != nil {
		t.Fatal(err)
	}
	var acked [4]atomic.Int64
	var busy sync.WaitGroup
	for w := range acked {
		busy.Go(func() {
			for i := range 200 {
				if err := s.Put(fmt.Sprintf("w%d", w), fmt.Append(nil, i)); err != nil {
					return
				}
				if _, err := s.Insert(fmt.Sprintf("w%d-%04d", w, i)); err != nil {
					return
				}
				acked[w].Store(int64(i) + 1)
				if i%23 == 22 && w == 0 {
					_, _ = s.Checkpoint() // it may meet the crash
					_, _ = s.Evict(0)
				}
			}
		})
	}
	busy.Wait()
	fs.Crash()
	_ = s.Close() // the power is off
	image := fs.Image(crashfs.Loss(seed%3), rng)
	s, err = Open("db", a.options(image))
	if err != nil {
		t.Fatalf("seed %d, crash at operation %d: %v", seed, at, err)
	}
	for w := range acked {
		n := int64(0)
		for range s.Prefix(fmt.Sprintf("w%d-", w)) {
			n++
		}
		if low := acked[w].Load(); n < low || n > low+1 {
			t.Fatalf("seed %d, crash at operation %d: writer %d has %d writes, %d acknowledged", seed, at, w, n, low)
		}
		v, _, err := s.Get(fmt.Sprintf("w%d", w))
		if last, _ := strconv.ParseInt(string(v), 10, 64); err != nil || n > 0 && last < n-1 || last > n {
			t.Fatalf("seed %d, crash at operation %d: writer %d put %q last and inserted %d (%v)", seed, at, w, v, n, err)
		}
	}
	closed(t, s, image)
}
