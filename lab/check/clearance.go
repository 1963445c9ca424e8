package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Clearance proves that every required check of a run has passed. Only [Clear]
// makes a valid one. The zero Clearance is not valid, and whoever takes a
// Clearance must refuse it.
type Clearance struct {
	ok bool
}

// Valid says whether c proves anything.
func (c Clearance) Valid() bool { return c.ok }

// Clear merges the results by name and decides whether the run is clear. It
// returns one merged Result for each required name, in that order; a required
// name without a result is Unchecked.
//
// Merging takes the worst verdict, adds up operations, kinds and faults, and
// puts messages and examples of the worst results first. A result with a
// negative count is no better than Unknown.
//
// Clear asks for no [Requirement]: whoever has one applies Require to each result
// first, or to the merged ones and clears those.
//
// The Clearance is valid only if required is not empty, every required name
// merged to Pass, and no result of any name, required or not, is a Fail.
func Clear(required []string, results []Result) (Clearance, []Result) {
	ok := len(required) > 0
	byName := map[string][]Result{}
	for _, r := range results {
		byName[r.Name] = append(byName[r.Name], r)
		ok = ok && r.Verdict != Fail
	}
	merged := make([]Result, 0, len(required))
	for _, name := range required {
		r := mergeResults(name, byName[name])
		merged = append(merged, r)
		ok = ok && r.Verdict == Pass
	}
	return Clearance{ok: ok}, merged
}

func mergeResults(name string, results []Result) Result {
	if len(results) == 0 {
		return Result{Name: name, Message: "no result under this name"}
	}
	sorted := make([]Result, len(results))
	for i, r := range results {
		sorted[i] = r.sane()
	}
	slices.SortStableFunc(sorted, func(a, b Result) int { return cmp.Compare(b.Verdict.badness(), a.Verdict.badness()) })

	sum := Result{Name: name, Verdict: sorted[0].Verdict}
	var messages []string
	said := map[string]bool{"": true}
	for _, r := range sorted {
		sum.Operations += r.Operations
		sum.Kinds = addCounts(sum.Kinds, r.Kinds)
		sum.Faults = addCounts(sum.Faults, r.Faults)
		sum.Examples = append(sum.Examples, r.Examples[:min(len(r.Examples), maxExamples-len(sum.Examples))]...)
		if !said[r.Message] {
			said[r.Message] = true
			messages = append(messages, r.Message)
		}
	}
	if more := len(messages) - maxMessages; more > 0 {
		messages = append(messages[:maxMessages], fmt.Sprintf("and %d more", more))
	}
	sum.Message = strings.Join(messages, "; ")
	if sum.Verdict == Pass {
		// Sound counts can still overflow when they are added up.
		sum = sum.sane()
	}
	return sum
}

func addCounts(sum, more map[string]int) map[string]int {
	if sum == nil && len(more) > 0 {
		return maps.Clone(more)
	}
	for name, n := range more {
		sum[name] += n
	}
	return sum
}
