package ledger

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
)

// decode reads the record of a line whose sum has been checked. Nearly all
// lines are trials and marks, written by encodeLine with their fields in the
// order of the types, and reading them in that order takes a fifth of the time
// that reading any JSON does. Whatever else a line holds, a field that was
// added later for instance, is left to encoding/json: what comes out is always
// the same.
func decode(line []byte, rec *Record) error {
	if c := (cursor{b: line}); c.record(rec) {
		return nil
	}
	*rec = Record{}
	return json.Unmarshal(line, rec)
}

// cursor reads JSON in one expected form. off says that the form is another.
type cursor struct {
	b   []byte
	off bool
}

func (c *cursor) record(rec *Record) bool {
	head, tail := len(prevStart)+hashLen+len(seqStart), len(sumStart)+hashLen+len(sumEnd)
	if len(c.b) < head+tail {
		return false
	}
	c.b = c.b[head : len(c.b)-tail]
	c.int()
	switch {
	case c.has(`,"kind":"trial","trial":`):
		rec.Kind, rec.Trial = KindTrial, &trial.Observation{}
		c.observation(rec.Trial)
	case c.has(`,"kind":"round","round":`):
		rec.Kind, rec.Round = KindRound, &RoundMark{}
		c.mark(rec.Round)
	default:
		return false
	}
	return !c.off && len(c.b) == 0
}

func (c *cursor) mark(m *RoundMark) {
	c.must(`{"cell":`)
	m.Cell = c.string()
	c.must(`,"round":`)
	m.Round = c.int()
	m.Warmup = c.has(`,"warmup":true`)
	if c.has(`,"durable":`) {
		m.Durable = c.int()
	}
	c.must(`}`)
}

func (c *cursor) observation(o *trial.Observation) {
	c.must(`{"cell":`)
	o.Cell = c.string()
	c.must(`,"round":`)
	o.Round = c.int()
	o.Warmup = c.has(`,"warmup":true`)
	c.must(`,"slot":`)
	o.Slot = c.int()
	c.must(`,"arm":`)
	o.Arm = c.string()
	c.must(`,"seed":`)
	o.Seed = number(c, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	c.must(`,"start":`)
	if start := c.quoted(); !c.off {
		c.off = o.Start.UnmarshalJSON(start) != nil
	}
	c.must(`,"status":`)
	o.Status = trial.Status(c.string())
	c.must(`,"exit":`)
	o.Exit = c.int()
	if c.has(`,"signal":`) {
		o.Signal = c.string()
	}
	c.must(`,"usage":`)
	c.usage(&o.Usage)
	if c.has(`,"values":`) {
		o.Values = table(c, (*cursor).float)
	}
	if c.has(`,"bench":`) {
		o.Bench = table(c, (*cursor).float)
	}
	if c.has(`,"samples":`) {
		o.Samples = list(c, (*cursor).ref)
	}
	if c.has(`,"checks":`) {
		o.Checks = list(c, (*cursor).result)
	}
	o.Garbled = c.has(`,"garbled":true`)
	if c.has(`,"notes":`) {
		o.Notes = list(c, (*cursor).string)
	}
	if c.has(`,"stderr":`) {
		o.Stderr = c.string()
	}
	c.must(`}`)
}

func (c *cursor) usage(u *trial.Usage) {
	c.must(`{"wall_ns":`)
	u.Wall = c.duration()
	c.must(`,"user_ns":`)
	u.User = c.duration()
	c.must(`,"system_ns":`)
	u.System = c.duration()
	if c.has(`,"peak_memory_bytes":`) {
		u.PeakMemory = c.int64()
	}
	if c.has(`,"context_switches":`) {
		u.Switches = c.int64()
	}
	if c.has(`,"major_faults":`) {
		u.Faults = c.int64()
	}
	c.must(`}`)
}

func (c *cursor) ref() (r trial.SampleRef) {
	c.must(`{"name":`)
	r.Name = c.string()
	c.must(`,"offset":`)
	r.Offset = c.int64()
	c.must(`,"count":`)
	r.Count = c.int()
	c.must(`,"sha256":`)
	r.SHA256 = c.string()
	c.must(`}`)
	return r
}

func (c *cursor) result() (r check.Result) {
	c.must(`{"name":`)
	r.Name = c.string()
	c.must(`,"verdict":`)
	if err := r.Verdict.UnmarshalText([]byte(c.string())); err != nil {
		c.off = true
	}
	if c.has(`,"message":`) {
		r.Message = c.string()
	}
	if c.has(`,"operations":`) {
		r.Operations = c.int()
	}
	if c.has(`,"kinds":`) {
		r.Kinds = table(c, (*cursor).int)
	}
	if c.has(`,"faults":`) {
		r.Faults = table(c, (*cursor).int)
	}
	if c.has(`,"examples":`) {
		r.Examples = list(c, (*cursor).string)
	}
	c.must(`}`)
	return r
}

// has takes s off the front if it is there.
func (c *cursor) has(s string) bool {
	if len(c.b) < len(s) || string(c.b[:len(s)]) != s {
		return false
	}
	c.b = c.b[len(s):]
	return true
}

func (c *cursor) must(s string) {
	if !c.has(s) {
		c.stop()
	}
}

func (c *cursor) stop() { c.off, c.b = true, nil }

// quoted takes a string with its quotes off the front: one that stands for
// itself, without escapes and beyond doubt UTF-8.
func (c *cursor) quoted() []byte {
	for i, x := range c.b {
		switch {
		case x == '"' && i > 0:
			s := c.b[:i+1]
			c.b = c.b[i+1:]
			return s
		case x == '"', i > 0 && x >= ' ' && x < 0x80 && x != '\\':
		default:
			c.stop()
			return nil
		}
	}
	c.stop()
	return nil
}

func (c *cursor) string() string {
	s := c.quoted()
	if c.off {
		return ""
	}
	return string(s[1 : len(s)-1])
}

// number takes a number off the front, written as encoding/json writes it.
func number[T any](c *cursor, parse func(string) (T, error)) (v T) {
	end := 0
	for end < len(c.b) && (c.b[end]-'0' <= 9 || c.b[end] == '-' || c.b[end] == '.' || c.b[end]|0x20 == 'e' || c.b[end] == '+') {
		end++
	}
	s := c.b[:end]
	// Go's own syntax of numbers allows more than JSON's.
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || digits[0]-'0' > 9 || len(digits) > 1 && digits[0] == '0' && digits[1]-'0' <= 9 || s[len(s)-1] == '.' || bytes.Contains(s, []byte(".e")) || bytes.Contains(s, []byte(".E")) {
		c.stop()
		return v
	}
	v, err := parse(string(s))
	if err != nil {
		c.stop()
		return v
	}
	c.b = c.b[end:]
	return v
}

func (c *cursor) int() int { return number(c, strconv.Atoi) }

func (c *cursor) int64() int64 {
	return number(c, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

func (c *cursor) duration() time.Duration { return time.Duration(c.int64()) }

func (c *cursor) float() float64 {
	return number(c, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

// table takes an object with at least one key off the front.
func table[T any](c *cursor, value func(*cursor) T) map[string]T {
	out := map[string]T{}
	c.must(`{`)
	for !c.off {
		k := c.string()
		c.must(`:`)
		if out[k] = value(c); !c.has(`,`) {
			break
		}
	}
	c.must(`}`)
	return out
}

// list takes an array with at least one element off the front.
func list[T any](c *cursor, value func(*cursor) T) (out []T) {
	c.must(`[`)
	for !c.off {
		if out = append(out, value(c)); !c.has(`,`) {
			break
		}
	}
	c.must(`]`)
	return out
}
