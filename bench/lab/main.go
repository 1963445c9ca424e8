// Command lab measures what the lab itself costs, as ratios against hyperfine
// and against its own bars. It prints figures and judges nothing: run it on an
// idle machine, several times. Lines that begin with "figure:" are for bench/bars. It must
// never know how the lab works inside.
//
//	go run ./bench/lab               everything
//	go run ./bench/lab -only harness against hyperfine (Debian's package)
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func main() {
	only := flag.String("only", "", "harness, analysis or verify")
	runs := flag.Int("runs", 500, "runs of `true` per measurement")
	repeats := flag.Int("repeats", 7, "interleaved repeats; medians are printed")
	flag.Parse()
	if err := run(*only, *runs, *repeats); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only string, runs, repeats int) error {
	dir, err := os.MkdirTemp("", "assay-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if only == "" || only == "harness" {
		if err := harness(dir, runs, repeats); err != nil {
			return err
		}
	}
	if only == "" || only == "analysis" || only == "verify" {
		return large(dir, only, repeats)
	}
	return nil
}

// harness compares the whole time of comparing `true` with `true`, per run.
func harness(dir string, runs, repeats int) error {
	if _, err := exec.LookPath("hyperfine"); err != nil {
		fmt.Println("harness: hyperfine is not installed (Debian: apt-get install hyperfine); skipped")
		return nil
	}
	assay := filepath.Join(dir, "assay")
	if out, err := exec.Command("go", "build", "-o", assay, "./cmd/assay").CombinedOutput(); err != nil {
		return fmt.Errorf("building assay: %v\n%s", err, out)
	}
	n := fmt.Sprint(runs)
	for _, mode := range []struct {
		name        string
		hyper, mine []string
	}{
		{"no-shell", []string{"-N", "-w", "1", "-r", n, "true", "true"}, []string{"compare", "-N", "-w", "1", "-r", n, "true", "true"}},
		{"shell", []string{"-w", "1", "-r", n, "true", "true"}, []string{"compare", "-w", "1", "-r", n, "true", "true"}},
	} {
		var hyper, mine []float64
		for i := range repeats {
			peer := func() error { return timed(&hyper, 2*runs, "hyperfine", mode.hyper...) }
			own := func() error { return timed(&mine, 2*runs, assay, append(mode.mine, "-q", "--fail-on", "never")...) }
			order := []func() error{peer, own}
			if i%2 == 1 {
				slices.Reverse(order)
			}
			for _, f := range order {
				if err := f(); err != nil {
					return err
				}
			}
		}
		h, m := median(hyper), median(mine)
		fmt.Printf("harness, %-8s  assay %.3f ms per run, hyperfine %.3f, ratio %.2f (bar 1.00)\n", mode.name, 1e3*m, 1e3*h, m/h)
		fmt.Printf("figure: harness.%s %.3f ×\n", mode.name, m/h)
	}
	return nil
}

func timed(into *[]float64, runs int, name string, args ...string) error {
	start := time.Now()
	out, err := exec.Command(name, args...).CombinedOutput()
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	*into = append(*into, took.Seconds()/float64(runs))
	return nil
}

func median(xs []float64) float64 {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return xs[len(xs)/2]
}

const (
	cells   = 16
	arms    = 3
	rounds  = 100
	samples = 1_000_000
)

// large makes a run of 16 cells, 3 arms, 100 rounds and a million samples, and
// measures analysing and verifying it, each in a process of its own so that the
// peak memory is its own.
func large(dir, only string, repeats int) error {
	if child := os.Getenv("ASSAY_BENCH_RUN"); child != "" {
		return measureLarge(child, only)
	}
	folder := filepath.Join(dir, "large")
	if err := makeLarge(folder); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, what := range []string{"analysis", "verify"} {
		if only != "" && only != what {
			continue
		}
		var took []float64
		var peak int64
		for range repeats {
			cmd := exec.Command(self, "-only", what)
			cmd.Env = append(os.Environ(), "ASSAY_BENCH_RUN="+folder)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %v\n%s", what, err, out)
			}
			var s float64
			var kib int64
			if _, err := fmt.Sscan(string(out), &s, &kib); err != nil {
				return fmt.Errorf("%s: %q: %v", what, out, err)
			}
			took, peak = append(took, s), max(peak, kib)
		}
		s := median(took)
		if what == "analysis" {
			fmt.Printf("analysis          %.2f s (bar 2), peak %d MiB (bar 300): %d cells × %d arms × %d rounds, %d samples\n", s, peak>>10, cells, arms, rounds, samples)
			fmt.Printf("figure: analysis.time %.3f s\nfigure: analysis.memory %d MiB\n", s, peak>>10)
			continue
		}
		size := folderSize(folder)
		fmt.Printf("verify            %.0f MB/s of ledger (bar 200): %.1f MB in %.3f s\n", float64(size)/1e6/s, float64(size)/1e6, s)
		fmt.Printf("figure: verify.rate %.1f MB/s\n", float64(size)/1e6/s)
	}
	return nil
}

func measureLarge(folder, only string) error {
	start := time.Now()
	if only == "verify" {
		if _, problems, err := ledger.Verify(folder); err != nil || len(problems) > 0 {
			return fmt.Errorf("%v %v", problems, err)
		}
	} else {
		r, err := ledger.Open(folder)
		if err != nil {
			return err
		}
		if res := analysis.Analyze(r); !res.Clear {
			return fmt.Errorf("the run is not clear: %v", res.Checks)
		}
	}
	took := time.Since(start)
	peak, err := peakKiB()
	fmt.Println(took.Seconds(), peak)
	return err
}

func peakKiB() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			_, err := fmt.Sscan(rest, &kib)
			return kib, err
		}
	}
	return 0, fmt.Errorf("no VmHWM")
}

func folderSize(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

const largeProtocol = `assay: 1
name: large
question: How long does the lab think?
arms:
  - {name: control, command: ["true"]}
  - {name: treatment, command: ["true"]}
  - {name: third, command: ["true"]}
factors:
  - {name: size, levels: [1, 2, 3, 4]}
  - {name: load, levels: [1, 2, 3, 4]}
design: {rounds: 100, seed: 1}
metrics:
  - {name: wall, better: lower, source: wall}
  - {name: p50, unit: ns, better: lower, source: samples, key: op, quantile: 0.5}
  - {name: p99, unit: ns, better: lower, source: samples, key: op, quantile: 0.99}
checks:
  - {name: right, scope: trial, reported: true}
primary: {metric: wall, cells: {size: 1, load: 1}}
gates:
  - {name: tail, metric: p99, statistic: pooled, require: ratio <= 1.1}
decision: {preset: four-branch}
`

func makeLarge(folder string) error {
	p, faults := protocol.Parse("large.yaml", []byte(largeProtocol), nil)
	if len(faults) > 0 {
		return faults
	}
	lock, err := protocol.Freeze(p, protocol.Evidence{Tool: "bench", Now: time.Now(), Source: "large.yaml"})
	if err != nil {
		return err
	}
	w, err := ledger.Create(folder, lock, p, &host.Provenance{OS: runtime.GOOS, Arch: runtime.GOARCH}, time.Now())
	if err != nil {
		return err
	}
	per := samples / (cells * arms * rounds)
	state := uint64(1)
	next := func() uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 33
	}
	for _, rd := range trial.Schedule(p) {
		for _, s := range rd.Slots {
			lat := make([]int64, per)
			for i := range lat {
				lat[i] = 1000 + int64(next()%1_000_000)
			}
			o := &trial.Observation{
				Cell: s.Cell, Round: s.Round, Slot: s.Slot, Arm: s.Arm, Seed: s.Seed, Start: time.Now(), Status: trial.StatusOK,
				Usage:  trial.Usage{Wall: time.Duration(1_000_000 + next()%100_000)},
				Checks: []check.Result{{Name: "right", Verdict: check.Pass, Operations: per}},
				Bulk:   map[string][]int64{"op": lat},
			}
			if err := w.Append(ledger.Record{Kind: ledger.KindTrial, Trial: o}); err != nil {
				return err
			}
		}
		if err := w.EndRound(ledger.RoundMark{Cell: rd.Cell, Round: rd.Round}, false); err != nil {
			return err
		}
	}
	if err := w.Append(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{Time: time.Now()}}); err != nil {
		return err
	}
	return w.Close()
}
