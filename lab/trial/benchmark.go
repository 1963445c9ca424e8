package trial

import (
	"math"
	"strconv"
	"strings"
)

// benchmark reads one line of the Go benchmark format: name, iterations, then
// pairs of value and unit. A benchmark printed several times counts with the
// mean of its lines. Where two names differ only in what is cut off them, as
// with -cpu 1,2, neither counts.
func (r *report) benchmark(line string) {
	f := strings.Fields(line)
	if len(f) < 4 {
		return
	}
	if _, err := strconv.Atoi(f[1]); err != nil {
		return
	}
	name := BenchName(f[0])
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		key := name + " " + f[i+1]
		if r.obs.Bench == nil {
			r.obs.Bench = map[string]float64{}
		}
		switch full, known := r.from[key]; {
		case r.twice[key]:
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
			r.note("benchmark %s: %q is not a number; it counts as missing", clip(key, maxName), clip(f[i], 40))
			r.twice[key] = true
			delete(r.obs.Bench, key)
		case known && full != f[0]:
			r.note("benchmarks %s and %s both report %s; it counts as missing", clip(full, maxName), clip(f[0], maxName), clip(key, maxName))
			r.twice[key] = true
			delete(r.obs.Bench, key)
		case len(key) > 2*maxName || !known && len(r.obs.Bench) >= maxKeys:
			r.note("benchmark %s: the name is too long or there are more than %d; it is not kept", clip(key, maxName), maxKeys)
			r.twice[key] = true
		default:
			r.from[key] = f[0]
			n := float64(r.lines[key])
			r.obs.Bench[key] = (r.obs.Bench[key]*n + v) / (n + 1)
			r.lines[key]++
			if n == 1 {
				r.note("benchmark %s was printed more than once; the mean counts", key)
			}
		}
	}
}

// BenchName is the benchmark's name without the leading Benchmark and the
// trailing -GOMAXPROCS.
func BenchName(s string) string {
	s = strings.TrimPrefix(s, "Benchmark")
	if i := strings.LastIndexByte(s, '-'); i > 0 {
		if _, err := strconv.Atoi(s[i+1:]); err == nil {
			s = s[:i]
		}
	}
	return s
}
