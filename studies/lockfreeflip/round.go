package lockfreeflip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/internal/peak"
	"github.com/assaylab/assay/lab/trial"
)

// The load of one round.
const (
	writers = 8
	readers = 4

	burst      = 64                     // gets of a paced reader between two pauses
	readPause  = 100 * time.Microsecond // of a paced reader
	earlyKeys  = 256                    // of each writer: what readers ask for
	coldOf     = 4                      // with fault-in, one get in so many is of a cold key
	checkPause = 20 * time.Millisecond  // between two checkpoints
	maxChecks  = 40
)

// round is a round under way and what came of it.
type round struct {
	plan
	store store
	disk  *power
	keys  [][]string

	origin time.Time
	asked  [writers]counter // inserts begun
	acked  [writers]counter // inserts acknowledged
	took   [writers][]int64 // of each insert, nanoseconds
	ended  [writers][]int64 // since origin
	marks  [writers][]int64 // the watermark after it

	sights [readers][]sight
	seen   chan struct{} // holds a token once a reader has found a key under way
	reads  [readers]int64
	wrong  [readers][]string // reads with a wrong answer
	exact  [readers]int      // reads whose answer was known
	coldOK [readers]int      // of them, of cold keys

	moved   chan struct{} // closed after the first eviction, and when there will be none
	windows []window      // of checkpoints
	checks  int           // that ended
	evicted int
	before  artrie.Stats
	after   artrie.Stats
	syncs   []int64
	turns   int
}

// counter is alone on its cache line.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// sight is a key that a reader found while, or just after, it was written.
type sight struct {
	writer, index int
	mark          int64 // the watermark after the answer
	early         bool  // it was not acknowledged when it was asked for
}

// window is the time of a checkpoint, since origin.
type window struct{ from, to int64 }

func newRound(p plan, s store, disk *power) *round {
	r := &round{plan: p, store: s, disk: disk, keys: roundKeys(p.pattern, writers, p.each), moved: make(chan struct{}), seen: make(chan struct{}, 1)}
	for w := range writers {
		r.took[w], r.ended[w], r.marks[w] = make([]int64, 0, p.each), make([]int64, 0, p.each), make([]int64, 0, p.each)
	}
	return r
}

// run drives the round to the last writer's end, cuts the power there, and
// records the figures.
func (r *round) run(ctx context.Context, t *trial.T, dir string) error {
	var busy, writing sync.WaitGroup
	barrier := make(chan struct{})
	stop := make(chan struct{})
	var failed atomic.Pointer[error]
	give := func(err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	for w := range writers {
		writing.Go(func() {
			<-barrier
			give(r.write(ctx, w))
		})
	}
	for n := range readers {
		rng := rand.New(rand.NewPCG(t.Seed, uint64(n)))
		busy.Go(func() {
			<-barrier
			give(r.read(n, rng, stop))
		})
	}
	busy.Go(func() {
		<-barrier
		give(r.checkpoints(stop))
	})

	debug.FreeOSMemory()
	// The peak of a round is not that of laying its content down. Where the kernel
	// refuses, the trial fails: a figure that is sometimes another thing is worse than none.
	reset := peak.Reset()
	var gc, gcAfter runtime.MemStats
	runtime.ReadMemStats(&gc)
	waited := mutexWait()
	r.before = r.store.Stats()
	r.disk.log.begin()
	r.origin = time.Now()
	t.Begin()
	close(barrier)
	writing.Wait()
	t.End()

	r.after = r.store.Stats()
	r.syncs, r.turns = r.disk.log.seen()
	waited = mutexWait() - waited
	most, err := peak.Of(os.Getpid())
	runtime.ReadMemStats(&gcAfter)
	r.disk.fail()
	close(stop)
	busy.Wait()
	if e := failed.Load(); e != nil {
		return *e
	}
	size, sizeErr := folderBytes(dir)
	if err = errors.Join(err, reset, sizeErr); err != nil {
		return err
	}
	t.Record("peak_mib", float64(most)/(1<<20))
	t.Record("bytes_on_disk", float64(size))
	t.Record("lock_wait_s", waited)
	t.Record("collections", float64(gcAfter.NumGC-gc.NumGC))
	r.record(t)
	return nil
}

// write is one writer.
func (r *round) write(ctx context.Context, w int) error {
	for i, key := range r.keys[w] {
		if w == 0 && i == len(r.keys[w])-1 {
			r.awaitMove(ctx)
			r.awaitSight(ctx)
		}
		r.asked[w].Store(int64(i + 1))
		begin := time.Now()
		added, err := r.store.Insert(key)
		end := time.Now()
		mark := r.disk.log.mark.Load()
		switch {
		case err != nil:
			return fmt.Errorf("writer %d: insert %q: %w", w, key, err)
		case !added:
			return fmt.Errorf("writer %d: insert %q: it was there", w, key)
		}
		r.acked[w].Store(int64(i + 1))
		r.took[w] = append(r.took[w], int64(end.Sub(begin)))
		r.ended[w] = append(r.ended[w], int64(end.Sub(r.origin)))
		r.marks[w] = append(r.marks[w], mark)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// moves says whether subtrees leave memory in this round.
func (r *round) moves() bool { return r.evict == evictionCold || r.evict == evictionFaultIn }

// awaitMove keeps a round that is about eviction from ending before anything has
// left memory, or come back. In a round of the protocols' size that has
// happened long before; a quick one might be over first.
func (r *round) awaitMove(ctx context.Context) {
	if !r.moves() {
		return
	}
	select {
	case <-r.moved:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); r.evict == evictionFaultIn && time.Now().Before(end) && r.store.Stats().Faults == r.before.Faults; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// awaitSight keeps a round from ending before a reader has seen a key that was
// being written: a check that looked at none would not know. In a round of the
// protocols' size that has happened long before; on a starved machine the
// readers of a quick one may not have run yet.
func (r *round) awaitSight(ctx context.Context) {
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case <-r.seen:
	case <-ctx.Done():
	case <-late.C:
	}
}

// read is one reader: mostly keys that are known to be there, once a burst a
// key that is being written, and with fault-in cold ones.
func (r *round) read(n int, rng *rand.Rand, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		for g := range burst {
			var err error
			switch {
			case g == 0:
				err = r.peek(n, rng.IntN(writers))
			case r.evict == evictionFaultIn && g%coldOf == 0:
				err = r.getCold(n, rng.IntN(r.cold))
			default:
				err = r.getEarly(n, rng.IntN(writers), rng)
			}
			if err != nil {
				return fmt.Errorf("reader %d: %w", n, err)
			}
			r.reads[n]++
		}
		if !r.spin {
			time.Sleep(readPause)
		}
	}
}

// maxWrong is how many wrong answers of a reader are kept.
const maxWrong = 5

func (r *round) mistake(n int, format string, args ...any) {
	if len(r.wrong[n]) < maxWrong {
		r.wrong[n] = append(r.wrong[n], fmt.Sprintf(format, args...))
	}
}

func (r *round) getEarly(n, w int, rng *rand.Rand) error {
	acked := r.acked[w].Load()
	if acked == 0 {
		_, _, err := r.store.Get(r.keys[w][0])
		return err
	}
	key := r.keys[w][rng.IntN(int(min(acked, earlyKeys)))]
	_, found, err := r.store.Get(key)
	if err != nil {
		return err
	}
	r.exact[n]++
	if !found {
		r.mistake(n, "%q was acknowledged and is not found", key)
	}
	return nil
}

func (r *round) getCold(n, i int) error {
	val, found, err := r.store.Get(coldKey(i))
	if err != nil {
		return err
	}
	r.exact[n]++
	r.coldOK[n]++
	if !found || !slices.Equal(val, coldValue(i)) {
		r.mistake(n, "the cold key %q holds %x (found: %v) and not %x", coldKey(i), val, found, coldValue(i))
	}
	return nil
}

// peek asks for the key that a writer is busy with.
func (r *round) peek(n, w int) error {
	asked := r.asked[w].Load()
	if asked == 0 {
		return nil
	}
	i := int(asked) - 1
	early := r.acked[w].Load() < asked
	_, found, err := r.store.Get(r.keys[w][i])
	if err != nil || !found {
		return err
	}
	r.sights[n] = append(r.sights[n], sight{writer: w, index: i, mark: r.disk.log.mark.Load(), early: early})
	select {
	case r.seen <- struct{}{}:
	default:
	}
	return nil
}

// checkpoints is the checkpointer. It begins with the first acknowledged write,
// so that the first checkpoint has something in it. With eviction it drops one
// cold subtree after each.
func (r *round) checkpoints(stop <-chan struct{}) error {
	moved := sync.OnceFunc(func() { close(r.moved) })
	defer moved()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for r.acked[0].Load() == 0 {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
	for n := range maxChecks {
		from := time.Since(r.origin)
		_, err := r.store.Checkpoint()
		w := window{int64(from), int64(time.Since(r.origin))}
		r.windows = append(r.windows, w)
		if errors.Is(err, errPower) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("checkpoint %d: %w", n+1, err)
		}
		r.checks++
		if r.moves() {
			k, err := r.store.EvictPrefix(coldPrefix(n))
			if err != nil {
				return fmt.Errorf("evict: %w", err)
			}
			r.evicted += k
			moved()
		}
		select {
		case <-stop:
			return nil
		case <-time.After(checkPause):
		}
	}
	return nil
}

// record gives the round's figures and samples.
func (r *round) record(t *trial.T) {
	acked := float64(writers * r.each)
	t.Record("ops_per_s", acked/t.Timed().Seconds())
	var stalls, checks []int64
	for w := range writers {
		t.Samples("write", r.took[w])
		stalls = append(stalls, r.stalls(w)...)
	}
	t.Samples("stall", stalls)
	for _, w := range r.windows[:r.checks] {
		checks = append(checks, w.to-w.from)
	}
	if len(checks) > 0 {
		t.Samples("checkpoint", checks)
	}
	t.Samples("sync", r.syncs)
	reads := int64(0)
	for _, n := range r.reads {
		reads += n
	}
	t.Record("reads", float64(reads))
	t.Record("log_syncs", float64(len(r.syncs)))
	t.Record("syncs_per_write", float64(len(r.syncs))/acked)
	t.Record("syncs", float64(r.after.FS.Syncs+r.after.FS.DirSyncs-r.before.FS.Syncs-r.before.FS.DirSyncs))
	t.Record("bytes_written", float64(r.after.FS.Bytes-r.before.FS.Bytes))
	t.Record("checkpoints", float64(r.checks))
	t.Record("retries", float64(r.after.CASRetries-r.before.CASRetries))
	t.Record("evicted", float64(r.evicted))
	t.Record("faulted_in", float64(r.after.Faults-r.before.Faults))
	t.Record("cold_reads", float64(r.after.ColdReads-r.before.ColdReads))
}

// stalls are the writer's latencies that overlap a checkpoint.
func (r *round) stalls(w int) []int64 {
	var out []int64
	n := 0
	for i, end := range r.ended[w] {
		begin := end - r.took[w][i]
		for n < len(r.windows) && r.windows[n].to < begin {
			n++
		}
		if n < len(r.windows) && r.windows[n].from <= end {
			out = append(out, r.took[w][i])
		}
	}
	return out
}

// mutexWait is how long goroutines of this process have waited for locks, in
// seconds, all together. The runtime samples it.
func mutexWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return s[0].Value.Float64()
}
