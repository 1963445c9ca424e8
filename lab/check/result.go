package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is what one check found.
type Result struct {
	Name       string         `json:"name"`
	Verdict    Verdict        `json:"verdict"`
	Message    string         `json:"message,omitempty"`    // why, in one line; empty where there is nothing to say
	Operations int            `json:"operations,omitempty"` // how many operations the check looked at
	Kinds      map[string]int `json:"kinds,omitempty"`      // how many operations of each kind succeeded
	Faults     map[string]int `json:"faults,omitempty"`     // how often each fault fired
	Examples   []string       `json:"examples,omitempty"`   // a few counter-examples, each of bounded length
}

// Requirement is what makes a pass non-vacuous. The zero Requirement asks for
// one operation of any kind: a check that looked at nothing has shown nothing.
type Requirement struct {
	Operations int      // least number the check must have looked at; below 1 means 1
	Kinds      []string // each must have succeeded at least once
	Faults     []string // each must have fired at least once
}

// Require returns r as it stands once q is asked of it. A Pass that does not
// meet q becomes Unknown, and the message says what was missing. A negative
// count makes anything but a Fail Unknown. A Fail stays a Fail. r itself is
// not changed.
func (r Result) Require(q Requirement) Result {
	r = r.sane()
	if r.Verdict != Pass {
		return r
	}
	var missing []string
	if least := max(q.Operations, 1); r.Operations < least {
		missing = append(missing, fmt.Sprintf("looked at %d operations, needs %d", r.Operations, least))
	}
	for _, kind := range q.Kinds {
		if r.Kinds[kind] < 1 {
			missing = append(missing, fmt.Sprintf("no %s succeeded", kind))
		}
	}
	for _, fault := range q.Faults {
		if r.Faults[fault] < 1 {
			missing = append(missing, fmt.Sprintf("fault %s did not fire", fault))
		}
	}
	if len(missing) > 0 {
		return r.doubt(strings.Join(missing, "; "))
	}
	return r
}

// sane returns r, doubted where a count is negative: a miscount upstream says
// that the numbers behind the verdict are wrong.
func (r Result) sane() Result {
	r.Verdict = Merge(r.Verdict)
	if r.Operations < 0 {
		r = r.doubt(fmt.Sprintf("a negative count: %d operations", r.Operations))
	}
	for _, counts := range []map[string]int{r.Kinds, r.Faults} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if n := counts[name]; n < 0 {
				r = r.doubt(fmt.Sprintf("a negative count: %d of %s", n, name))
			}
		}
	}
	return r
}

// doubt returns r as Unknown with the reason added, or as the Fail it was.
func (r Result) doubt(reason string) Result {
	r.Verdict = Merge(r.Verdict, Unknown)
	if r.Message != "" {
		reason = r.Message + "; " + reason
	}
	r.Message = reason
	return r
}

// Guard runs judge and returns its result under the given name. A judge that
// panics is Unknown, with the panic's text. Guard cannot catch a panic in
// another goroutine, nor a judge that does not return.
func Guard(name string, judge func() Result) (res Result) {
	defer func() {
		if caught := recover(); caught != nil {
			res = Result{Verdict: Unknown, Message: clip(fmt.Sprintf("the judge panicked: %v", caught), maxExampleBytes)}
		}
		res.Name, res.Verdict = name, Merge(res.Verdict)
	}()
	return judge()
}
