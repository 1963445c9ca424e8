package report

import "strings"

const legendRow = 18.0

// legend names the series of a chart, in as many rows as they need.
type legend struct {
	items  []legendItem
	height float64
}

type legendItem struct {
	mark        marker
	x, y        float64 // of the marker's middle
	name, whole string
}

func layoutLegend(names []string, marks []marker, width float64) legend {
	var l legend
	x, y := 5.0, 9.0
	for i, whole := range names {
		name := fitText(whole, width-22)
		w := 12 + textWidth(name) + 16
		if x > 5 && x+w-16 > width {
			x, y = 5, y+legendRow
		}
		l.items = append(l.items, legendItem{marks[i], x, y, name, whole})
		x += w
	}
	if len(names) > 0 {
		l.height = y + 9
	}
	return l
}

func (d *drawing) legend(l legend) {
	for _, it := range l.items {
		d.marks(it.mark, 4, [][2]float64{{it.x, it.y}})
		d.titled("", it.x+9, it.y+4, it.name, it.whole)
	}
}

// textWidth is about how wide a 12 px label is in a system font; no font can be
// asked from here, so it leans to the wide side.
func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iIjl.,:;|!'()[]{}-/ ftr1", r):
			w += 5
		case strings.ContainsRune("mwMW@%—", r):
			w += 11.5
		case r >= 'A' && r <= 'Z':
			w += 8.6
		case r >= 0x1100:
			w += 12.5
		default:
			w += 7
		}
	}
	return w
}

// fitText cuts a label to the width and marks the cut.
func fitText(s string, width float64) string {
	if textWidth(s) <= width {
		return s
	}
	runes := []rune(s)
	for n := min(len(runes), int(width/5)); n > 0; n-- {
		if cut := string(runes[:n]) + "…"; textWidth(cut) <= width {
			return cut
		}
	}
	return "…"
}
