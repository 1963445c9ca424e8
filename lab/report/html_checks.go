package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/assaylab/assay/lab/check"
)

type pageCheck struct {
	Name, Scope, Verdict string
	Sign                 string // a shape beside the word
	Operations           string
	Kinds, Faults        []string
	Message              string
	Whole                string // message, where that was cut
	Examples             []string
	Failed               bool
}

func newPageChecks(s *Source) []pageCheck {
	var all []pageCheck
	for _, c := range s.Results.Checks {
		v := pageCheck{
			Name: shorten(c.Name), Verdict: c.Verdict.String(), Sign: checkSign(c.Verdict), Operations: thousands(strconv.Itoa(c.Operations)),
			Kinds: countsOf(c.Kinds), Faults: countsOf(c.Faults), Examples: firstOf(c.Examples, pageItems), Failed: c.Verdict == check.Fail,
		}
		if v.Message = shortenTo(oneLine(c.Message), checkText); v.Message != oneLine(c.Message) {
			v.Whole = shorten(c.Message)
		}
		if decl := s.Run.Protocol.Check(c.Name); decl != nil {
			v.Scope = "each " + decl.Scope
			if decl.Scope == "run" {
				v.Scope = "the run"
			}
		}
		all = append(all, v)
	}
	return all
}

func checkSign(v check.Verdict) string {
	switch v {
	case check.Pass:
		return "✓"
	case check.Fail:
		return "✕"
	}
	return "?"
}

// countsOf lists counts by name, so that the page does not depend on the order
// of a map.
func countsOf(counts map[string]int) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, name+" "+thousands(strconv.Itoa(counts[name])))
	}
	return firstOf(all, pageItems)
}

// withheld says why the page has no figures; it is empty where it has them.
func withheld(s *Source) []string {
	r := s.Results
	if r.Clear && len(r.Cells) > 0 {
		return nil
	}
	var why []string
	for _, c := range r.Checks {
		if c.Verdict != check.Pass {
			line := fmt.Sprintf("%s: %s", c.Name, c.Verdict)
			if c.Message != "" {
				line += ", " + c.Message
			}
			why = append(why, line)
		}
	}
	switch {
	case len(why) > 0:
	case !r.Clear:
		why = []string{"the run is not clear, and no check says why"}
	default:
		why = []string{"the results hold no cell"}
	}
	return firstOf(why, pageItems)
}
