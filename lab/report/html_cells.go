package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// pageCells is everything about single cells.
type pageCells struct {
	About string
	Cells []pageCell
	More  string
}

type pageCell struct {
	Name, Title string
	Whole       string // the cell's name in results, where the page has another
	Stress      bool
	Open        bool
	Rows        []pageRow
	Pooled      bool // some row has pooled samples
	Metrics     []pageMetric
	Samples     []pageSamples
	Quantiles   []string // the columns of Samples
}

// pageRow is one arm on one metric.
type pageRow struct {
	Metric, Arm         string
	First               bool // the row that names the metric
	Span                int
	N                   int
	Mean, Median, Range string
	Drift, DriftP       string
	Pooled              string
	Change, ChangeCI    string
	P, Effect           string
	Missing             []string
}

func newPageCells(s *Source, names *cellNames, room *pageRoom) *pageCells {
	v := &pageCells{About: "every metric, drawn and in figures"}
	if n := len(s.Results.Cells); n > 1 {
		v.About = counted(n, "cell") + ", each with every metric, drawn and in figures"
	}
	for i := range s.Results.Cells {
		if room.spent() {
			v.More = leftOut(len(s.Results.Cells)-i, "cell")
			break
		}
		v.Cells = append(v.Cells, newPageCell(s, names, &s.Results.Cells[i], room))
	}
	return v
}

func newPageCell(s *Source, names *cellNames, cell *analysis.Cell, room *pageRoom) pageCell {
	name := names.of(cell.Name)
	v := pageCell{Name: name, Title: name, Stress: cell.Class == protocol.ClassStress}
	if cell.Name == protocol.NoFactors {
		v.Title = "All rounds"
	} else if name != strings.ReplaceAll(cell.Name, ",", ", ") {
		v.Whole = cell.Name
	}
	v.Title += ", " + counted(cell.Rounds, "round")
	v.Open = len(s.Results.Cells) == 1 || s.Results.Primary != nil && s.Results.Primary.Weakest == cell.Name
	samples := newTails(s, cell)
	for _, m := range s.countsFirst() {
		cm := cell.Metric(m.Name)
		if cm == nil {
			continue
		}
		rows := newPageRows(s, cell, m, cm)
		for _, r := range rows {
			v.Pooled = v.Pooled || r.Pooled != ""
		}
		v.Rows = append(v.Rows, rows...)
		room.take(500 * len(rows))
		v.Metrics = append(v.Metrics, newPageMetric(s, m, cm, samples, room))
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		if strings.HasSuffix(name, trial.SeriesSuffix) {
			v.Metrics = append(v.Metrics, newPageTimeline(s, cell, name, room))
			continue
		}
		unread := pageMetric{Name: name, About: "samples that no metric reads"}
		unread.addTail(room, name, "", samples[name])
		v.Metrics = append(v.Metrics, unread)
	}
	v.Samples, v.Quantiles = newPageSamples(s, cell)
	room.take(700 * len(v.Samples))
	return v
}

func newPageRows(s *Source, cell *analysis.Cell, m *protocol.Metric, cm *analysis.CellMetric) []pageRow {
	figures := s.figuresOf(cell, m)
	var rows []pageRow
	for i := range cm.Arms {
		a := &cm.Arms[i]
		r := pageRow{
			Metric: m.Name, Arm: a.Arm, First: i == 0, Span: len(cm.Arms), N: a.N,
			Mean: meanSD(m, a), Median: withUnit(float64(a.Median), m.Unit), Range: span(float64(a.Min), float64(a.Max), m.Unit), Drift: none, Change: none, P: none,
		}
		if a.Drift != nil && a.Min != a.Max {
			r.Drift, r.DriftP = withUnit(float64(a.Drift.PerRound), m.Unit), pphrase(float64(a.Drift.P))
		}
		if a.Pooled != nil {
			r.Pooled = withUnit(float64(*a.Pooled), m.Unit)
		}
		for _, why := range slices.Sorted(maps.Keys(a.Missing)) {
			r.Missing = append(r.Missing, fmt.Sprintf("%d missing: %s", a.Missing[why], why))
		}
		r.Missing = firstOf(r.Missing, pageItems)
		if at := slices.IndexFunc(figures, func(f figure) bool { return f.arm.Name == a.Arm }); at >= 0 {
			f := &figures[at]
			r.Change, r.ChangeCI, r.P, r.Effect = f.change(), f.changeInterval(), f.pText(), f.effect()
			if r.Effect == none {
				r.Effect = ""
			}
			r.ChangeCI = strings.TrimSpace(strings.TrimPrefix(r.ChangeCI, none) + " " + f.towards())
		}
		rows = append(rows, r)
	}
	return rows
}
