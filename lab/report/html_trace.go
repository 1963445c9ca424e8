package report

import (
	"strings"

	"github.com/assaylab/assay/lab/gate"
)

type pageStep struct {
	Number    int
	Guard     bool
	Outcome   string
	Class     string
	Condition string
	Values    []pageValue
	Result    string
	Note      string
	Fired     bool
	Faded     bool
}

type pageValue struct{ Name, Value string }

func newPageTrace(s *Source) []pageStep {
	var all []pageStep
	for i, t := range s.Verdict.Trace {
		v := pageStep{
			Number: i + 1, Guard: t.Guard, Outcome: shorten(t.Outcome), Class: strings.ToUpper(string(t.Class)), Condition: shorten(t.Condition),
			Values: namedValues(t.Values), Result: t.Result, Note: shorten(t.Note), Faded: t.Result == "not reached",
		}
		if t.Condition == "" {
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
	return all
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
