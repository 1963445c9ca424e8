package trial

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/check"
)

// Bounds of what one trial may report. They are far above any honest use; an
// arm that passes them is told so.
const (
	MaxOutput  = 8 << 20   // bytes of stdout, and of $ASSAY_OUT
	MaxSamples = 20 << 20  // samples of one name
	maxKeys    = 1000      // scalars
	maxNotes   = 20        // notes kept
	maxNote    = 500       // characters of one note
	stderrTail = 2000      // bytes of stderr kept of a trial that failed
	maxLine    = MaxOutput // one line may be all of it
)

// report gathers what an arm says of itself, on stdout and in $ASSAY_OUT.
//
// A line that starts with { is one JSON object: numbers are scalars by key;
// {"check": name, "status": "pass"|"fail"|"unknown", "operations": n, …} is a
// check's result; {"samples": name, "file": path} names a file of integers,
// text or (ending in .i64) little-endian, and {"samples": name, "values": […]}
// holds them itself; {"note": text} is kept as it is. On stdout a line that
// starts with Benchmark is read as the Go benchmark format, and every other
// line is the arm's own affair.
type report struct {
	obs   *Observation
	dir   string // relative sample files are looked up here
	bench map[string]int
	twice map[string]bool
	timed time.Duration
}

func newReport(obs *Observation, dir string) *report {
	return &report{obs: obs, dir: dir, bench: map[string]int{}, twice: map[string]bool{}}
}

func (r *report) note(format string, args ...any) {
	if len(r.obs.Notes) < maxNotes {
		s := fmt.Sprintf(format, args...)
		if len(s) > maxNote {
			s = strings.ToValidUTF8(s[:maxNote], "") + "…"
		}
		r.obs.Notes = append(r.obs.Notes, s)
	}
}

// read takes in one stream. strict is for $ASSAY_OUT, where every line must be
// an object.
func (r *report) read(from io.Reader, name string, strict bool) {
	sc := bufio.NewScanner(from)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		switch {
		case len(line) == 0:
		case line[0] == '{':
			if err := r.object(line); err != nil {
				r.note("%s line %d: %v", name, n, err)
			}
		case strict:
			r.note("%s line %d: expected a JSON object, found %q", name, n, cutBytes(line, 60))
		case bytes.HasPrefix(line, []byte("Benchmark")):
			r.benchmark(string(line))
		}
	}
	if err := sc.Err(); err != nil {
		r.note("%s: %v", name, err)
	}
}

func cutBytes(b []byte, n int) string {
	if len(b) > n {
		return strings.ToValidUTF8(string(b[:n]), "") + "…"
	}
	return strings.ToValidUTF8(string(b), "?")
}

func (r *report) object(line []byte) error {
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(line, &obj); err != nil {
		return fmt.Errorf("not JSON: %v", err)
	}
	switch {
	case obj["check"] != nil:
		return r.check(line)
	case obj["samples"] != nil:
		return r.samples(line)
	}
	keys := make([]string, 0, len(obj))
	for k := range obj {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		raw := obj[k]
		if k == "note" {
			var s string
			if json.Unmarshal(raw, &s) == nil {
				r.note("%s", s)
			}
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil || bytes.Equal(raw, []byte("null")) {
			r.note("key %q is not a number: %s", k, cutBytes(raw, 40))
			continue
		}
		if k == timedKey {
			r.timed = time.Duration(v)
			continue
		}
		r.value(k, v)
	}
	return nil
}

// value keeps a scalar. A key reported twice has no value: which of them was
// meant is the arm's secret.
func (r *report) value(k string, v float64) {
	if r.obs.Values == nil {
		r.obs.Values = map[string]float64{}
	}
	switch _, dup := r.obs.Values[k]; {
	case dup || r.twice[k]:
		delete(r.obs.Values, k)
		r.twice[k] = true
		r.note("key %q was reported more than once; it counts as missing", k)
	case math.IsNaN(v) || math.IsInf(v, 0):
		r.note("key %q is not a finite number", k)
	case len(r.obs.Values) >= maxKeys:
		r.note("more than %d keys; %q and later ones are not kept", maxKeys, k)
	default:
		r.obs.Values[k] = v
	}
}

func (r *report) check(line []byte) error {
	var in struct {
		Check      string         `json:"check"`
		Status     string         `json:"status"`
		Message    string         `json:"message"`
		Operations *int           `json:"operations"`
		Kinds      map[string]int `json:"kinds"`
		Faults     map[string]int `json:"faults"`
		Examples   []string       `json:"examples"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return fmt.Errorf("check: %v", err)
	}
	res := check.Result{Name: in.Check, Message: in.Message, Operations: 1, Kinds: in.Kinds, Faults: in.Faults, Examples: in.Examples}
	if in.Operations != nil {
		res.Operations = *in.Operations
	}
	switch in.Status {
	case "pass":
		res.Verdict = check.Pass
	case "fail":
		res.Verdict = check.Fail
	case "unknown":
		res.Verdict = check.Unknown
	default:
		res.Verdict = check.Unknown
		res.Message = strings.TrimSpace(fmt.Sprintf("status %q is none of pass, fail, unknown. %s", in.Status, in.Message))
	}
	r.obs.Checks = append(r.obs.Checks, res)
	return nil
}

func (r *report) samples(line []byte) error {
	var in struct {
		Samples string  `json:"samples"`
		File    string  `json:"file"`
		Values  []int64 `json:"values"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return fmt.Errorf("samples: %v (they are whole numbers, for instance nanoseconds)", err)
	}
	if in.File != "" {
		path := in.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.dir, path)
		}
		v, err := readSamples(path)
		if err != nil {
			return fmt.Errorf("samples %q: %v", in.Samples, err)
		}
		in.Values = append(in.Values, v...)
	}
	for _, v := range in.Values {
		if v < 0 {
			return fmt.Errorf("samples %q: negative value %d", in.Samples, v)
		}
	}
	if r.obs.Bulk == nil {
		r.obs.Bulk = map[string][]int64{}
	}
	if len(r.obs.Bulk[in.Samples])+len(in.Values) > MaxSamples {
		return fmt.Errorf("samples %q: more than %d", in.Samples, MaxSamples)
	}
	r.obs.Bulk[in.Samples] = append(r.obs.Bulk[in.Samples], in.Values...)
	return nil
}

func readSamples(path string) ([]int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > MaxSamples*21 {
		return nil, fmt.Errorf("%s has %d bytes; at most %d samples are kept", path, info.Size(), MaxSamples)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".i64") {
		if len(b)%8 != 0 {
			return nil, fmt.Errorf("%s has %d bytes, not a multiple of 8", path, len(b))
		}
		return DecodeSamples(b), nil
	}
	fields := bytes.Fields(b)
	out := make([]int64, len(fields))
	for i, f := range fields {
		if out[i], err = strconv.ParseInt(string(f), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: value %d is %q, not a whole number", path, i+1, cutBytes(f, 30))
		}
	}
	return out, nil
}

// EncodeSamples writes samples as little-endian 64-bit integers.
func EncodeSamples(s []int64) []byte {
	b := make([]byte, 0, 8*len(s))
	for _, v := range s {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// DecodeSamples reads what EncodeSamples wrote. The length must be a multiple
// of 8; what is left over is ignored.
func DecodeSamples(b []byte) []int64 {
	out := make([]int64, len(b)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// benchmark reads one line of the Go benchmark format: name, iterations, then
// pairs of value and unit. A benchmark printed several times counts with the
// mean of its lines.
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
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			r.note("benchmark %s: %q is not a number", name, f[i])
			return
		}
		key := name + " " + f[i+1]
		if r.obs.Bench == nil {
			r.obs.Bench = map[string]float64{}
		}
		n := float64(r.bench[key])
		r.obs.Bench[key] = (r.obs.Bench[key]*n + v) / (n + 1)
		r.bench[key]++
		if n == 1 {
			r.note("benchmark %s was printed more than once; the mean counts", key)
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

// readOut takes in $ASSAY_OUT, if the arm wrote it, and removes it.
func (r *report) readOut(path string) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.note("$ASSAY_OUT: %v", err)
		return
	}
	defer os.Remove(path)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > MaxOutput {
		r.note("$ASSAY_OUT is not a regular file of at most %d bytes; put bulk samples into files of their own", MaxOutput)
		return
	}
	r.read(f, "$ASSAY_OUT", true)
}
