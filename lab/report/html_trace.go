package report

import (
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/gate"
)

// pageTrace is how the decision was made.
type pageTrace struct {
	Steps []pageStep
	Of    int
	Fired *pageStep
}

type pageStep struct {
	Number    int
	Guard     bool
	Outcome   string
	Class     string
	Condition string
	Otherwise bool // the condition is that no other holds
	Values    []pageValue
	Result    string
	Note      string
	Fired     bool
	Faded     bool
}

type pageValue struct{ Name, Value string }

func newPageTrace(s *Source) *pageTrace {
	all := make([]pageStep, 0, len(s.Verdict.Trace))
	for i, t := range s.Verdict.Trace {
		v := pageStep{
			Number: i + 1, Guard: t.Guard, Outcome: shorten(t.Outcome), Class: strings.ToUpper(string(t.Class)), Condition: shorten(t.Condition),
			Values: namedValues(t.Values), Result: t.Result, Note: shorten(t.Note), Faded: t.Result == "not reached",
		}
		if v.Otherwise = t.Condition == ""; v.Otherwise {
			v.Condition = "default: nothing above applies"
		}
		// A step of the rule that is shown for information carries a note; only a
		// guard does so when it fires.
		v.Fired = t.Result == "true" && t.Outcome == s.Verdict.Outcome && (t.Guard || t.Note == "")
		v.Faded = v.Faded || !t.Guard && t.Note != ""
		if v.Fired || t.Result == "not reached" {
			v.Note = "" // the verdict's why, which the page has said, or the result once more
		}
		all = append(all, v)
	}
	t := &pageTrace{Steps: all, Of: len(all)}
	if at := slices.IndexFunc(all, func(v pageStep) bool { return v.Fired }); at >= 0 {
		t.Fired = &all[at]
	}
	return t
}

func namedValues(values []gate.Value) []pageValue {
	var all []pageValue
	for _, v := range values {
		text := num(float64(v.Num))
		switch {
		case v.Bool != nil && *v.Bool:
			text = "true"
		case v.Bool != nil:
			text = "false"
		case text == none:
			text = "missing"
		}
		all = append(all, pageValue{v.Name, text})
	}
	return all
}
