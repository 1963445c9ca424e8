package report

import "strconv"

// An arm is told from others by its marker's shape as well as by its colour;
// arms beyond the eighth pair the same colours with other shapes.
const armStyles = 8

func armColour(arm int) string { return "a" + strconv.Itoa(arm%armStyles) }
func armShape(arm int) int     { return (arm + arm/armStyles) % armStyles }

// marker is how the points of one series look.
type marker struct {
	shape  int
	colour string // a class of the style sheet that sets the colour
}

func armMarker(arm int) marker { return marker{armShape(arm), armColour(arm)} }

// The shapes. A circle is a point drawn with a round nib, which costs a third
// of an arc's bytes on a page with many thousands of them.
const (
	shapeCircle = iota
	shapeSquare
	shapeTriangle
	shapeDiamond
	shapeDrop
	shapeCross
	shapePlus
	shapeBar
)

// manyMarks is the number of marks from which they are set to whole pixels.
const manyMarks = 60

// markers draws all marks of one arm as a single path. r is half a mark's size.
func (d *drawing) markers(arm int, r float64, points [][2]float64) {
	d.marks(armMarker(arm), r, points)
}

func (d *drawing) marks(m marker, r float64, points [][2]float64) {
	if len(points) == 0 {
		return
	}
	p := pen{coarse: len(points) > manyMarks}
	for _, at := range points {
		p.mark(m.shape, at[0], at[1], r)
	}
	switch m.shape {
	case shapeCircle:
		d.b.WriteString(`<path class="dot ` + m.colour + `" stroke-width="` + px(2*r) + `" d="` + p.String() + "\"/>\n")
	case shapeCross, shapePlus, shapeBar:
		d.path("mx "+m.colour, p.String())
	default:
		d.path("mk "+m.colour, p.String())
	}
}

func (p *pen) mark(shape int, x, y, r float64) {
	to := func(command string, steps ...float64) {
		p.WriteString(command)
		for i, s := range steps {
			if i > 0 && s >= 0 {
				p.WriteByte(' ')
			}
			p.WriteString(px(s))
		}
	}
	switch shape {
	case shapeCircle:
		p.move(x, y)
		p.WriteString("h.01")
	case shapeSquare:
		p.move(x-r, y-r)
		to("h", 2*r)
		to("v", 2*r)
		to("h", -2*r)
		p.WriteByte('z')
	case shapeTriangle:
		p.move(x, y-1.2*r)
		to("l", 1.2*r, 2.1*r)
		to("h", -2.4*r)
		p.WriteByte('z')
	case shapeDiamond:
		p.move(x, y-1.3*r)
		to("l", 1.3*r, 1.3*r, -1.3*r, 1.3*r, -1.3*r, -1.3*r)
		p.WriteByte('z')
	case shapeDrop:
		p.move(x, y+1.2*r)
		to("l", 1.2*r, -2.1*r)
		to("h", -2.4*r)
		p.WriteByte('z')
	case shapeCross:
		p.move(x-r, y-r)
		to("l", 2*r, 2*r)
		to("m", 0, -2*r)
		to("l", -2*r, 2*r)
	case shapePlus:
		p.move(x-1.2*r, y)
		to("h", 2.4*r)
		to("m", -1.2*r, -1.2*r)
		to("v", 2.4*r)
	default:
		p.move(x, y-1.3*r)
		to("v", 2.6*r)
	}
}
