package flow

import (
	"fmt"
	"time"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Progress is how far a run is.
type Progress struct {
	Cell        string
	Round, Of   int // within the cell, 1-based, warm-up included
	Warmup      bool
	Done, Total int           // rounds of the whole run
	Left        time.Duration // a guess; 0 before the first round has ended
}

// Short is a duration that a person reads at a glance.
func Short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%ds", int(d.Seconds()+0.999))
	}
}

// forecast guesses how long the rest of a run takes from the rounds so far.
type forecast struct {
	cells []protocol.Cell
	pace  map[string]*pace // by cell; "" is the whole run
}

// pace is how long rounds take.
type pace struct {
	total time.Duration
	n     int
}

func newForecast(p *protocol.Protocol) forecast {
	return forecast{cells: p.Cells(), pace: map[string]*pace{}}
}

// took takes in a round.
func (f *forecast) took(cell string, d time.Duration) {
	for _, name := range []string{cell, ""} {
		if f.pace[name] == nil {
			f.pace[name] = &pace{}
		}
		f.pace[name].total += d
		f.pace[name].n++
	}
}

// left guesses the time that all takes from a cell's round on: a cell's own pace
// where it has one, the mean of all rounds so far elsewhere. Cells run one after
// the other, so that what is left is counted once per cell and not once per
// round.
func (f *forecast) left(cell string, round int) time.Duration {
	var sum time.Duration
	add := func(cell string, rounds int) {
		p := f.pace[cell]
		if p == nil {
			p = f.pace[""]
		}
		if p != nil {
			sum += time.Duration(rounds) * (p.total / time.Duration(p.n))
		}
	}
	after := false
	for _, c := range f.cells {
		switch {
		case after:
			add(c.Name, c.Warmup+c.Rounds)
		case c.Name == cell:
			add(c.Name, c.Warmup+c.Rounds-round)
			after = true
		}
	}
	return sum
}

// Watch tells how far a run is from its records, to a process that does not
// carry it out. It sees no figure.
type Watch struct {
	Failed int // trials that did not end well, warm-up included

	forecast forecast
	marked   map[roundKey]bool
	total    int
	cell     int // place of the first round that is not marked, among the cells
	round    int // and within its cell

	open  roundKey  // the round of the last trial
	since time.Time // when its first trial began; zero where that says nothing
}

// NewWatch begins ahead of the first record.
func NewWatch(p *protocol.Protocol) *Watch {
	w := &Watch{forecast: newForecast(p), marked: map[roundKey]bool{}}
	for _, c := range w.forecast.cells {
		w.total += c.Warmup + c.Rounds
	}
	return w
}

// Add takes in the next record.
func (w *Watch) Add(rec ledger.Record) {
	switch {
	case rec.Resume != nil:
		w.since = time.Time{} // nobody measured in between
	case rec.Trial != nil:
		if rec.Trial.Status != trial.StatusOK {
			w.Failed++
		}
		w.begun(roundKey{rec.Trial.Cell, rec.Trial.Round}, rec.Trial.Start)
	case rec.Round != nil:
		w.marked[roundKey{rec.Round.Cell, rec.Round.Round}] = true
		w.advance()
	}
}

// begun times rounds from start to start, by a wall clock, which is all that the
// records have: checks and set-ups between trials count, and the guess is for
// a person to read. A clock that was set back says nothing.
func (w *Watch) begun(round roundKey, at time.Time) {
	if round == w.open {
		return
	}
	if d := at.Sub(w.since); !w.since.IsZero() && d > 0 {
		w.forecast.took(w.open.cell, d)
	}
	w.open, w.since = round, at
}

func (w *Watch) advance() {
	for ; w.cell < len(w.forecast.cells); w.cell, w.round = w.cell+1, 0 {
		c := &w.forecast.cells[w.cell]
		for ; w.round < c.Warmup+c.Rounds; w.round++ {
			if !w.marked[roundKey{c.Name, w.round}] {
				return
			}
		}
	}
}

// Progress is where the run is now: in the first round that is not complete.
// Once all are, it has no cell.
func (w *Watch) Progress() Progress {
	pr := Progress{Total: w.total, Done: w.total}
	if w.cell == len(w.forecast.cells) {
		return pr
	}
	for _, c := range w.forecast.cells[w.cell:] {
		pr.Done -= c.Warmup + c.Rounds
	}
	pr.Done += w.round
	c := &w.forecast.cells[w.cell]
	pr.Cell, pr.Round, pr.Of, pr.Warmup = c.Name, w.round+1, c.Warmup+c.Rounds, w.round < c.Warmup
	pr.Left = w.forecast.left(c.Name, w.round)
	return pr
}
