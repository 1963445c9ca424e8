package report

import (
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/check"
)

// shownCheck is what is printed of a check.
type shownCheck struct {
	*check.Result
	more int // further results under its name
}

// shownChecks has each name once. An arm may report a failure of something that
// the protocol does not declare, and may do so in every trial: those are not
// merged, and would bury the rest.
func shownChecks(checks []check.Result) []shownCheck {
	var all []shownCheck
	for i := range checks {
		c := &checks[i]
		at := slices.IndexFunc(all, func(s shownCheck) bool { return s.Name == c.Name })
		switch {
		case at < 0:
			all = append(all, shownCheck{Result: c})
			continue
		case all[at].Verdict != c.Verdict && check.Merge(all[at].Verdict, c.Verdict) == c.Verdict:
			all[at].Result = c
		}
		all[at].more++
	}
	return all
}

// worstFirst puts them in the order in which they matter to a reader.
func worstFirst(checks []shownCheck) []shownCheck {
	slices.SortStableFunc(checks, func(a, b shownCheck) int {
		switch {
		case a.Verdict == b.Verdict:
			return 0
		case check.Merge(a.Verdict, b.Verdict) == a.Verdict:
			return -1
		}
		return 1
	})
	return checks
}

// checkWord is the verdict; all but a pass in capitals.
func checkWord(v check.Verdict) string {
	if v == check.Pass {
		return v.String()
	}
	return strings.ToUpper(v.String())
}

func (c *shownCheck) text() string {
	s := oneLine(c.Name)
	if c.Operations > 0 {
		s += ", " + counted(c.Operations, "operation")
	}
	if c.more > 0 {
		s += ", and " + counted(c.more, "more result")
	}
	if c.Message != "" {
		s += ": " + c.Message
	}
	return s
}
