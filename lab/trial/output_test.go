package trial

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/check"
)

// said reads what an arm said on stdout and in $ASSAY_OUT.
func said(t *testing.T, stdout, out string) *Observation {
	t.Helper()
	obs := &Observation{}
	r := newReport(obs, t.TempDir())
	r.read(strings.NewReader(stdout), "stdout", false)
	r.read(strings.NewReader(out), "$ASSAY_OUT", true)
	r.finish()
	return obs
}

func TestScalars(t *testing.T) {
	type vals = map[string]float64
	for _, c := range []struct {
		what, stdout, out string
		want              vals
		note              string
		garbled           bool
	}{
		{what: "both places", stdout: `{"a": 1, "b": -2.5e-3}`, out: `{"c": 3}`, want: vals{"a": 1, "b": -0.0025, "c": 3}},
		{what: "among other output", stdout: "hello\n  {\"a\": 1}  \nBenchmark of nothing\n\n[1, 2]\n", want: vals{"a": 1}},
		{what: "no newline at the end", stdout: "x\n{\"a\": 1}", want: vals{"a": 1}},
		{what: "CRLF", stdout: "{\"a\": 1}\r\n{\"b\": 2}\r\n", want: vals{"a": 1, "b": 2}},
		{what: "twice in one place", stdout: "{\"a\": 1}\n{\"a\": 1}\n", want: vals{}, note: "more than once"},
		{what: "three times", stdout: "{\"a\": 1}\n{\"a\": 1}\n{\"a\": 2}\n", want: vals{}},
		{what: "once in each place", stdout: `{"a": 1}`, out: `{"a": 1}`, want: vals{}},
		{what: "twice here and once there", stdout: "{\"a\": 1}\n{\"a\": 1}", out: `{"a": 1}`, want: vals{}},
		{what: "twice in one object", stdout: `{"a": 1, "b": 2, "a": 3}`, want: vals{"b": 2}, note: "more than once"},
		{what: "first a number, then none", stdout: "{\"a\": 1}\n{\"a\": \"x\"}\n", want: vals{}},
		{what: "first no number, then one", stdout: "{\"a\": \"x\"}\n{\"a\": 1}\n", want: vals{}},
		{what: "NaN", stdout: `{"a": NaN, "b": 1}`, want: vals{}, note: "not JSON"},
		{what: "NaN as text", stdout: `{"a": "NaN", "b": 1}`, want: vals{"b": 1}, note: `"a" is not a number`},
		{what: "null", stdout: `{"a": null, "b": 1}`, want: vals{"b": 1}, note: `"a" is not a number`},
		{what: "nested", stdout: `{"a": {"b": 1}, "c": [1], "d": true, "e": 1}`, want: vals{"e": 1}},
		{what: "huge", stdout: `{"a": 1e999, "b": 1e308, "c": -1e308}`, want: vals{"b": 1e308, "c": -1e308}, note: `"a" is not a number`},
		{what: "half a line", stdout: "{\"a\": 1}\n{\"b\": 1", want: vals{"a": 1}, note: "stdout line 2: not JSON"},
		{what: "half a line in ASSAY_OUT", out: "{\"a\": 1}\n{\"b\": 1", want: vals{"a": 1}, note: "$ASSAY_OUT line 2: not JSON", garbled: true},
		{what: "text in ASSAY_OUT", out: "{\"a\": 1}\nb = 2\n", want: vals{"a": 1}, note: "expected a JSON object", garbled: true},
		{what: "binary", stdout: "\x00\xff\xfe{\"a\": 1}\n{\xff\xfe}\n{\"b\": 1}\n", want: vals{"b": 1}, note: "not JSON"},
		{what: "a remark", stdout: `{"note": "warm", "a": 1}`, want: vals{"a": 1}, note: "warm"},
		{what: "not the harness's own key", stdout: `{"assay_timed_ns": 5, "assay_garbled": 1}`, want: vals{"assay_timed_ns": 5, "assay_garbled": 1}},
	} {
		o := said(t, c.stdout, c.out)
		if !maps.Equal(o.Values, c.want) {
			t.Errorf("%s: %v, not %v", c.what, o.Values, c.want)
		}
		if c.note != "" {
			noted(t, o, c.note)
		}
		if o.Garbled != c.garbled {
			t.Errorf("%s: garbled is %v", c.what, o.Garbled)
		}
	}
}

func TestWhatIsReportedIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxKeys + 100 {
		fmt.Fprintf(&b, "{\"key%d\": 1}\n", i)
		fmt.Fprintf(&b, "Benchmark%d 1 5 ns/op\n", i)
		fmt.Fprintf(&b, "{\"samples\": \"s%d\", \"values\": [1]}\n", i)
		fmt.Fprintf(&b, "{\"check\": \"c%d\", \"status\": \"pass\", \"message\": %q}\n", i, strings.Repeat("m", 1000))
	}
	fmt.Fprintf(&b, "{%q: 1}\n", strings.Repeat("k", 100_000))
	fmt.Fprintf(&b, "{\"note\": %q}\n", strings.Repeat("n", 100_000))
	fmt.Fprintf(&b, "{\"samples\": %q, \"values\": [1]}\n", strings.Repeat("k", 100_000))
	o := said(t, b.String(), "")
	if len(o.Values) != maxKeys || len(o.Bench) != maxKeys || len(o.Bulk) > maxSets || len(o.Checks) != maxChecks || len(o.Notes) != maxNotes {
		t.Errorf("kept %d values, %d figures, %d sets, %d checks, %d notes", len(o.Values), len(o.Bench), len(o.Bulk), len(o.Checks), len(o.Notes))
	}
	if !o.Garbled {
		t.Error("results of checks were dropped and nobody knows")
	}
	for _, n := range o.Notes {
		if len(n) > maxNote+4 {
			t.Errorf("a note of %d bytes", len(n))
		}
	}
	for _, c := range o.Checks {
		if len(c.Message) > maxNote+4 {
			t.Errorf("a message of %d bytes", len(c.Message))
		}
	}
}

func TestReportedChecks(t *testing.T) {
	for _, c := range []struct {
		what, stdout, out string
		verdict           check.Verdict
		message           string
	}{
		{what: "pass", stdout: `{"check": "c", "status": "pass", "operations": 3}`, verdict: check.Pass},
		{what: "fail", out: `{"check": "c", "status": "fail", "message": "lost 3"}`, verdict: check.Fail, message: "lost 3"},
		{what: "unknown", out: `{"check": "c", "status": "unknown"}`, verdict: check.Unknown},
		{what: "nothing", verdict: check.Unchecked, message: "did not report"},
		{what: "another's", stdout: `{"check": "d", "status": "pass"}`, verdict: check.Unchecked},
		{what: "a status that is none", stdout: `{"check": "c", "status": "PASSED"}`, verdict: check.Unknown, message: `"PASSED" is none of`},
		{what: "no status", stdout: `{"check": "c"}`, verdict: check.Unknown},
		{what: "pass twice", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{\"check\": \"c\", \"status\": \"pass\"}", verdict: check.Pass},
		{what: "pass and fail", stdout: `{"check": "c", "status": "pass"}`, out: `{"check": "c", "status": "fail"}`, verdict: check.Fail},
		{what: "fail and pass in one line", stdout: `{"check": "c", "status": "fail", "status": "pass"}`, verdict: check.Unknown},
		{what: "fail and pass in two cases", stdout: `{"check": "c", "status": "fail", "Status": "pass"}`, verdict: check.Unknown},
		{what: "a fail that is no JSON", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{\"check\": \"c\", \"status\": \"fail\", }", verdict: check.Unknown, message: "cannot be read"},
		{what: "a fail with a wrong count", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{\"check\": \"c\", \"status\": \"fail\", \"operations\": \"3\"}", verdict: check.Unknown, message: "cannot be read"},
		{what: "a name that is none", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{\"check\": null, \"status\": \"fail\"}", verdict: check.Unknown},
		{what: "a cut line in ASSAY_OUT", stdout: `{"check": "c", "status": "pass"}`, out: `{"che`, verdict: check.Unknown},
		{what: "a fail and a cut line", stdout: `{"check": "c", "status": "fail"}`, out: `{"che`, verdict: check.Fail},
		{what: "another program's braces on stdout", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{debug: 1}\n", verdict: check.Pass},
		{what: "no operations", stdout: `{"check": "c", "status": "pass", "operations": 0}`, verdict: check.Unknown, message: "looked at 0"},
		{what: "fewer than none", stdout: `{"check": "c", "status": "pass", "operations": -1}`, verdict: check.Unknown, message: "negative"},
		{what: "a negative kind among many", stdout: `{"check": "c", "status": "pass", "kinds": {"a": 1, "b": -1}}`, verdict: check.Unknown, message: "negative"},
		{what: "a fail after more than can be kept", stdout: strings.Repeat("{\"check\": \"c\", \"status\": \"pass\"}\n", 2*maxChecks) + `{"check": "c", "status": "fail"}`, verdict: check.Fail},
		{what: "a line longer than any", stdout: "{\"check\": \"c\", \"status\": \"pass\"}\n{\"check\": \"" + strings.Repeat("x", maxLine), verdict: check.Unknown},
	} {
		o := said(t, c.stdout, c.out)
		res := bounded(reported("c", []*Observation{o})).Require(check.Requirement{})
		if res.Verdict != c.verdict || !strings.Contains(res.Message, c.message) {
			t.Errorf("%s: %s %q; %q", c.what, res.Verdict, res.Message, o.Notes)
		}
	}
}

func TestGoBenchmarkLines(t *testing.T) {
	type vals = map[string]float64
	for _, c := range []struct {
		what, stdout string
		want         vals
		note         string
	}{
		{what: "one", stdout: "goos: linux\nBenchmarkSort-8   \t 100\t 12.5 ns/op\t 3 B/op\t 1 allocs/op\nPASS\n", want: vals{"Sort ns/op": 12.5, "Sort B/op": 3, "Sort allocs/op": 1}},
		{what: "without a suffix", stdout: "BenchmarkSort 100 12 ns/op", want: vals{"Sort ns/op": 12}},
		{what: "sub-benchmarks", stdout: "BenchmarkSort/n=10-8 100 1 ns/op\nBenchmarkSort/n=20-8 100 2 ns/op", want: vals{"Sort/n=10 ns/op": 1, "Sort/n=20 ns/op": 2}},
		{what: "a dash in the name", stdout: "BenchmarkSort/front-loaded-8 1 1 ns/op", want: vals{"Sort/front-loaded ns/op": 1}},
		{what: "several counts", stdout: "BenchmarkSort-8 1 10 ns/op\nBenchmarkSort-8 1 20 ns/op\nBenchmarkSort-8 1 60 ns/op", want: vals{"Sort ns/op": 30}, note: "the mean counts"},
		{what: "several processor counts", stdout: "BenchmarkSort 1 10 ns/op\nBenchmarkSort-2 1 20 ns/op\nBenchmarkSort-4 1 20 ns/op", want: vals{}, note: "both report"},
		{what: "names that end in numbers", stdout: "BenchmarkSort/n-10 1 10 ns/op\nBenchmarkSort/n-20 1 20 ns/op", want: vals{}, note: "both report"},
		{what: "units of one's own", stdout: "BenchmarkWrite-8 50 1e6 fsyncs/s 0.99 p99-ms", want: vals{"Write fsyncs/s": 1e6, "Write p99-ms": 0.99}},
		{what: "no benchmarks", stdout: "BenchmarkSort\nBenchmarkSort-8\nBenchmarks are fun 12 ns/op\nBenchmarkX many 1 ns/op", want: nil},
		{what: "no number", stdout: "BenchmarkSort-8 1 NaN ns/op 5 B/op\nBenchmarkSort-8 1 7 ns/op 5 B/op", want: vals{"Sort B/op": 5}, note: "not a number"},
	} {
		o := said(t, c.stdout, "")
		if len(o.Bench)+len(c.want) > 0 && !maps.Equal(o.Bench, c.want) {
			t.Errorf("%s: %v, not %v", c.what, o.Bench, c.want)
		}
		if c.note != "" {
			noted(t, o, c.note)
		}
	}
	// In $ASSAY_OUT every line is an object.
	if o := said(t, "", "BenchmarkSort-8 1 10 ns/op"); len(o.Bench) > 0 || !o.Garbled {
		t.Errorf("%+v", o)
	}
}

func TestSamples(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("text", []byte("1 2\n3\n\n"))
	put("empty", nil)
	put("crlf", []byte("1\r\n2\r\n"))
	put("bin.i64", EncodeSamples([]int64{5, 6, 1 << 62}))
	put("odd.i64", []byte("123456789"))
	put("minus", []byte("1 -2 3"))
	put("minus.i64", EncodeSamples([]int64{5, -6}))
	put("words", []byte("1 two 3"))
	put("fraction", []byte("1 2.5"))
	put("huge", []byte("1 99999999999999999999"))
	put("bin", []byte("\x00\x01\xff\n"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vast"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"vast": 1 << 40, "vast.i64": MaxSamples*8 + 8} {
		put(name, nil)
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name, file string) string {
		return fmt.Sprintf("{\"samples\": %q, \"file\": %q}\n", name, file)
	}
	for _, c := range []struct {
		what, lines string
		want        []int64
		note        string
	}{
		{what: "in the line", lines: `{"samples": "s", "values": [3, 1, 2]}`, want: []int64{3, 1, 2}},
		{what: "text", lines: file("s", "text"), want: []int64{1, 2, 3}},
		{what: "by its whole path", lines: file("s", filepath.Join(dir, "text")), want: []int64{1, 2, 3}},
		{what: "CRLF", lines: file("s", "crlf"), want: []int64{1, 2}},
		{what: "binary", lines: file("s", "bin.i64"), want: []int64{5, 6, 1 << 62}},
		{what: "several times", lines: file("s", "text") + file("s", "bin.i64") + `{"samples": "s", "values": [9]}`, want: []int64{1, 2, 3, 5, 6, 1 << 62, 9}},
		{what: "file and line at once", lines: `{"samples": "s", "file": "text", "values": [0]}`, want: []int64{0, 1, 2, 3}},
		{what: "none", lines: file("s", "empty")},
		{what: "no file", lines: file("s", "nothing"), note: "no such file"},
		{what: "a folder", lines: file("s", "."), note: "not a regular file"},
		{what: "a pipe", lines: file("s", "pipe"), note: "not a regular file"},
		{what: "odd size", lines: file("s", "odd.i64"), note: "not a multiple of 8"},
		{what: "negative", lines: file("s", "minus"), note: "negative value -2"},
		{what: "negative in binary", lines: file("s", "minus.i64"), note: "negative value -6"},
		{what: "negative in the line", lines: `{"samples": "s", "values": [-1]}`, note: "negative value -1"},
		{what: "words", lines: file("s", "words"), note: `value 2 is "two"`},
		{what: "fractions", lines: file("s", "fraction"), note: "not a whole number"},
		{what: "fractions in the line", lines: `{"samples": "s", "values": [1.5]}`, note: "whole numbers"},
		{what: "beyond 64 bits", lines: file("s", "huge"), note: "not a whole number"},
		{what: "binary that says it is text", lines: file("s", "bin"), note: "not a whole number"},
		{what: "too much", lines: file("s", "vast"), note: "at most"},
		{what: "too many", lines: file("s", "vast.i64"), note: "at most"},
		{what: "no name", lines: file("s", "text") + file("", "text"), note: "no name"},
		// A distribution with a part missing is another distribution.
		{what: "good, then bad", lines: file("s", "text") + file("s", "minus"), note: "they count as missing"},
		{what: "bad, then good", lines: file("s", "minus") + file("s", "text"), note: "they count as missing"},
		{what: "good, then a line that cannot be read", lines: file("s", "text") + `{"samples": "s", "values": [1, 2`, note: "not JSON"},
		{what: "a key twice", lines: file("s", "text") + `{"samples": "s", "samples": "t", "values": [1]}`, note: "stands twice"},
	} {
		o := &Observation{}
		r := newReport(o, dir)
		r.read(strings.NewReader(c.lines), "stdout", false)
		r.read(strings.NewReader(file("other", "text")), "$ASSAY_OUT", true)
		r.finish()
		if !slices.Equal(o.Bulk["s"], c.want) {
			t.Errorf("%s: %v, not %v; %q", c.what, o.Bulk["s"], c.want, o.Notes)
		}
		if c.note != "" {
			noted(t, o, c.note)
		}
		if c.what == "negative" && !slices.Equal(o.Bulk["other"], []int64{1, 2, 3}) {
			t.Errorf("a fault in one set took another along: %v", o.Bulk)
		}
	}
	for _, v := range [][]int64{nil, {0}, {1, -1, 1<<63 - 1, -1 << 63}} {
		if got := DecodeSamples(EncodeSamples(v)); !slices.Equal(got, v) {
			t.Errorf("%v comes back as %v", v, got)
		}
	}
}

func TestAnArmsOutputReachesItsObservation(t *testing.T) {
	r := newRig(t, shell(`echo noise; echo '{"ops": 5}'; echo '{"lat": 2}' > $ASSAY_OUT; echo 7 8 > $ASSAY_SCRATCH/s; echo '{"samples": "s", "file": "s"}' >> $ASSAY_OUT; echo 'BenchmarkX-2 1 5 ns/op'; printf '{"note": "done"}'; echo whatever >&2`))
	o := r.once()
	want(t, o, StatusOK)
	if !maps.Equal(o.Values, map[string]float64{"ops": 5, "lat": 2}) || !reflect.DeepEqual(o.Bulk, map[string][]int64{"s": {7, 8}}) || o.Bench["X ns/op"] != 5 || o.Garbled {
		t.Errorf("%+v", o)
	}
	noted(t, o, "done")
	if o.Stderr != "" {
		t.Errorf("a sound trial keeps %q", o.Stderr)
	}
	// A trial whose report nobody asked for is not read.
	r = newRig(t, shell(`echo '{"ops": 5}'`), "metrics: [{name: wall, source: wall, better: lower}]")
	if o := r.once(); o.Values != nil {
		t.Errorf("read %v", o.Values)
	}
}

func TestOutputWithoutEnd(t *testing.T) {
	forget(t)
	before := peak(t)
	for what, line := range map[string]string{
		"lines":            "yes",
		"a gigabyte":       "head -c 1000000000 /dev/zero",
		"one endless line": "yes | tr -d '\\n'",
		"by a grandchild":  "(yes & wait)",
	} {
		began := time.Now()
		o := newRig(t, shell(line)).once()
		if o.Status != StatusOutput {
			t.Errorf("%s: %s %q", what, o.Status, o.Notes)
		}
		noted(t, o, "more than 8 MiB")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: it took %s", what, took)
		}
	}
	if grown := peak(t) - before; grown > 100<<20 && !underRace {
		t.Errorf("the harness grew by %d MiB", grown>>20)
	}
	o := newRig(t, shell("head -c 100000000 /dev/zero"), "metrics: [{name: wall, source: wall, better: lower}]").once()
	if o.Status != StatusOK {
		t.Errorf("output that nobody reads: %s %q", o.Status, o.Notes)
	}
}

func TestErrorsWithoutEnd(t *testing.T) {
	forget(t)
	before := peak(t)
	o := newRig(t, shell("head -c 20000000 /dev/zero | tr '\\0' 'e' >&2; echo last words >&2; exit 1")).once()
	want(t, o, StatusFailed)
	if len(o.Stderr) > stderrTail || !strings.HasSuffix(o.Stderr, "elast words") {
		t.Errorf("kept %d bytes, ending in %q", len(o.Stderr), o.Stderr[max(0, len(o.Stderr)-20):])
	}
	if grown := peak(t) - before; grown > 50<<20 && !underRace {
		t.Errorf("the harness grew by %d MiB", grown>>20)
	}
	o = newRig(t, shell(`printf '\377\376\000bad\n' >&2; exit 1`)).once()
	if !strings.Contains(o.Stderr, "bad") || strings.ToValidUTF8(o.Stderr, "") != o.Stderr {
		t.Errorf("binary comes out as %q", o.Stderr)
	}
}

func TestWhatStandsInPlaceOfTheReport(t *testing.T) {
	for what, c := range map[string]struct {
		line    string
		garbled bool
	}{
		"a folder":            {"mkdir $ASSAY_OUT", true},
		"a folder with files": {"mkdir -p $ASSAY_OUT/a; touch $ASSAY_OUT/a/b", true},
		"a pipe":              {"mkfifo $ASSAY_OUT", true},
		"a link":              {"echo '{\"ops\": 1}' > $ASSAY_SCRATCH/real; ln -s $ASSAY_SCRATCH/real $ASSAY_OUT", true},
		"a link to a device":  {"ln -s /dev/zero $ASSAY_OUT", true},
		"a link to nothing":   {"ln -s /nowhere $ASSAY_OUT", true},
		"a gigabyte":          {"truncate -s 1G $ASSAY_OUT", true},
		"an empty file":       {"touch $ASSAY_OUT", false},
		"nothing":             {"true", false},
	} {
		r := newRig(t, shell(c.line), "checks: [{name: c, scope: trial, reported: true}]")
		began := time.Now()
		o := r.once()
		want(t, o, StatusOK)
		if o.Values != nil || o.Garbled != c.garbled || time.Since(began) > 10*time.Second {
			t.Errorf("%s: %v, garbled %v, after %s: %q", what, o.Values, o.Garbled, time.Since(began), o.Notes)
		}
		if c.garbled {
			noted(t, o, "not a regular file")
		}
		if entries, err := os.ReadDir(filepath.Join(r.dir, "scratch", "out")); err != nil || len(entries) > 0 {
			t.Errorf("%s: left behind %v, %v", what, entries, err)
		}
	}
}

// What others wrote to the report's place is not the trial's word.
func TestNobodyElseSpeaksForATrial(t *testing.T) {
	r := newRig(t, shell(`true`, `prepare: "echo '{\"ops\": 1}' > $ASSAY_OUT"`))
	if o := r.once(); o.Values != nil {
		t.Errorf("prepare spoke for the trial: %v", o.Values)
	}
	// A harness that was killed leaves the report of the trial under way.
	r = newRig(t, shell(`echo '{"ops": 2}' >> $ASSAY_OUT`))
	if err := os.WriteFile(filepath.Join(r.dir, "scratch", "out", "report.jsonl"), []byte("{\"ops\": 1}\n{\"other\": 1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o := r.once(); !maps.Equal(o.Values, map[string]float64{"ops": 2}) {
		t.Errorf("a killed trial spoke for the next: %v", o.Values)
	}
}

// forget makes peak start anew.
func forget(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skip("the peak cannot be reset here: ", err)
	}
}

func peak(t *testing.T) int64 {
	t.Helper()
	for line := range strings.Lines(read(t, "/proc/self/status")) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

func TestErrorsStayWithTheirTrial(t *testing.T) {
	r := newRig(t, shell("echo round $ASSAY_ROUND >&2; [ $((ASSAY_ROUND % 10)) != 0 ] || { head -c 300000 /dev/zero | tr '\\0' e; echo; echo round $ASSAY_ROUND; } >&2; exit 1"))
	for round := range 40 {
		o := r.trial("a", round)
		want(t, o, StatusFailed)
		said := strings.TrimLeft(o.Stderr, "e\n")
		if said != fmt.Sprint("round ", round) {
			t.Errorf("round %d says %q", round, said)
		}
	}
}
