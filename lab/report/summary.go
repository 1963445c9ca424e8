package report

import (
	"math"
	"time"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
)

// Summary is what lists and trends show of a run. It is small, so that it can be
// kept where the run itself cannot.
type Summary struct {
	Name, Question string // of the protocol
	Class          gate.Class
	Outcome, Why   string
	Begun          time.Time     // zero where the run has no first record
	Took           time.Duration // 0 where the run has no end
	Lock           string        // enough of its digest to tell locks apart
	Protocol       string        // hash of the frozen protocol
	Ended, Sealed  bool

	Metric               string // of the primary comparison, "" without one
	Treatment, Reference string
	LowerIsBetter        bool
	Unit                 string
	Effects              []Effect // one per cell of the primary comparison; none where figures are withheld
}

// Effect is the primary comparison in one cell.
type Effect struct {
	Cell           string // "" where nothing is varied
	Change         float64
	Low, High      float64 // its interval; NaN where there is none
	Relative       bool    // Change is a part of the reference's mean; else it is in the metric's unit
	Text, Interval string  // the same in figures
	Missing        string  // why there are none
}

const (
	summaryText    = 200 // characters of a name
	summaryEffects = 24
)

// Summarise makes the summary of a run.
func Summarise(s *Source) *Summary {
	r, v, p := s.Results, s.Verdict, s.Run.Protocol
	sum := &Summary{
		Name: shortenTo(r.Name, summaryText), Question: shortenTo(r.Question, headText),
		Class: v.Class, Outcome: shortenTo(v.Outcome, summaryText), Why: shortenTo(v.Why, headText),
		Lock: shortDigest(r.Lock), Protocol: s.Run.Lock.SHA256, Ended: s.Run.Ended(), Sealed: s.Run.Sealed,
	}
	if len(s.Run.Records) > 0 && s.Run.Begin() != nil {
		sum.Begun = s.Run.Begin().Time.UTC()
		if last := s.Run.Records[len(s.Run.Records)-1]; last.End != nil {
			sum.Took = last.End.Time.Sub(sum.Begun)
		}
	}
	pr := r.Primary
	if pr == nil || len(withheld(s)) > 0 {
		return sum
	}
	m := p.Metric(pr.Metric)
	if m == nil {
		return sum
	}
	sum.Metric, sum.Treatment, sum.Reference = m.Name, pr.Treatment, p.Reference()
	sum.LowerIsBetter, sum.Unit = m.Better == "lower", m.Unit
	for i, pc := range pr.Cells {
		f := s.figureOf(pc.Cell, pr.Metric, pr.Treatment)
		if f == nil || i == summaryEffects {
			break
		}
		sum.Effects = append(sum.Effects, newEffect(f, pc.Missing))
	}
	return sum
}

func newEffect(f *figure, missing string) Effect {
	e := Effect{
		Cell: f.cell.Name, Change: float64(f.cmp.Change), Low: math.NaN(), High: math.NaN(), Relative: true,
		Text: f.change(), Interval: f.changeInterval(), Missing: shorten(missing),
	}
	if e.Cell == protocol.NoFactors {
		e.Cell = ""
	}
	if f.exact() {
		e.Interval = "exact"
	}
	if lo, hi, ok := f.relative(); ok && !f.exact() {
		e.Low, e.High = lo, hi
	}
	if math.IsNaN(e.Change) {
		e.Relative, e.Change = false, float64(f.cmp.Diff)
		if ci := f.cmp.DiffCI; ci != nil && !f.exact() {
			e.Low, e.High = float64(ci.Low), float64(ci.High)
		}
	}
	return e
}

// Mark is a verdict's class as a word, a sign and a style, so that colour never
// carries it alone.
type Mark struct{ Word, Sign, Style string }

// MarkOf is the mark of a class; what is none of them is no verdict.
func MarkOf(c gate.Class) Mark {
	m := Mark{Word: classWord(c), Sign: "!", Style: "invalid"}
	switch c {
	case gate.Go:
		m.Sign, m.Style = "✓", "good"
	case gate.NoGo:
		m.Sign, m.Style = "✕", "bad"
	case gate.Inconclusive:
		m.Sign, m.Style = "?", "unsure"
	}
	return m
}

// Mark is the mark of the run's verdict.
func (s *Summary) Mark() Mark { return MarkOf(s.Class) }
