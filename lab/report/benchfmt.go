package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Benchfmt writes one line of the Go benchmark format per measured trial that
// ended well, rounds in the order in which they ran, for benchstat -col /arm.
// Within a round the reference comes first, because benchstat takes the arm that
// it meets first for the base. Its p is of an unpaired rank test over these
// lines and may differ from the verdict's.
//
// There are no lines before every check has passed, because whoever reads the
// file compares.
//
// # Names
//
// A name is BenchmarkName/factor=level/arm=arm. What the format would read as
// something else is escaped, and two names stay two:
//
//   - benchstat takes a dash and digits at the end of a name for GOMAXPROCS, so
//     every level and arm that ends so gets a "~" behind it: v1-2 is v1-2~.
//     One that ends in dash, digits and "~" gets another.
//   - A blank, a slash, an equals sign, what cannot be seen and a "%" that would
//     read as an escape stand as % and two hexadecimal digits per byte.
//
// # Units
//
// A metric is named by its own name with dashes, with the unit behind it in
// which benchstat knows how to scale: -ns for times, -B for sizes. The first
// wall clock is ns/op, as go test has it.
func Benchfmt(w io.Writer, s *Source) error {
	b := &benchPage{s: s, read: sampler{s: s}, cells: map[string]protocol.Cell{}}
	for _, c := range s.Run.Protocol.Cells() {
		b.cells[c.Name] = c
	}
	b.units = benchUnits(s.Run.Protocol)
	b.head()
	if s.Results.Clear {
		b.lines()
	} else {
		b.key("assay-withheld", withheldText(s))
	}
	_, err := io.WriteString(w, b.out.String())
	return err
}

type benchPage struct {
	s     *Source
	out   strings.Builder
	read  sampler
	cells map[string]protocol.Cell
	units []benchUnit // per metric
}

// key writes a line that benchstat takes for a property of all lines after it.
func (b *benchPage) key(name, value string) {
	if value = oneLine(value); value != "" {
		fmt.Fprintf(&b.out, "%s: %s\n", name, clipped(value, 300))
	}
}

func (b *benchPage) head() {
	// The lock's digest is left out: benchstat puts lines with different
	// properties in different tables, and a second freeze of the same protocol
	// is to be compared with the first.
	b.key("assay-protocol", "sha256:"+b.s.Run.Lock.SHA256)
	if e := b.s.Env; e != nil {
		b.key("goos", e.OS)
		b.key("goarch", e.Arch)
		b.key("cpu", e.CPUModel)
	}
	b.key("pkg", b.s.Results.Name)
	for i, u := range b.units {
		m := &b.s.Run.Protocol.Metrics[i]
		fmt.Fprintf(&b.out, "Unit %s better=%s", u.name, m.Better)
		if m.Count {
			b.out.WriteString(" assume=exact")
		}
		b.out.WriteByte('\n')
	}
	b.out.WriteByte('\n')
}

func (b *benchPage) lines() {
	left, gaps := 0, 0
	for _, o := range b.s.measured() {
		if o.Status != trial.StatusOK {
			left++
			continue
		}
		var figures strings.Builder
		for i, u := range b.units {
			v, missing := b.read.value(&b.s.Run.Protocol.Metrics[i], o)
			if v *= u.factor; missing != "" || math.IsNaN(v) || math.IsInf(v, 0) {
				gaps++
				continue
			}
			fmt.Fprintf(&figures, " %s %s", plain(v), u.name)
		}
		if figures.Len() > 0 {
			fmt.Fprintf(&b.out, "%s 1%s\n", b.name(o), figures.String())
		}
	}
	// At the end these are properties of no line, so they split no table.
	if left > 0 {
		b.key("assay-left-out", counted(left, "trial")+" that did not end well")
	}
	if gaps > 0 {
		b.key("assay-missing", counted(gaps, "value"))
	}
}

// plain is every digit of v, without an exponent where people can still read
// it so.
func plain(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func (b *benchPage) name(o *trial.Observation) string {
	name := []rune(benchWord(b.s.Results.Name))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	s := "Benchmark" + string(name)
	cell := b.cells[o.Cell]
	for i, f := range cell.Factors() {
		s += "/" + benchWord(f) + "=" + benchWord(cell.Levels[i])
	}
	return s + "/arm=" + benchWord(o.Arm)
}
