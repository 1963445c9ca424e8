package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/protocol"
)

// primary names the confirmatory result. With several cells the weakest speaks
// for all; better and meets_floor must hold in every one, worse in any.
func (d *decision) primary() {
	q, pr := d.p.Primary, d.r.Primary
	if pr == nil {
		return
	}
	m := d.p.Metric(q.Metric)
	d.values["primary.alpha"] = q.Alpha
	missing := ""
	lacks := func(format string, args ...any) {
		if missing == "" {
			missing = fmt.Sprintf(format, args...)
		}
	}
	better, worse, floor, noFloor := true, false, true, ""
	var weak *analysis.Comparison
	var weakCell analysis.PrimaryCell
	for _, cell := range d.p.PrimaryCells() {
		i := slices.IndexFunc(pr.Cells, func(pc analysis.PrimaryCell) bool { return pc.Cell == cell.Name })
		c := d.r.Cell(cell.Name).Metric(q.Metric).Against(q.Treatment)
		if i < 0 || c == nil {
			lacks("cell %s: no comparison", cell.Name)
			continue
		}
		switch pc := pr.Cells[i]; {
		case pc.Missing != "":
			lacks("cell %s: %s", cell.Name, pc.Missing)
		case pc.N < cell.Rounds || math.IsNaN(float64(pc.AdjustedP)) || math.IsNaN(float64(pc.Diff)):
			lacks("cell %s: the comparison is not whole", cell.Name)
		default:
			better, worse = better && pc.Better, worse || pc.Worse
			meets, ok := meetsFloor(q.Floor, m, c)
			if floor = floor && meets && pc.Better; !ok {
				noFloor = fmt.Sprintf("cell %s: the effect has no value on the floor's scale", cell.Name)
			}
			if pc.Cell == pr.Weakest {
				weak, weakCell = c, pc
			}
		}
	}
	if weak == nil {
		lacks("no cell speaks for the family")
	}
	if missing != "" {
		for name := range d.p.OutcomeScope() {
			if strings.HasPrefix(name, "primary.") && name != "primary.alpha" {
				d.absent[name] = missing
			}
		}
		return
	}
	set := func(name string, v any) { d.values["primary."+name] = v }
	set("p", float64(weakCell.AdjustedP))
	set("d", towardsBetter(m, float64(weak.D)))
	set("dz", towardsBetter(m, float64(weak.Dz)))
	set("diff", float64(weakCell.Diff))
	set("diff_low", float64(weakCell.CI.Low))
	set("diff_high", float64(weakCell.CI.High))
	set("ratio", float64(weak.Ratio))
	set("change", float64(weak.Change))
	set("n", float64(weakCell.N))
	set("significant", float64(weakCell.AdjustedP) < q.Alpha)
	set("better", better)
	set("worse", worse)
	if noFloor != "" {
		d.absent["primary.meets_floor"] = noFloor
		return
	}
	set("meets_floor", floor)
}

// meetsFloor says whether the effect, in the direction that is better, reaches
// the smallest one that matters; ok is false where it has no value. Without a
// floor any effect does.
func meetsFloor(f protocol.Floor, m *protocol.Metric, c *analysis.Comparison) (meets, ok bool) {
	reaches := func(effect analysis.Number, floor float64) (bool, bool) {
		return towardsBetter(m, float64(effect)) >= floor, !math.IsNaN(float64(effect))
	}
	switch {
	case f.D > 0:
		return reaches(c.D, f.D)
	case f.Dz > 0:
		return reaches(c.Dz, f.Dz)
	case f.Change > 0:
		return reaches(c.Change, f.Change)
	}
	return true, true
}
