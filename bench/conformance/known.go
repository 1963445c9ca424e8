package main

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// knownFailures has a test and the reason why it fails on each line.
//
//go:embed known-failures.txt
var knownFailures string

// known is the reasons by test.
type known map[string]string

func readKnown() (known, error) {
	k := known{}
	for i, line := range strings.Split(knownFailures, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("known-failures.txt:%d: a test, a tab and a reason", i+1)
		}
		if k[name] != "" {
			return nil, fmt.Errorf("known-failures.txt:%d: %s is there twice", i+1, name)
		}
		k[name] = reason
	}
	return k, nil
}

// compare says what the list has too little or too much.
func (k known) compare(results []result) (errs []error) {
	for _, r := range results {
		reason, listed := k[r.name]
		switch {
		case r.outcome == "fail" && !listed:
			errs = append(errs, fmt.Errorf("fails and is not in known-failures.txt: %s", r.name))
		case r.outcome != "fail" && listed:
			errs = append(errs, fmt.Errorf("is in known-failures.txt (%s) and did not fail but %s: %s", reason, r.outcome, r.name))
		}
	}
	return errs
}

// summary counts what the tests of each folder gave.
type summary struct {
	results []result
	rows    map[string]*count
	order   []string
	total   count
}

type count struct {
	pass, fail, skip int
	seconds          float64
}

func (c *count) add(r result) {
	switch r.outcome {
	case "pass":
		c.pass++
	case "fail":
		c.fail++
	default:
		c.skip++
	}
	c.seconds += r.seconds
}

func (s *summary) add(f folder, results []result) {
	if s.rows == nil {
		s.rows = map[string]*count{}
	}
	c := &count{}
	s.rows[f.name] = c
	s.order = append(s.order, f.name)
	for _, r := range results {
		c.add(r)
		if f.asked() {
			s.total.add(r)
		}
	}
	s.results = append(s.results, results...)
}

// share is how many of the tests that run pass. What the runner skips it would
// skip on a replica set of that server version too, or nowhere runs.
func (c *count) share() float64 {
	if c.pass+c.fail == 0 {
		return 0
	}
	return 100 * float64(c.pass) / float64(c.pass+c.fail)
}

func (s *summary) print(w io.Writer) {
	fmt.Fprintf(w, "%-34s %6s %6s %6s %8s %6s\n", "folder", "pass", "fail", "skip", "share", "s")
	row := func(name string, c *count) {
		fmt.Fprintf(w, "%-34s %6d %6d %6d %7.1f%% %6.0f\n", name, c.pass, c.fail, c.skip, c.share(), c.seconds)
	}
	for _, name := range s.order {
		row(name, s.rows[name])
	}
	row("all that the bar counts", &s.total)
	fmt.Fprintf(w, "figure: conformance.share %.2f %%\n", s.total.share())
}

// unlisted are names of the list that no run has met, for the test of the list.
func (k known) unlisted(results []result) []string {
	left := maps.Clone(k)
	for _, r := range results {
		delete(left, r.name)
	}
	return slices.Sorted(maps.Keys(left))
}
