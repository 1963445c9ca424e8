package artrie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/fsys/crashfs"
	"github.com/assaylab/assay/internal/wal"
)

// long says whether the long forms of the tests run.
func long() bool { return os.Getenv("ASSAY_LONG") == "1" }

// step is one step of the scripted run: a write, or what the name says.
type step struct {
	what string // put, delete, batch, checkpoint, evict, reopen
	key  string
	val  []byte
	more []step // of a batch
}

// script writes, overwrites and deletes over several segments, with checkpoints and reopenings between.
func script() (steps []step, states []map[string][]byte) {
	rng := rand.New(rand.NewPCG(4, 4))
	state := map[string][]byte{}
	states = append(states, maps.Clone(state))
	write := func(s step) {
		if s.what == "delete" {
			delete(state, s.key)
		} else {
			state[s.key] = s.val
		}
		steps = append(steps, s)
		states = append(states, maps.Clone(state))
	}
	draw := func(i int) step {
		key := fmt.Sprintf("ngram-%02x-語", rng.IntN(24))
		if _, ok := state[key]; ok && rng.IntN(3) == 0 {
			return step{what: "delete", key: key}
		}
		return step{what: "put", key: key, val: fmt.Appendf(nil, "%d %s", i, strings.Repeat("v", rng.IntN(600)))}
	}
	for i := range 90 {
		if i%5 == 3 {
			// A batch is one write over several sectors: a crash may keep any of them.
			b := step{what: "batch"}
			for range 4 {
				write(draw(i))
				b.more = append(b.more, steps[len(steps)-1])
				steps = steps[:len(steps)-1]
			}
			steps = append(steps, b)
		} else {
			write(draw(i))
		}
		switch i {
		case 12, 22, 32, 40, 47, 58, 66, 71, 77:
			steps = append(steps, step{what: "checkpoint"})
		case 28:
			steps = append(steps, step{what: "evict"})
		case 17, 36, 50:
			steps = append(steps, step{what: "reopen"})
		}
	}
	return steps, states
}

// apply does the writes of a step.
func (st step) apply(s *Trie) error {
	if st.what == "put" {
		return s.Put(st.key, st.val)
	}
	if st.what == "delete" {
		_, err := s.Delete(st.key)
		return err
	}
	if s.opt.Committer == CAS || s.opt.Durability == Immediate {
		for _, w := range st.more {
			if err := w.apply(s); err != nil {
				return err
			}
		}
		return nil
	}
	var ops []*operation
	for _, w := range st.more {
		op := &operation{Op: wal.Op{Type: opPut, Key: w.key, Val: w.val}}
		if w.what == "delete" {
			op.Type = opDelete
		}
		ops = append(ops, op)
	}
	s.commitBatch(ops)
	return ops[len(ops)-1].err
}

// outcome is how far a run came. What is durable in any case is written up to
// durable; what may be there goes up to written.
type outcome struct {
	durable, written int
	closed           bool
	err              error
}

// play runs the steps until one fails.
func play(fs fsys.FS, a arrangement, steps []step) (out outcome) {
	s, err := Open("db", a.options(fs))
	defer func() {
		if s != nil && !out.closed {
			_ = s.Close() // it failed before; what it was for is in out
		}
		out.err = err
	}()
	if err != nil {
		return out
	}
	for _, st := range steps {
		switch st.what {
		case "put", "delete", "batch":
			out.written += max(1, len(st.more))
			if err = st.apply(s); err == nil && a.durability <= Immediate {
				out.durable = out.written
			}
		case "checkpoint":
			if _, err = s.Checkpoint(); err == nil {
				out.durable = out.written
			}
		case "evict":
			_, err = s.Evict(0)
		case "reopen":
			if err = s.Close(); err == nil {
				out.durable = out.written
				var next *Trie
				if next, err = Open("db", a.options(fs)); err == nil {
					s = next
				} else {
					out.closed = true
				}
			}
		}
		if err != nil {
			return out
		}
	}
	if err = s.Close(); err == nil {
		out.durable, out.closed = out.written, true
	}
	return out
}

// recovered opens the store and says which state of the script it shows.
func recovered(fs fsys.FS, a arrangement, states []map[string][]byte, out outcome) (s *Trie, state int, err error) {
	if s, err = Open("db", a.options(fs)); err != nil {
		return nil, 0, err
	}
	if err := s.Check(); err != nil {
		return s, 0, err
	}
	got := map[string][]byte{}
	for k, v := range s.All() {
		got[k] = v
	}
	if err := s.Err(); err != nil {
		return s, 0, err
	}
	for i := out.durable; i <= out.written; i++ {
		if equal(got, states[i]) {
			return s, i, nil
		}
	}
	return s, 0, fmt.Errorf("%d keys are no state from %d to %d", len(got), out.durable, out.written)
}

// survive checks one image of a crash: the store opens and shows what it must; a
// second power cut right after the opening takes nothing of what was shown; what is written
// after the recovery is not mixed with what was cut.
func survive(image *crashfs.FS, a arrangement, states []map[string][]byte, out outcome, seed uint64, wrap func(fsys.FS) fsys.FS) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	s, state, err := recovered(wrap(image), a, states, out)
	if err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	image.Crash()
	_ = s.Close() // the power is off
	again := image.Image(crashfs.Loss(rng.IntN(2))*2, rng)
	only := outcome{durable: state, written: state}
	if s, _, err = recovered(wrap(again), a, states, only); err != nil {
		return fmt.Errorf("after a second power cut: %w", err)
	}
	more := append([]map[string][]byte{}, states[:state+1]...)
	for i := range 3 {
		k := fmt.Sprintf("after-%d", i)
		if err := s.Put(k, []byte{byte(seed)}); err != nil {
			return fmt.Errorf("write after the crash: %w", err)
		}
		m := maps.Clone(more[len(more)-1])
		m[k] = []byte{byte(seed)}
		more = append(more, m)
	}
	if seed%2 == 0 {
		if _, err := s.Checkpoint(); err != nil {
			return fmt.Errorf("checkpoint after the crash: %w", err)
		}
	}
	again.Crash()
	_ = s.Close() // the power is off
	only = outcome{durable: state, written: state + 3}
	if a.durability <= Immediate || seed%2 == 0 {
		only.durable += 3
	}
	s, _, err = recovered(again.Image(crashfs.LoseSome, rng), a, more, only)
	if err != nil {
		return fmt.Errorf("after a third power cut: %w", err)
	}
	return s.Close()
}

// site is what a mutation may skip: a kind of operation in a function. A sync of the
// log is named by who asks for it: each has a reason of its own.
func site(kind string) string {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !more {
			return kind
		}
		name := f.Function[strings.LastIndex(f.Function, "/")+1:]
		if strings.Contains(f.File, "/fsys/") || strings.HasSuffix(f.File, "_test.go") {
			continue
		}
		if name == "wal.(*Log).Sync" {
			kind += " of the log"
			continue
		}
		return kind + " in " + name
	}
}

// sweep crashes the script before every operation that changes something, from
// first on in strides, and returns the first violation. skip names a site to leave out.
func sweep(a arrangement, first, stride, seeds int, skip string) (ops int, err error) {
	steps, states := script()
	leaveOut := func(op crashfs.Op) error {
		if skip != "" && (op.Kind == "sync" || op.Kind == "syncdir" || op.Kind == "rename") && site(op.Kind) == skip {
			return crashfs.Skip
		}
		return nil
	}
	wrap := func(fs fsys.FS) fsys.FS { return &crashfs.Faulty{FS: fs, Before: leaveOut} }
	for i := first; ; i += stride {
		fs := crashfs.New()
		var n atomic.Int64
		hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
			if !op.Changes() {
				return nil
			}
			if n.Add(1) == int64(i) {
				fs.Crash()
			}
			return leaveOut(op)
		}}
		out := play(hook, a, steps)
		done := n.Load() < int64(i)
		if done && out.err != nil {
			return i, fmt.Errorf("the run fails without a crash: %w", out.err)
		}
		fs.Crash()
		for seed := range uint64(seeds + 2) {
			loss := crashfs.LoseSome
			if seed < 2 {
				loss = crashfs.Loss(seed)
			}
			image := fs.Image(loss, rand.New(rand.NewPCG(seed, uint64(i))))
			if err := survive(image, a, states, out, seed, wrap); err != nil {
				return i, fmt.Errorf("%v: crash at operation %d, image seed %d, acknowledged %d of %d: %w\nreplay: go test ./artrie -run 'TestCrashAtEveryStep/%v$'",
					a, i, seed, out.durable, out.written, err, a)
			}
		}
		if out.closed {
			if err := endIsProven(fs.Image(crashfs.LoseAll, nil)); err != nil {
				return i, err
			}
		}
		if done {
			return i, nil
		}
	}
}

// endIsProven damages the last record of a closed log: it must be reported (L5).
func endIsProven(fs *crashfs.FS) error {
	names, err := fs.List("db")
	if err != nil {
		return err
	}
	file, last := "", 0
	for _, name := range names {
		if !strings.HasPrefix(name, "log-") {
			continue
		}
		b := fs.Contents("db/" + name)
		for off, kind := 64, byte(0); ; file = "db/" + name {
			n, id := binary.LittleEndian.Uint32(b[off+4:]), binary.LittleEndian.Uint32(b[off+16:])
			if id != binary.LittleEndian.Uint32(b[12:]) || n == 0 {
				break
			}
			if kind = b[off+24]; kind != 1 && kind != 5 {
				last = off
			} else if kind == 1 {
				last = 0
			}
			if off += int(n+7) / 8 * 8; off+32 > len(b) {
				break
			}
		}
	}
	if last == 0 {
		return nil // the last segment has no operation
	}
	b := fs.Contents(file)
	b[last+26] ^= 1
	fs.Replace(file, b)
	if _, err := Check("db", fs); !errors.Is(err, ErrDamaged) {
		rep, _ := Check("db", fs)
		return fmt.Errorf("the last acknowledged record of a closed store is damaged (%s at %d), and check says %v, %+v", file, last, err, rep)
	}
	return nil
}

func TestCrashAtEveryStep(t *testing.T) {
	for _, a := range arrangements() {
		t.Run(a.String(), func(t *testing.T) {
			stride, seeds := 3, 2
			if a.budget != 0 || a.durability > Immediate {
				stride = 7
			}
			if raceEnabled {
				stride *= 5
			}
			if long() {
				stride, seeds = 1, 12
			}
			ops, err := sweep(a, 1, stride, seeds, "")
			if err != nil {
				t.Fatal(err)
			}
			if ops < 100 {
				t.Fatalf("only %d operations: the script does not reach what it should", ops)
			}
		})
	}
}

// TestEverySyncIsNeeded drops each sync, folder sync and rename in turn. The
// crash suite must notice each time, or the suite or the sync is worth nothing.
func TestEverySyncIsNeeded(t *testing.T) {
	steps, _ := script()
	sites := map[string]int{}
	in := map[string][]arrangement{} // where the site is
	var mu sync.Mutex
	// The names of node files matter where each checkpoint makes a new one.
	for _, a := range []arrangement{{}, {durability: None}, {mode: Owned}} {
		play(&crashfs.Faulty{FS: crashfs.New(), Before: func(op crashfs.Op) error {
			if op.Kind == "sync" || op.Kind == "syncdir" || op.Kind == "rename" {
				mu.Lock()
				defer mu.Unlock()
				s := site(op.Kind)
				sites[s]++
				if !slices.Contains(in[s], a) {
					in[s] = append(in[s], a)
				}
			}
			return nil
		}}, a, steps)
	}
	if len(sites) < 15 {
		t.Fatalf("found only %d sites: %v", len(sites), sites)
	}
	for _, s := range slices.Sorted(maps.Keys(sites)) {
		t.Run(s, func(t *testing.T) {
			for _, stride := range []int{5, 1} {
				for _, a := range in[s] {
					if _, err := sweep(a, 1, stride, 4, s); err != nil {
						t.Logf("noticed: %.200s", err)
						return
					}
				}
			}
			t.Errorf("%d calls of %q can be dropped and the crash suite does not notice", sites[s], s)
		})
	}
}

// TestFaultAtEveryStep fails each operation in turn. Whatever was acknowledged,
// before or after, must be there on the next opening; after a failed sync nothing is acknowledged.
func TestFaultAtEveryStep(t *testing.T) {
	faults := map[string]error{"eio": syscall.EIO, "enospc": syscall.ENOSPC, "short": crashfs.Short, "late": crashfs.Late}
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned, durability: Immediate}, {budget: 4 << 10}} {
		for _, kind := range slices.Sorted(maps.Keys(faults)) {
			t.Run(fmt.Sprintf("%v/%s", a, kind), func(t *testing.T) { faultSweep(t, a, faults[kind]) })
		}
	}
}

func faultSweep(t *testing.T, a arrangement, fault error) {
	stride := 3
	if raceEnabled {
		stride = 11
	}
	if long() {
		stride = 1
	}
	for i := 1; ; i += stride {
		fs := crashfs.New()
		var n, fired atomic.Int64
		var syncFailed atomic.Bool
		hook := &crashfs.Faulty{FS: fs, Before: func(op crashfs.Op) error {
			if n.Add(1) != int64(i) || fault == crashfs.Short && op.Kind != "write" {
				return nil
			}
			fired.Add(1)
			// A segment that is prepared in the background poisons the store when it is needed.
			isSync := op.Kind == "sync" || op.Kind == "syncdir"
			syncFailed.Store(isSync && !strings.HasSuffix(site(op.Kind), "wal.prepare"))
			return fault
		}}
		acked, maybe, err := stubborn(hook, a, &syncFailed)
		if err != nil {
			t.Fatalf("fault at operation %d: %v", i, err)
		}
		for seed := range uint64(3) {
			loss := crashfs.Loss(seed)
			if err := stubbornCheck(fs.Image(loss, rand.New(rand.NewPCG(seed, uint64(i)))), a, acked, maybe); err != nil {
				t.Fatalf("fault at operation %d, loss %d: %v", i, loss, err)
			}
		}
		if n.Load() < int64(i) {
			return
		}
	}
}

// stubborn is a client that goes on after errors. acked is what it was promised; in
// maybe are the keys whose last write failed. After a failed sync a write must fail, once
// the store has heard of it.
func stubborn(fs fsys.FS, a arrangement, syncFailed *atomic.Bool) (acked map[string]string, maybe map[string][]string, err error) {
	acked, maybe = map[string]string{}, map[string][]string{}
	s, err := Open("db", a.options(fs))
	if err != nil {
		if s, err = Open("db", a.options(fs)); err != nil {
			return nil, nil, fmt.Errorf("second try to open: %w", err)
		}
		syncFailed.Store(false)
	}
	for i := range 40 {
		k, v := fmt.Sprintf("k%02d", i%13), fmt.Sprint(i, strings.Repeat("v", i*7))
		// Not only by the store's own word.
		byItself, failed := s.writable() != nil, syncFailed.Load()
		poisoned := byItself || failed
		err := s.Put(k, []byte(v))
		if err == nil && poisoned {
			// The keeper's checkpoint may be about to say that its sync failed; the next
			// one waits for it.
			if _, late := s.Checkpoint(); byItself || !errors.Is(late, ErrPoisoned) {
				return nil, nil, fmt.Errorf("write %d was acknowledged by a poisoned store", i)
			}
		}
		if err == nil {
			acked[k] = v
			delete(maybe, k)
		} else {
			maybe[k] = append(maybe[k], v)
		}
		if i%9 == 8 {
			if _, err := s.Checkpoint(); err == nil && poisoned {
				return nil, nil, fmt.Errorf("checkpoint %d by a poisoned store", i)
			}
			_, _ = s.Evict(0)
		}
		// What is visible is what was acknowledged, whatever failed.
		got, ok, err := s.Get(k)
		if want, had := acked[k]; err == nil && (ok != had || string(got) != want) {
			return nil, nil, fmt.Errorf("after write %d (%v) %q reads %.20q, want %.20q", i, err, k, got, want)
		}
	}
	_ = s.Close() // it may be poisoned
	return acked, maybe, nil
}

func stubbornCheck(fs fsys.FS, a arrangement, acked map[string]string, maybe map[string][]string) error {
	s, err := Open("db", a.options(fs))
	if err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	for k, v := range s.All() {
		if string(v) != acked[k] && !slices.Contains(maybe[k], string(v)) {
			return fmt.Errorf("%q is %.20q, acknowledged %.20q", k, v, acked[k])
		}
	}
	for k := range acked {
		if _, ok, err := s.Get(k); !ok || err != nil {
			return fmt.Errorf("%q was acknowledged and is gone (%v)", k, err)
		}
	}
	return errors.Join(s.Err(), s.Close())
}

// TestBitFlipsAndTruncations damages each byte of each file of a closed store, and cuts
// each file at each byte: it is reported, or nothing is lost.
func TestBitFlipsAndTruncations(t *testing.T) {
	steps, states := script()
	want := states[len(states)-1]
	fs := crashfs.New()
	if out := play(fs, arrangement{}, steps); out.err != nil {
		t.Fatal(out.err)
	}
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	stride := 37
	if raceEnabled {
		stride = 59
	}
	if long() {
		stride = 1
	}
	reported, harmless := 0, 0
	try := func(name string, at int, b []byte) {
		image := fs.Image(crashfs.LoseNone, nil)
		image.Replace("db/"+name, b)
		got, err := readAll(image)
		switch {
		case err == nil && equal(got, want):
			harmless++
		case errors.Is(err, ErrDamaged):
			reported++
			if at%5 == 0 {
				salvageOK(t, image, want)
			}
		default:
			t.Fatalf("%s damaged at byte %d: read %d keys of %d, error %v", name, at, len(got), len(want), err)
		}
	}
	for _, name := range names {
		b := fs.Contents("db/" + name)
		for at := 0; at < len(b); at += 1 + (at%stride)*(stride/2) + stride/8 {
			b[at] ^= 1 << (at % 8)
			try(name, at, b)
			b[at] ^= 1 << (at % 8)
			try(name, at, b[:at:at])
		}
	}
	if reported < 50 || harmless < 20 {
		t.Errorf("%d damages reported, %d harmless: too few to mean anything", reported, harmless)
	}
	t.Logf("%d damages reported, %d harmless", reported, harmless)
}

// TestDamageAfterAKill damages the files of a store that was not closed: it is reported,
// or at most the very last write is lost, which nothing proves to have been synced (L5).
func TestDamageAfterAKill(t *testing.T) {
	steps, states := script()
	fs := crashfs.New()
	s := open(t, fs, arrangement{})
	for _, st := range steps {
		if st.what == "checkpoint" {
			if _, err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		} else if len(st.more) > 0 || st.what == "put" || st.what == "delete" {
			if err := st.apply(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	fs.Crash()
	_ = s.Close() // it was killed
	want, before := states[len(states)-1], states[len(states)-2]
	image := fs.Image(crashfs.LoseNone, nil)
	names, err := image.List("db")
	if err != nil {
		t.Fatal(err)
	}
	stride := 41
	if long() {
		stride = 1
	}
	reported, harmless, tail := 0, 0, 0
	try := func(name string, at int, b []byte) {
		damaged := image.Image(crashfs.LoseNone, nil)
		damaged.Replace("db/"+name, b)
		got, err := readAll(damaged)
		switch {
		case err == nil && equal(got, want):
			harmless++
		case err == nil && equal(got, before):
			tail++
		case errors.Is(err, ErrDamaged):
			reported++
		default:
			t.Fatalf("%s damaged at byte %d: read %d keys of %d, error %v", name, at, len(got), len(want), err)
		}
	}
	for _, name := range names {
		b := image.Contents("db/" + name)
		for at := 0; at < len(b); at += stride {
			b[at] ^= 1 << (at % 8)
			try(name, at, b)
			b[at] ^= 1 << (at % 8)
			try(name, at, b[:at:at])
		}
	}
	if reported < 50 || harmless < 20 || tail == 0 {
		t.Errorf("%d damages reported, %d harmless, %d took the last write: too few to mean anything", reported, harmless, tail)
	}
	t.Logf("%d damages reported, %d harmless, %d took the last write", reported, harmless, tail)
}

// readAll opens a store and reads everything, as a program would.
func readAll(fs fsys.FS) (got map[string][]byte, err error) {
	s, err := Open("db", arrangement{}.options(fs))
	if err != nil {
		return nil, err
	}
	got = map[string][]byte{}
	for k, v := range s.All() {
		got[k] = v
	}
	if err := s.Err(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return got, errors.Join(s.Check(), s.Close())
}

// salvageOK saves what is left: nothing may be there that never was.
func salvageOK(t *testing.T, fs fsys.FS, want map[string][]byte) {
	t.Helper()
	rep, err := Salvage("db", "saved", fs)
	if err != nil {
		t.Fatalf("salvage: %v", err)
	}
	if len(rep.Lost) == 0 && rep.Keys != int64(len(want)) {
		t.Fatalf("salvage saved %d keys of %d and reports no loss", rep.Keys, len(want))
	}
	if _, err := Check("saved", fs); err != nil {
		t.Fatalf("check of what was salvaged: %v", err)
	}
}
