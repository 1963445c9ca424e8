package artrie

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// benchKeys is the number of keys of the large benchmarks.
func benchKeys() int {
	if n, err := strconv.Atoi(os.Getenv("ASSAY_KEYS")); err == nil {
		return n
	}
	return 50_000
}

func splitmix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func ngram(i int) string {
	return fmt.Sprintf("ngram-%016x-語%d", splitmix(uint64(i)^0x9E3779B97F4A7C15), i)
}

func ngrams(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = ngram(i)
	}
	return out
}

// benchDir is a folder on a real disk, if ASSAY_SCRATCH names one.
func benchDir(b testing.TB) string {
	if s := os.Getenv("ASSAY_SCRATCH"); s != "" {
		d, err := os.MkdirTemp(s, "artrie")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { os.RemoveAll(d) })
		return d
	}
	return b.TempDir()
}

func filled(b *testing.B, opt Options, keys []string) (*Trie, string) {
	b.Helper()
	dir := benchDir(b)
	fill := opt
	fill.Durability, fill.CheckpointBytes = None, -1
	s, err := Open(dir, &fill)
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		if _, err := s.Insert(k); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.Checkpoint(); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	if s, err = Open(dir, &opt); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s, dir
}

// BenchmarkDurable is 8 writers with b.N inserts between them; p50 and p99.9 in µs.
func BenchmarkDurable(b *testing.B) {
	for _, a := range []arrangement{{}, {committer: CAS}, {mode: Owned}, {durability: Immediate}, {mode: Owned, durability: Immediate}, {durability: None}} {
		for _, load := range []string{"alone", "paced", "spinning"} {
			b.Run(fmt.Sprintf("%v/%s", a, load), func(b *testing.B) { durable(b, a, load) })
		}
	}
}

func durable(b *testing.B, a arrangement, load string) {
	opt := a.options(benchFS(b))
	opt.SegmentBytes, opt.CheckpointBytes = 0, 0
	s, err := Open(benchDir(b), opt)
	if err != nil {
		b.Fatal(err)
	}
	keys := ngrams(b.N)
	const writers = 8
	took := make([][]time.Duration, writers)
	stop := make(chan struct{})
	var busy, background sync.WaitGroup
	readers := 0
	if load != "alone" {
		readers = 4
		background.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				if _, err := s.Checkpoint(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for r := range readers {
		background.Go(func() {
			for x := uint64(r); ; {
				select {
				case <-stop:
					return
				default:
				}
				for range 64 {
					x = splitmix(x)
					if _, _, err := s.Get(keys[x%uint64(len(keys))]); err != nil {
						b.Error(err)
					}
				}
				if load == "paced" {
					<-time.After(100 * time.Microsecond)
				}
			}
		})
	}
	b.ResetTimer()
	for w := range writers {
		busy.Go(func() {
			for i := w; i < len(keys); i += writers {
				start := time.Now()
				if _, err := s.Insert(keys[i]); err != nil {
					b.Error(err)
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	busy.Wait()
	b.StopTimer()
	close(stop)
	background.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	st := s.Stats()
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(all[len(all)*999/1000].Nanoseconds())/1e3, "p99.9-µs")
	b.ReportMetric(float64(st.CommitSyncs)/float64(st.Writes), "syncs/op")
	if err := s.Close(); err != nil {
		b.Error(err)
	}
}

// BenchmarkMemory is the tree in memory: bytes per key, hit, prefix scan, walk.
func BenchmarkMemory(b *testing.B) {
	keys := ngrams(benchKeys())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := Open(benchDir(b), &Options{Durability: None, CheckpointBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for _, k := range keys {
		if _, err := s.Insert(k); err != nil {
			b.Fatal(err)
		}
	}
	insert := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("insert", func(b *testing.B) {
		b.ReportMetric(float64(insert.Nanoseconds())/float64(len(keys)), "ns/key")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(keys)), "B/key")
		b.ReportMetric(float64(s.Stats().Resident)/float64(len(keys)), "counted-B/key")
	})
	b.Run("hit", func(b *testing.B) {
		for i := range b.N {
			if _, ok, _ := s.Get(keys[splitmix(uint64(i))%uint64(len(keys))]); !ok {
				b.Fatal("missed")
			}
		}
	})
	m := make(map[string]uint64, len(keys))
	var lock sync.RWMutex
	for i, k := range keys {
		m[k] = uint64(i)
	}
	b.Run("hit-map", func(b *testing.B) {
		for i := range b.N {
			lock.RLock()
			_, ok := m[keys[splitmix(uint64(i))%uint64(len(keys))]]
			lock.RUnlock()
			if !ok {
				b.Fatal("missed")
			}
		}
	})
	b.Run("prefix", func(b *testing.B) {
		n := 0
		for i := range b.N {
			k := keys[splitmix(uint64(i))%uint64(len(keys))]
			for range s.Prefix(k[:10]) {
				n++
			}
		}
		b.ReportMetric(float64(n)/float64(b.N), "keys/op")
	})
	b.Run("walk", func(b *testing.B) {
		n := 0
		for range b.N {
			for range s.All() {
				n++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
	})
	if err := s.Close(); err != nil {
		b.Error(err)
	}
}

// BenchmarkCheckpoint compares a checkpoint after 1,000 changes with a full one, and
// measures opening and the first answer.
func BenchmarkCheckpoint(b *testing.B) {
	keys := ngrams(benchKeys())
	dir := benchDir(b)
	s, err := Open(dir, &Options{Durability: None, CheckpointBytes: -1, FS: benchFS(b)})
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		if _, err := s.Insert(k); err != nil {
			b.Fatal(err)
		}
	}
	full, err := s.Checkpoint()
	if err != nil {
		b.Fatal(err)
	}
	var part CheckpointStats
	for i := range b.N {
		for j := range 1000 {
			if _, err := s.Insert(ngram(len(keys) + i*1000 + j)); err != nil {
				b.Fatal(err)
			}
		}
		if part, err = s.Checkpoint(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(full.Bytes)/float64(len(keys)), "full-B/key")
	b.ReportMetric(full.Elapsed.Seconds()*1e3, "full-ms")
	b.ReportMetric(part.Elapsed.Seconds()*1e3, "part-ms")
	b.ReportMetric(100*float64(part.Bytes)/float64(full.Bytes), "part-%bytes")
	b.ReportMetric(100*part.Elapsed.Seconds()/full.Elapsed.Seconds(), "part-%time")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if s, err = Open(dir, nil); err != nil {
		b.Fatal(err)
	}
	if _, ok, err := s.Get(keys[0]); !ok || err != nil {
		b.Fatal(ok, err)
	}
	b.ReportMetric(time.Since(start).Seconds()*1e3, "open-ms")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReplay opens a store that has only a log.
func BenchmarkReplay(b *testing.B) {
	keys := ngrams(benchKeys())
	dir := benchDir(b)
	s, err := Open(dir, &Options{Durability: None, CheckpointBytes: -1, FS: benchFS(b)})
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		if _, err := s.Insert(k); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	n := 0
	for range b.N {
		if s, err = Open(dir, &Options{CheckpointBytes: -1}); err != nil {
			b.Fatal(err)
		}
		n += s.Stats().Replayed
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkEviction reads uniformly with a budget of a third of the data.
func BenchmarkEviction(b *testing.B) {
	keys := ngrams(benchKeys())
	for _, part := range []int64{0, 3, 10} {
		b.Run(fmt.Sprintf("budget-1of%d", part), func(b *testing.B) {
			opt := Options{}
			if part > 0 {
				opt.MemoryBudget = int64(len(keys)) * 54 / part
			}
			s, _ := filled(b, opt, keys)
			peak := int64(0)
			b.ResetTimer()
			for i := range b.N {
				if _, ok, err := s.Get(keys[splitmix(uint64(i))%uint64(len(keys))]); !ok || err != nil {
					b.Fatal(ok, err)
				}
				peak = max(peak, s.resident.Load())
			}
			b.StopTimer()
			st := s.Stats()
			b.ReportMetric(float64(peak)/float64(len(keys)), "peak-B/key")
			b.ReportMetric(float64(st.Faults)/float64(b.N), "faults/op")
		})
	}
}
