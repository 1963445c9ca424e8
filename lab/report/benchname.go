package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/protocol"
)

var (
	likeProcs  = regexp.MustCompile(`-[0-9]+~*$`)
	likeEscape = regexp.MustCompile(`^%[0-9A-F]{2}`)
)

// benchWord escapes a part of a name as Benchfmt describes.
func benchWord(s string) string {
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r == '/', r == '=', r == ' ', !unicode.IsGraphic(r), unicode.IsSpace(r),
			r == '%' && likeEscape.MatchString(s[i:]):
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
	}
	if likeProcs.MatchString(b.String()) {
		b.WriteByte('~')
	}
	return b.String()
}

// benchUnit is how a metric is called and the factor that takes it there.
type benchUnit struct {
	name   string
	factor float64
}

func benchUnits(p *protocol.Protocol) []benchUnit {
	var units []benchUnit
	taken := map[string]bool{}
	for i := range p.Metrics {
		u := benchUnitOf(&p.Metrics[i])
		if p.Metrics[i].Source == protocol.SourceWall && !taken["ns/op"] {
			u.name = "ns/op"
		}
		for taken[u.name] {
			u.name = "also-" + u.name
		}
		taken[u.name] = true
		units = append(units, u)
	}
	return units
}

var notInUnit = regexp.MustCompile(`[^A-Za-z0-9_.%/*µ°-]+`)

// benchUnitOf converts what benchstat can scale. Inside a name it would take a
// word that is ns or B for a unit, and divide once more.
func benchUnitOf(m *protocol.Metric) benchUnit {
	words := strings.Split(notInUnit.ReplaceAllString(m.Name, "_"), "_")
	for i, w := range words {
		if w == "ns" || w == "B" || w == "MB" || w == "bytes" {
			words[i] = w + "_"
		}
	}
	name := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "-")
	base, per, rate := strings.Cut(m.Unit, "/")
	for at, to := range []string{"ns", "B"} {
		if f, ok := ladderFactor(at, base); ok {
			unit := name + "-" + to
			if rate {
				unit += "/" + notInUnit.ReplaceAllString(per, "-")
			}
			return benchUnit{unit, f}
		}
	}
	unit := strings.Trim(notInUnit.ReplaceAllString(m.Unit, "-"), "-")
	// A unit that repeats the name says nothing more.
	if unit == "" || unit == name || m.Count {
		return benchUnit{name, 1}
	}
	return benchUnit{name + "-" + unit, 1}
}

// ladderFactor takes a unit to the smallest of its ladder.
func ladderFactor(at int, unit string) (float64, bool) {
	if unit == "us" {
		unit = "µs"
	}
	for _, s := range ladders[at] {
		if s.name == unit {
			return s.size, true
		}
	}
	return 0, false
}
