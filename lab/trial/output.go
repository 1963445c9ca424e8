package trial

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/assaylab/assay/lab/check"
)

// Bounds of what one trial may report. They are far above any honest use; an
// arm that passes them is told so.
const (
	MaxOutput  = 8 << 20       // bytes of stdout, and of $ASSAY_OUT
	MaxSamples = 20 << 20      // samples, of all names together
	maxKeys    = 1000          // scalars, and figures of benchmarks
	maxSets    = 100           // names of samples
	maxName    = 100           // bytes of a key or name
	maxNotes   = 20            // notes kept
	maxNote    = 500           // bytes of one note
	maxChecks  = 50            // results of checks
	maxCounts  = 20            // kinds, and faults, of one result
	maxShown   = 5             // examples of one result
	stderrTail = 2000          // bytes of stderr kept of a trial that failed
	maxLine    = MaxOutput + 2 // one line may be all of it
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
//
// Whatever is doubtful counts against the arm: a value or a set of samples with
// a fault anywhere is missing, and a report with a line that cannot be read
// passes no check.
type report struct {
	obs   *Observation
	dir   string // relative sample files are looked up here
	child bool   // the harness's own program reports, for a Go function
	timed time.Duration

	twice map[string]bool   // keys and benchmark figures reported more than once
	from  map[string]string // benchmark figure to the full name it came from
	lines map[string]int    // benchmark figure to how many lines it stood in
	bad   map[string]bool   // names of samples with a fault; "" is all
}

func newReport(obs *Observation, dir string) *report {
	return &report{
		obs: obs, dir: dir, timed: -1,
		twice: map[string]bool{}, from: map[string]string{}, lines: map[string]int{}, bad: map[string]bool{},
	}
}

// finish takes out what turned out to be doubtful.
func (r *report) finish() {
	for name := range r.obs.Bulk {
		if r.bad[name] || r.bad[""] {
			delete(r.obs.Bulk, name)
		}
	}
}

func (r *report) note(format string, args ...any) {
	if len(r.obs.Notes) < maxNotes {
		r.obs.Notes = append(r.obs.Notes, clip(fmt.Sprintf(format, args...), maxNote))
	}
}

// clip shortens s to at most n bytes and a mark.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// garbled notes that part of the report cannot be read. What stood there may
// have been a failed check.
func (r *report) garbled(format string, args ...any) {
	r.obs.Garbled = true
	r.note(format, args...)
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
			err := r.object(line)
			switch {
			case err == nil:
			case strict || bytes.Contains(line, []byte(`"check"`)):
				r.garbled("%s line %d: %v", name, n, err)
			default:
				r.note("%s line %d: %v", name, n, err)
			}
			if err != nil && bytes.Contains(line, []byte(`"samples"`)) {
				r.bad[""] = true
			}
		case strict:
			r.garbled("%s line %d: expected a JSON object, found %q", name, n, cutBytes(line, 60))
		case bytes.HasPrefix(line, []byte("Benchmark")):
			r.benchmark(string(line))
		}
	}
	if err := sc.Err(); err != nil {
		r.garbled("%s: %v", name, err)
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
	again := repeated(line)
	switch {
	case obj["check"] != nil || obj["samples"] != nil:
		if len(again) > 0 {
			return fmt.Errorf("key %q stands twice", again[0])
		}
		if obj["check"] != nil {
			return r.check(line)
		}
		r.samples(line)
		return nil
	}
	keys := make([]string, 0, len(obj))
	for k := range obj {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range append(keys, again...) {
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
			r.note("key %q is not a number: %s", clip(k, maxName), cutBytes(raw, 40))
			v = math.NaN()
		}
		switch {
		case r.child && k == timedKey:
			r.timed = time.Duration(v)
		case r.child && k == garbledKey:
			r.obs.Garbled = true
		default:
			r.value(k, v)
		}
	}
	return nil
}

// repeated lists the keys of an object that stand in it more than once, in
// any case. A decoder takes the last one silently.
func repeated(object []byte) (again []string) {
	dec := json.NewDecoder(bytes.NewReader(object))
	seen := map[string]bool{}
	depth := 0
	key := false
	for {
		tok, err := dec.Token()
		if err != nil {
			return again
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
			} else {
				depth--
			}
			key = depth == 1
			continue
		case string:
			if depth == 1 && key {
				if folded := strings.ToLower(tok); seen[folded] {
					again = append(again, tok)
				} else {
					seen[folded] = true
				}
				key = false
				continue
			}
		}
		key = depth == 1
	}
}

// value keeps a scalar. A key reported twice has no value: which of them was
// meant is the arm's secret. Nor has one that was no number once.
func (r *report) value(k string, v float64) {
	if r.obs.Values == nil {
		r.obs.Values = map[string]float64{}
	}
	switch _, dup := r.obs.Values[k]; {
	case len(k) > maxName:
		r.note("key %q is longer than %d bytes; it is not kept", clip(k, 40), maxName)
	case dup || r.twice[k]:
		delete(r.obs.Values, k)
		r.twice[k] = true
		r.note("key %q was reported more than once; it counts as missing", k)
	case math.IsNaN(v) || math.IsInf(v, 0):
		r.twice[k] = true
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
	if in.Check == "" || len(in.Check) > maxName {
		return fmt.Errorf("check: %q is no name", clip(in.Check, 40))
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
	r.result(res)
	return nil
}

// result keeps what the arm says of a check. Beyond the bound only failures
// replace what is there, so that none is lost.
func (r *report) result(res check.Result) {
	res = bounded(res)
	if len(r.obs.Checks) < maxChecks {
		r.obs.Checks = append(r.obs.Checks, res)
		return
	}
	r.garbled("more than %d results of checks; the rest is not kept", maxChecks)
	if res.Verdict != check.Fail {
		return
	}
	for i := range r.obs.Checks {
		if r.obs.Checks[i].Verdict != check.Fail {
			r.obs.Checks[i] = res
			return
		}
	}
}

// bounded is a result that fits into a record. Counts that are left out are
// counts that a requirement does not find.
func bounded(res check.Result) check.Result {
	res.Verdict = check.Merge(res.Verdict)
	res.Message = clip(res.Message, maxNote)
	if len(res.Examples) > maxShown {
		res.Examples = res.Examples[:maxShown]
	}
	res.Examples = slices.Clone(res.Examples)
	for i, e := range res.Examples {
		res.Examples[i] = clip(e, maxNote)
	}
	res.Kinds, res.Faults = boundedCounts(res.Kinds), boundedCounts(res.Faults)
	return res
}

func boundedCounts(m map[string]int) map[string]int {
	var out map[string]int
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch {
		case m[k] < 0:
			// One negative count says that something is wrong; no more is needed.
			return map[string]int{clip(k, maxName): m[k]}
		case len(k) > maxName || len(out) >= maxCounts:
		case out == nil:
			out = map[string]int{k: m[k]}
		default:
			out[k] = m[k]
		}
	}
	return out
}

// readOut takes in $ASSAY_OUT, if the arm wrote it; found says whether anything
// is there.
func (r *report) readOut(path string) (found bool) {
	f, info, err := openRegular(path, syscall.O_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil || info.Size() > MaxOutput:
		r.garbled("$ASSAY_OUT is not a regular file of at most %d bytes; put bulk samples into files of their own", MaxOutput)
		if err == nil {
			f.Close()
		}
	default:
		defer f.Close()
		r.read(f, "$ASSAY_OUT", true)
	}
	return true
}
