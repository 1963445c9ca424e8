package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
)

// readBench is what the readers of the format make of a page.
func readBench(t *testing.T, s *Source) (results []*benchfmt.Result, units benchfmt.UnitMetadataMap) {
	t.Helper()
	r := benchfmt.NewReader(bytes.NewReader(page(t, Benchfmt, s)), "page")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			results = append(results, rec.Clone())
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return results, r.Units()
}

// parts are the pieces of a benchmark's name, without the slashes.
func parts(r *benchfmt.Result) []string {
	base, rest := r.Name.Parts()
	all := []string{string(base)}
	for _, p := range rest {
		all = append(all, strings.TrimPrefix(string(p), "/"))
	}
	return all
}

func TestBenchfmtIsRead(t *testing.T) {
	s := goRun(t)
	results, units := readBench(t, s)
	if len(results) != 24 {
		t.Fatalf("%d results of 24 measured trials", len(results))
	}
	measured := s.measured()
	for i, r := range results {
		if want := []string{"control", "treatment"}[i%2]; measured[i].Arm != want || measured[i].Round != 2+i/2 {
			t.Errorf("line %d is of round %d, %s", i, measured[i].Round, measured[i].Arm)
		}
		if got := parts(r); got[0] != "Write-path" || got[1] != "arm="+measured[i].Arm || len(got) != 2 {
			t.Errorf("line %d is of %q, the trial was of %s", i, got, measured[i].Arm)
		}
		if v, ok := r.Value("sec/op"); !ok || v != float64(measured[i].Usage.Wall)*1e-9 {
			t.Errorf("line %d: wall is %v", i, v)
		}
		if v, ok := r.Value("p99-sec"); !ok || v < 1e-4 || v > 1e-3 {
			t.Errorf("line %d: p99 is %v", i, v)
		}
		if v, ok := r.Value("commands"); !ok || v != measured[i].Values["commands"] {
			t.Errorf("line %d: commands are %v", i, v)
		}
	}
	for unit, better := range map[string]string{"sec/op": "lower", "throughput-saves/s": "higher", "p99-sec": "lower"} {
		if m := units.Get(unit, "better"); m == nil || m.Value != better {
			t.Errorf("%s: better is %v", unit, m)
		}
	}
	if m := units.Get("retries", "assume"); m == nil || m.Value != "exact" {
		t.Errorf("retries: assume is %v", m)
	}
	if got := results[0].GetConfig("assay-protocol"); got != "sha256:"+s.Run.Lock.SHA256 {
		t.Errorf("assay-protocol is %q", got)
	}
}

func TestBenchfmtNamesSurvive(t *testing.T) {
	results, _ := readBench(t, matrixRun(t))
	if len(results) != 4*8*3 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		got := parts(r)
		if len(got) != 4 || got[0] != "Matrix" || strings.HasPrefix(got[len(got)-1], "-") {
			t.Errorf("%s is read as %q", r.Name, got)
		}
	}
}

func TestBenchWord(t *testing.T) {
	seen := map[string]string{}
	for in, want := range map[string]string{
		"hot": "hot", "v1-2": "v1-2~", "v1-2~": "v1-2~~", "v1-2x": "v1-2x", "8": "8", "-8": "-8~", "a b": "a%20b", "a/b=c": "a%2Fb%3Dc",
		"50%": "50%", "%2F": "%252F", "%2f": "%2f", "ä": "ä", "\xff": "%FF", "\ufffd": "\ufffd", "a\u00a0b": "a%C2%A0b", "\x00": "%00", "": "",
	} {
		got := benchWord(in)
		if got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", in, other, got)
		}
		seen[got] = in
	}
}

func TestBenchUnits(t *testing.T) {
	m := func(name, unit, source string, count bool) protocol.Metric {
		return protocol.Metric{Name: name, Unit: unit, Source: source, Count: count}
	}
	p := &protocol.Protocol{Metrics: []protocol.Metric{
		m("total", "s", protocol.SourceWall, false), m("again", "ms", protocol.SourceWall, false), m("peak_memory", "MiB", protocol.SourcePeakMemory, false),
		m("p99", "us", protocol.SourceSamples, false), m("rate", "ops/s", protocol.SourceJSON, false), m("lost_acks", "acks", protocol.SourceJSON, true),
		m("wait_ns", "ns", protocol.SourceJSON, false), m("alloc", "B/op", protocol.SourceGoBench, false), m("ns_per_op", "", protocol.SourceJSON, false),
		m("a", "b", protocol.SourceJSON, false), m("a_b", "", protocol.SourceJSON, false), m("x", "a b|\n", protocol.SourceJSON, false), m("plain", "", protocol.SourceJSON, false),
	}}
	want := []benchUnit{
		{"ns/op", 1e9}, {"again-ns", 1e6}, {"peak-memory-B", 1 << 20}, {"p99-ns", 1e3}, {"rate-ops/s", 1}, {"lost-acks", 1},
		{"wait-ns_-ns", 1}, {"alloc-B/op", 1}, {"ns_-per-op", 1}, {"a-b", 1}, {"also-a-b", 1}, {"x-a-b", 1}, {"plain", 1},
	}
	if got := benchUnits(p); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestBenchfmtOfHostileRuns(t *testing.T) {
	results, _ := readBench(t, hostileRun(t, check.Pass))
	if want := 4 * 8 * 3; len(results) != want {
		t.Errorf("%d results, want %d", len(results), want)
	}
	for _, r := range results {
		if len(parts(r)) != 4 || len(r.Values) != 2 {
			t.Fatalf("%s is read as %q with %d values", r.Name, parts(r), len(r.Values))
		}
	}
	if results, _ := readBench(t, hostileRun(t, check.Fail)); len(results) > 0 {
		t.Error("figures of a run with a failed check")
	}
}

// TestBenchstat asks the real program. It is a tool of this module, so a
// machine with a filled module cache needs no network for it.
func TestBenchstat(t *testing.T) {
	bench := filepath.Join(t.TempDir(), "benchstat")
	if out, err := exec.Command("go", "build", "-o", bench, "golang.org/x/perf/cmd/benchstat").CombinedOutput(); err != nil {
		t.Skipf("benchstat cannot be built here, neither from the module cache nor from a proxy: %v\n%s", err, out)
	}
	run := func(s *Source) string {
		file := filepath.Join(t.TempDir(), "exp.txt")
		if err := os.WriteFile(file, page(t, Benchfmt, s), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bench, "-col", "/arm", file)
		var warnings bytes.Buffer
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, warnings.String())
		}
		t.Logf("\n%s%s", out, warnings.String())
		return string(out)
	}
	text := run(goRun(t))
	for _, want := range []string{"│   control   │              treatment              │", "sec/op", "-17.", "p=0.000 n=12", "p99-sec", "-33.33%", "throughput-saves/s", "+21."} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
	text = run(matrixRun(t))
	for _, want := range []string{"size=16/keys=uniform-8~", "unsafe-2~", "latency-sec"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
}
