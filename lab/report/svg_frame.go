package report

import "math"

// frame is the part that charts of values over something share: legend, the
// unit above the plot, grid and labels.
type frame struct {
	width, height            float64
	left, top, right, bottom float64 // of the plot inside
	legend                   legend
	unit                     string // stands above the value axis
	below                    string // stands under the other axis
	x, y                     axis
}

const (
	labelRow   = 16.0
	plotHeight = 150.0
)

// fit lays the frame out around its axes. The value axis is known first, since
// its labels decide how much is left for the other.
func (f *frame) fit(y axis, names []string, marks []marker) {
	f.legend = layoutLegend(names, marks, f.width)
	f.top = f.legend.height + labelRow + 8
	f.bottom = f.top + plotHeight
	f.height = f.bottom + 2*labelRow + 6
	widest := 0.0
	for _, t := range y.ticks {
		widest = math.Max(widest, textWidth(t.label))
	}
	f.left = math.Min(widest+10, f.width/2)
	f.right = f.width - 8
	y.from, y.to = f.bottom, f.top
	f.y = y
}

// draw puts the grid and its labels down. A label that would run into the one
// before it is left out; its grid line stays.
func (f *frame) draw(d *drawing) {
	d.legend(f.legend)
	d.text("muted", 0, f.top-12, fitText(f.unit, f.width))
	for _, t := range f.y.ticks {
		y := f.y.at(t.value)
		d.line("grid", f.left, y, f.right, y)
		d.text("end", f.left-6, y+4, t.label)
	}
	free := math.Inf(-1)
	for _, t := range f.x.ticks {
		x := f.x.at(t.value)
		d.line("tick", x, f.bottom, x, f.bottom+4)
		w := textWidth(t.label)
		mid := math.Min(math.Max(x, w/2), f.width-w/2)
		if mid-w/2 < free {
			continue
		}
		free = mid + w/2 + 8
		d.text("mid", mid, f.bottom+labelRow, t.label)
	}
	d.line("axis", f.left, f.bottom, f.right, f.bottom)
	d.text("muted end", f.right, f.bottom+2*labelRow, f.below)
}
