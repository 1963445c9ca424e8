package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// pageFigure is a chart with its caption.
type pageFigure struct {
	Caption string
	Chart   template.HTML
	Wide    bool
}

// newPageForest draws one forest plot per metric: metrics differ in size and
// in which side is better, so they share no axis.
func newPageForest(s *Source, room *pageRoom) []pageFigure {
	var all []pageFigure
	for _, m := range s.countsFirst() {
		c := newForest(s, m, room, func(*figure) bool { return true })
		chart := c.draw()
		if chart == "" || room.full() {
			continue
		}
		room.take(len(chart))
		caption := m.Name + ", " + direction(m)
		if rest := len(s.Results.Cells) - len(c.groups); rest > 0 {
			caption += ". " + leftOut(rest, "cell")
		}
		all = append(all, pageFigure{Caption: caption, Chart: chart})
	}
	return all
}

// newForest gathers the figures of one metric that are asked for.
func newForest(s *Source, m *protocol.Metric, room *pageRoom, wanted func(*figure) bool) forestPlot {
	c := forestPlot{id: room.id(), lowerIsBetter: m.Better == "lower", title: "Change of " + m.Name + " against " + s.Run.Protocol.Reference()}
	rows := 0
	for i := range s.Results.Cells {
		if rows >= forestRows {
			break
		}
		cell := &s.Results.Cells[i]
		g := forestGroup{label: cell.Name}
		if cell.Name == protocol.NoFactors {
			g.label = ""
		} else if cell.Class == protocol.ClassStress {
			g.label += " (stress)"
		}
		for _, f := range s.figuresOf(cell, m) {
			if wanted(&f) {
				r := newForestRow(s, &f)
				g.rows, g.bold = append(g.rows, r), g.bold || f.primary != nil
				c.desc += strings.TrimPrefix(g.label+", ", ", ") + r.name + ": " + r.text + ". "
			}
		}
		if rows += len(g.rows); len(g.rows) > 0 {
			c.groups = append(c.groups, g)
		}
	}
	return c
}

// figuresOf are the cell's figures of one metric, in the order of the arms.
func (s *Source) figuresOf(cell *analysis.Cell, m *protocol.Metric) []figure {
	return slices.DeleteFunc(s.figures(cell), func(f figure) bool { return f.metric.Name != m.Name })
}

func newForestRow(s *Source, f *figure) forestRow {
	row := forestRow{
		arm: armPlace(s, f.arm.Name), name: f.arm.Name,
		change: float64(f.cmp.Change), lo: float64(nan), hi: float64(nan), text: f.change(),
	}
	lo, hi, ok := f.relative()
	switch {
	case !finite(row.change):
		row.text = "no relative change"
		if text := f.change(); text != none {
			row.text += "; difference " + text
		}
	case f.exact():
		row.text += ", exact"
	case ok:
		row.lo, row.hi = lo, hi
		row.text += " " + strings.TrimSuffix(percentInterval(lo, hi), " %")
	}
	return row
}

// pageCells is everything about single cells.
type pageCells struct {
	Cells  []pageCell
	Folded bool
	More   string
}

type pageCell struct {
	Name, Title string
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
	P, Effect, Towards  string
	Missing             []string
}

type pageMetric struct {
	Name, About string
	Figures     []pageFigure
	Note        string // why there is no chart
}

// foldBeyond is the number of cells from which each is folded up.
const foldBeyond = 6

func newPageCells(s *Source, room *pageRoom) *pageCells {
	v := &pageCells{Folded: len(s.Results.Cells) > foldBeyond}
	for i := range s.Results.Cells {
		if room.full() {
			v.More = leftOut(len(s.Results.Cells)-i, "cell")
			break
		}
		v.Cells = append(v.Cells, newPageCell(s, &s.Results.Cells[i], room))
	}
	return v
}

func newPageCell(s *Source, cell *analysis.Cell, room *pageRoom) pageCell {
	v := pageCell{Name: cell.Name, Title: cell.Name, Stress: cell.Class == protocol.ClassStress}
	if cell.Name == protocol.NoFactors {
		v.Title = "All rounds"
	}
	v.Title += ", " + counted(cell.Rounds, "round")
	if pr := s.Results.Primary; pr != nil {
		v.Open = pr.Weakest == cell.Name
	}
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
		room.take(400 * len(rows))
		v.Metrics = append(v.Metrics, newPageMetric(s, m, cm, samples, room))
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
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
			r.Change, r.ChangeCI, r.P, r.Effect, r.Towards = f.change(), f.changeInterval(), f.pText(), f.effect(), f.towards()
			if r.Effect == none {
				r.Effect = ""
			}
			r.ChangeCI = strings.TrimSpace(strings.TrimPrefix(r.ChangeCI, none) + " " + r.Towards)
		}
		rows = append(rows, r)
	}
	return rows
}

func newPageMetric(s *Source, m *protocol.Metric, cm *analysis.CellMetric, tails map[string][]tailSeries, room *pageRoom) pageMetric {
	v := pageMetric{Name: m.Name, About: direction(m)}
	if m.Unit != "" {
		v.About = m.Unit + ", " + v.About
	}
	series, medians := newSeries(s, cm)
	if v.Note = plainWords(series, m.Unit); v.Note == "" {
		if room.full() {
			v.Note = "No chart here, to keep the page small. The values of every round stand in the csv format of this report."
			return v
		}
		v.add(room, "Each round in the order of the run", longest(series) > 40, roundsPlot{
			id: room.id(), title: m.Name + " by round", desc: roundsDesc(series, m.Unit), unit: m.Unit, series: series, wide: longest(series) > 40,
		}.draw())
		v.add(room, "Distribution over rounds", false, ecdfPlot{
			id: room.id(), title: "Distribution of " + m.Name + " over rounds", desc: ecdfDesc(series, medians, m.Unit), unit: m.Unit, series: series,
		}.draw())
	}
	// Metrics often share their samples; the first of them shows the tail.
	if list := tails[m.Key]; m.Source == protocol.SourceSamples && len(list) > 0 {
		delete(tails, m.Key)
		v.addTail(room, m.Key, m.Unit, list)
	}
	return v
}

func (v *pageMetric) addTail(room *pageRoom, name, unit string, list []tailSeries) {
	if room.full() {
		v.Note = "No chart here, to keep the page small. The quantiles stand in the table of samples."
		return
	}
	v.add(room, "Tail of all samples of "+name, false, tailPlot{
		id: room.id(), title: "Quantiles of all samples of " + name, desc: tailDesc(list, unit), unit: unit, series: list,
	}.draw())
}

func (v *pageMetric) add(room *pageRoom, caption string, wide bool, chart template.HTML) {
	if chart != "" {
		v.Figures = append(v.Figures, pageFigure{caption, chart, wide})
		room.take(len(chart))
	}
}

func newSeries(s *Source, cm *analysis.CellMetric) (list []plotSeries, medians []float64) {
	for i := range cm.Arms {
		a := &cm.Arms[i]
		one := plotSeries{arm: armPlace(s, a.Arm), name: a.Arm}
		for _, x := range a.Values {
			one.values = append(one.values, float64(x))
		}
		list = append(list, one)
		medians = append(medians, float64(a.Median))
	}
	return list, medians
}

func armPlace(s *Source, name string) int {
	return max(0, slices.IndexFunc(s.Run.Protocol.Arms, func(a protocol.Arm) bool { return a.Name == name }))
}

func longest(list []plotSeries) int {
	n := 0
	for _, one := range list {
		n = max(n, len(one.values))
	}
	return n
}

// plainWords says in words what a chart would not say better: no value, a
// single round, or arms that never vary. It is empty where a chart is due.
func plainWords(list []plotSeries, unit string) string {
	_, _, any := rangeOf(seriesValues(list)...)
	switch {
	case !any:
		return "No arm has a value in any round."
	case longest(list) < 2:
		return "There is one round; its values stand in the table above."
	}
	s := ""
	for _, one := range list {
		lo, hi, ok := rangeOf(one.values)
		switch {
		case !ok:
			s += fmt.Sprintf("%s has no value. ", one.name)
		case lo != hi || slices.ContainsFunc(one.values, func(x float64) bool { return !finite(x) }):
			return ""
		default:
			s += fmt.Sprintf("%s is %s in every round. ", one.name, withUnit(lo, unit))
		}
	}
	return s
}

func seriesValues(list []plotSeries) [][]float64 {
	all := make([][]float64, len(list))
	for i, one := range list {
		all[i] = one.values
	}
	return all
}

// pageSamples is one arm's bulk samples.
type pageSamples struct {
	Name, Arm string
	Count     string
	Mean      string
	Values    []string
}

func newPageSamples(s *Source, cell *analysis.Cell) (rows []pageSamples, columns []string) {
	var qs []float64
	for _, set := range cell.Samples {
		for _, q := range set.Quantiles {
			if x := float64(q.Q); !slices.Contains(qs, x) {
				qs = append(qs, x)
			}
		}
	}
	slices.Sort(qs)
	for _, q := range qs {
		switch q {
		case 0:
			columns = append(columns, "least")
		case 1:
			columns = append(columns, "greatest")
		default:
			columns = append(columns, strconv.FormatFloat(100*q, 'g', 6, 64)+" %")
		}
	}
	for _, set := range cell.Samples {
		unit := sampleUnit(s, set.Name)
		row := pageSamples{Name: set.Name, Arm: set.Arm, Count: thousands(strconv.Itoa(set.Count)), Mean: withUnit(float64(set.Mean), unit)}
		for _, q := range qs {
			text := none
			for _, x := range set.Quantiles {
				if float64(x.Q) == q {
					text = withUnit(float64(x.V), unit)
				}
			}
			row.Values = append(row.Values, text)
		}
		rows = append(rows, row)
	}
	return rows, columns
}

// sampleUnit is the unit of the metric that reads the samples; samples that no
// metric reads have none that is known.
func sampleUnit(s *Source, name string) string {
	for i := range s.Run.Protocol.Metrics {
		if m := &s.Run.Protocol.Metrics[i]; m.Source == protocol.SourceSamples && m.Key == name {
			return m.Unit
		}
	}
	return ""
}

func newTails(s *Source, cell *analysis.Cell) map[string][]tailSeries {
	all := map[string][]tailSeries{}
	for _, set := range cell.Samples {
		one := tailSeries{arm: armPlace(s, set.Arm), name: set.Arm}
		for _, q := range set.Quantiles {
			if q.Q < 1 {
				one.q, one.v = append(one.q, float64(q.Q)), append(one.v, float64(q.V))
			}
		}
		all[set.Name] = append(all[set.Name], one)
	}
	return all
}
