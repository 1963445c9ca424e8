// Package gate turns results into one verdict by the rule that was frozen. It
// looks at finished figures only: it computes no statistic, reads no file, and
// must never know how a result was measured.
package gate

import (
	"encoding/json"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/check"
)

// SchemaVersion is the version of verdict.json.
const SchemaVersion = 1

// Class is what an outcome means. The zero Class is none of them and is never
// written.
type Class string

// The classes, and the exit statuses that stand for them.
const (
	Go           Class = "go"
	NoGo         Class = "no-go"
	Inconclusive Class = "inconclusive"
	Invalid      Class = "invalid"
)

// ExitCode is the class as a process exit status: 0 go, 1 no-go, 3
// inconclusive, 4 invalid. What is no class is an internal error, 70.
func (c Class) ExitCode() int {
	switch c {
	case Go:
		return 0
	case NoGo:
		return 1
	case Inconclusive:
		return 3
	case Invalid:
		return 4
	}
	return 70
}

// Verdict is the end of a run.
type Verdict struct {
	Schema   int    `json:"schema"`
	Name     string `json:"name"`
	Question string `json:"question"`
	Outcome  string `json:"outcome"` // the branch that fired
	Class    Class  `json:"class"`
	Exit     int    `json:"exit"`
	Why      string `json:"why"` // one or two sentences

	// Would is the branch of the rule that would have fired, had nothing ahead
	// of it ended the decision. Empty where the rule could not be evaluated.
	Would string `json:"would,omitempty"`

	Trace  []Step         `json:"trace"` // everything looked at, in order
	Checks []check.Result `json:"checks"`
	Vetoes []RuleResult   `json:"vetoes,omitempty"`
	Gates  []RuleResult   `json:"gates,omitempty"`
	Notes  []string       `json:"notes,omitempty"`
}

// Step is one condition of the decision.
type Step struct {
	Outcome   string  `json:"outcome"`
	Class     Class   `json:"class"`
	Condition string  `json:"condition"` // empty for the default
	Values    []Value `json:"values,omitempty"`
	Result    string  `json:"result"` // true, false, missing, not reached
	Guard     bool    `json:"guard,omitempty"`
	Note      string  `json:"note,omitempty"`
}

// Value is a named result that a condition consulted.
type Value struct {
	Name string          `json:"name"`
	Num  analysis.Number `json:"num"`            // null where missing
	Bool *bool           `json:"bool,omitempty"` // set for a truth, which has no num
}

// MarshalJSON leaves num out for a truth, and only there: a zero is a figure.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Bool != nil {
		return json.Marshal(struct {
			Name string `json:"name"`
			Bool bool   `json:"bool"`
		}{v.Name, *v.Bool})
	}
	return json.Marshal(struct {
		Name string          `json:"name"`
		Num  analysis.Number `json:"num"`
	}{v.Name, v.Num})
}

// RuleResult is a gate's or veto's answer in one cell.
type RuleResult struct {
	Rule    string  `json:"rule"`
	Metric  string  `json:"metric"`
	Cell    string  `json:"cell"`
	Arm     string  `json:"arm"`
	Require string  `json:"require"`
	Because string  `json:"because,omitempty"`
	Judged  bool    `json:"judged"` // false for stress: reported, never judged
	State   string  `json:"state"`  // holds, broken, missing
	Values  []Value `json:"values,omitempty"`
	Missing string  `json:"missing,omitempty"`
}

// The states of a rule in a cell.
const (
	Holds   = "holds"
	Broken  = "broken"
	Missing = "missing"
)

// Bytes is verdict.json.
func (v *Verdict) Bytes() []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("gate: " + err.Error())
	}
	return append(b, '\n')
}
