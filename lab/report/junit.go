package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

type junitRoot struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitCounts
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCounts
	Timestamp  string           `xml:"timestamp,attr,omitempty"`
	Properties *junitProperties `xml:"properties,omitempty"`
	Cases      []junitCase      `xml:"testcase"`
}

type junitProperties struct {
	List []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Skipped is always 0 and written all the same, because some readers want it.
type junitCounts struct {
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     string `xml:"time,attr"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitFault `xml:"failure,omitempty"`
	Error   *junitFault `xml:"error,omitempty"`
	Out     string      `xml:"system-out,omitempty"`
}

type junitFault struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// No time is measured for a verdict; the attribute is there because the format
// asks for it.
const junitTime = "0"

// JUnit writes a suite for the verdict, one for the checks and one per cell.
// Whatever is not a pass is a failure or an error, since most servers show a
// skipped test in green.
func JUnit(w io.Writer, s *Source) error {
	root := &junitRoot{Name: xmlText(s.Results.Name)}
	root.Suites = append(root.Suites, junitVerdict(s), junitChecks(s))
	root.Suites = append(root.Suites, junitCells(s)...)
	root.Time = junitTime
	for i := range root.Suites {
		suite := &root.Suites[i]
		suite.count()
		if len(s.Run.Records) > 0 && s.Run.Begin() != nil {
			suite.Timestamp = s.Run.Begin().Time.UTC().Format("2006-01-02T15:04:05")
		}
		root.Tests += suite.Tests
		root.Failures += suite.Failures
		root.Errors += suite.Errors
	}
	b, err := xml.MarshalIndent(root, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(append([]byte(xml.Header), b...), '\n'))
	return err
}

func (s *junitSuite) count() {
	s.Time = junitTime
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Time = junitTime
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
}

func junitVerdict(s *Source) junitSuite {
	v := s.Verdict
	c := junitCase{Class: junitClass(s, "verdict"), Name: "verdict"}
	fault := &junitFault{Type: string(v.Class), Message: xmlText(v.Outcome + ": " + v.Why), Text: xmlText(strings.Join(v.Notes, "\n"))}
	switch v.Class {
	case gate.Go:
		c.Out = xmlText(v.Outcome + ": " + v.Why)
	case gate.NoGo, gate.Inconclusive:
		c.Failure = fault
	default:
		c.Error = fault
	}
	return junitSuite{Name: "verdict", Cases: []junitCase{c}, Properties: &junitProperties{List: []junitProperty{
		{"question", xmlText(v.Question)},
		{"outcome", xmlText(v.Outcome)},
		{"class", xmlText(string(v.Class))},
		{"exit", fmt.Sprint(v.Exit)},
		{"lock", xmlText(s.Results.Lock)},
	}}}
}

func junitChecks(s *Source) junitSuite {
	suite := junitSuite{Name: "checks"}
	for _, r := range shownChecks(s.Results.Checks) {
		c := junitCase{Class: junitClass(s, "checks"), Name: xmlText(r.Name)}
		fault := &junitFault{Type: r.Verdict.String(), Message: xmlText(r.text()), Text: xmlText(strings.Join(r.Examples, "\n"))}
		switch r.Verdict {
		case check.Pass:
			c.Out = xmlText(r.text())
		case check.Fail:
			c.Failure = fault
		default:
			c.Error = fault
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite
}

// junitCells has a case for every rule of the protocol in every cell that it
// names. Where the verdict has no answer, because figures were withheld, the
// case is an error: a test that disappears would look like one that passed.
func junitCells(s *Source) []junitSuite {
	var suites []junitSuite
	p := s.Run.Protocol
	answers := s.answers()
	for _, cell := range p.Cells() {
		suite := junitSuite{Name: xmlText("cell " + cell.Name)}
		for _, list := range []struct {
			kind  string
			rules []protocol.Rule
		}{{"veto", p.Vetoes}, {"gate", p.Gates}} {
			for i := range list.rules {
				decl := &list.rules[i]
				if !decl.Cells.Match(cell) {
					continue
				}
				c := junitRule(s, answers[ruleKey{list.kind, decl.Name, cell.Name}], decl, cell)
				c.Class, c.Name = junitClass(s, cell.Name), xmlText(list.kind+" "+decl.Name)
				suite.Cases = append(suite.Cases, c)
			}
		}
		suites = append(suites, suite)
	}
	return suites
}

func junitRule(s *Source, answer *rule, decl *protocol.Rule, cell protocol.Cell) junitCase {
	message := fmt.Sprintf("%s of %s, %s against %s", decl.Require, decl.Metric, decl.Arm, s.Run.Protocol.Reference())
	state := gate.Missing
	if answer == nil {
		message += ": not evaluated"
		if !s.Results.Clear {
			message += ", since figures are withheld until every check has passed"
		}
	} else {
		state = answer.State
		message += ": " + state
		if len(answer.Values) > 0 {
			message += " (" + valuesText(answer.Values) + ")"
		}
		if answer.Missing != "" {
			message += ": " + answer.Missing
		}
	}
	if f := s.figureOf(cell.Name, decl.Metric, decl.Arm); f != nil {
		message += fmt.Sprintf("; the mean changes by %s, interval %s, p %s", f.change(), f.changeInterval(), f.pText())
	}
	fault := &junitFault{Type: state, Message: xmlText(message), Text: xmlText(decl.Because)}
	switch {
	case !decl.Judged(cell):
		return junitCase{Out: xmlText("reported, not judged: " + message)}
	case state == gate.Holds:
		return junitCase{Out: xmlText(message)}
	case state == gate.Broken:
		return junitCase{Failure: fault}
	}
	return junitCase{Error: fault}
}

// A dot in a class name makes a package of what stands before it.
func junitClass(s *Source, part string) string {
	return xmlText("assay." + s.Results.Name + "." + part)
}

// xmlText leaves out what XML 1.0 has no way to write. The encoder would put a
// replacement sign for each; a log full of colours is easier to read without.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return r
		case r < 0x20, r >= 0xD800 && r <= 0xDFFF, r == 0xFFFE, r == 0xFFFF, r > 0x10FFFF:
			return -1
		}
		return r
	}, s)
}
