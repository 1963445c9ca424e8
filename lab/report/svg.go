package report

import (
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Widths of a chart in pixels. Text in a chart is as small as the page allows,
// 12 px, so a chart must never be shrunk: the narrow one fits a phone, the wide
// one scrolls there.
const (
	narrowChart = 344.0
	wideChart   = 716.0
)

// drawing collects the markup of one chart. Coordinates are pixels from the
// top left; colours and fonts are classes of the page's style sheet, so that a
// chart follows light, dark and print.
type drawing struct{ b strings.Builder }

// newDrawing opens a chart that assistive technology reads as one image with a
// name and a description.
func newDrawing(id string, w, h float64, title, desc string) *drawing {
	d := &drawing{}
	id = html.EscapeString(id)
	d.b.WriteString(`<svg class="chart" xmlns="http://www.w3.org/2000/svg" width="` + px(w) + `" height="` + px(h) +
		`" viewBox="0 0 ` + px(w) + " " + px(h) + `" role="img" aria-labelledby="` + id + `t ` + id + `d">` +
		`<title id="` + id + `t">` + html.EscapeString(title) + `</title><desc id="` + id + `d">` + html.EscapeString(desc) + "</desc>\n")
	return d
}

func (d *drawing) path(class, data string) {
	if data != "" {
		d.b.WriteString(`<path class="` + class + `" d="` + data + "\"/>\n")
	}
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	var p pen
	p.move(x1, y1)
	switch {
	case y1 == y2:
		p.across(x2)
	case x1 == x2:
		p.down(y2)
	default:
		p.line(x2, y2)
	}
	d.path(class, p.String())
}

// text writes a label; the class says where it is anchored: "" at its start,
// "mid" or "end".
func (d *drawing) text(class string, x, y float64, s string) {
	d.b.WriteString(`<text x="` + px(x) + `" y="` + px(y) + `"`)
	if class != "" {
		d.b.WriteString(` class="` + class + `"`)
	}
	d.b.WriteString(">" + html.EscapeString(s) + "</text>\n")
}

// titled writes a label whose whole text shows on hovering, for one that was
// cut to fit.
func (d *drawing) titled(class string, x, y float64, s, whole string) {
	if s == whole {
		d.text(class, x, y, s)
		return
	}
	d.b.WriteString("<g><title>" + html.EscapeString(whole) + "</title>")
	d.text(class, x, y, s)
	d.b.WriteString("</g>\n")
}

func (d *drawing) done() template.HTML {
	d.b.WriteString("</svg>")
	return template.HTML(d.b.String())
}

// px is a coordinate to a tenth of a pixel. What is no number would make the
// whole path invalid, so it lands in the corner, where it shows.
func px(x float64) string {
	x = math.Round(x*10) / 10
	if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// pen writes the data of a path.
type pen struct {
	strings.Builder
	coarse bool // whole pixels: a page of many thousand points shows no more, and is a third smaller
}

func (p *pen) pair(command string, x, y float64) {
	if p.coarse {
		x, y = math.Round(x), math.Round(y)
	}
	p.WriteString(command)
	p.WriteString(px(x))
	if y = math.Round(y*10) / 10; !math.Signbit(y) || y == 0 {
		p.WriteByte(' ')
	}
	p.WriteString(px(y))
}

func (p *pen) move(x, y float64) { p.pair("M", x, y) }
func (p *pen) line(x, y float64) { p.pair("L", x, y) }
func (p *pen) across(x float64)  { p.along("H", x) }
func (p *pen) down(y float64)    { p.along("V", y) }

func (p *pen) along(command string, x float64) {
	if p.coarse {
		x = math.Round(x)
	}
	p.WriteString(command + px(x))
}
