package report

import (
	"encoding/csv"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// CSV writes one row per trial and metric: the trials in the order in which
// they ran, and after them those that were planned and did not run. It is the
// ledger as a table and holds no comparison, so it is whole whatever the checks
// said.
func CSV(w io.Writer, s *Source) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	p := s.Run.Protocol
	head := []string{"cell"}
	for _, f := range p.Factors {
		head = append(head, "factor_"+f.Name)
	}
	head = append(head, "class", "round", "warmup", "slot", "arm", "status", "exit", "signal", "start", "metric", "unit", "value", "missing")
	if err := out.Write(head); err != nil {
		return err
	}
	rows := &csvRows{s: s, out: out, numeric: numericFactors(p), read: sampler{s: s}, cells: map[string]protocol.Cell{}}
	for _, c := range p.Cells() {
		rows.cells[c.Name] = c
	}
	ran := map[trial.Slot]bool{}
	for _, o := range s.trials() {
		ran[slotOf(o)] = true
		if err := rows.trial(o); err != nil {
			return err
		}
	}
	for _, r := range trial.Schedule(p) {
		for _, slot := range r.Slots {
			slot.Seed = 0
			if !ran[slot] {
				if err := rows.notRun(slot); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func slotOf(o *trial.Observation) trial.Slot {
	return trial.Slot{Cell: o.Cell, Round: o.Round, Warmup: o.Warmup, Slot: o.Slot, Arm: o.Arm}
}

type csvRows struct {
	s       *Source
	out     *csv.Writer
	numeric []bool // per factor
	read    sampler
	cells   map[string]protocol.Cell
}

func (c *csvRows) trial(o *trial.Observation) error {
	ran := []string{csvText(string(o.Status)), strconv.Itoa(o.Exit), csvText(o.Signal), o.Start.UTC().Format(time.RFC3339Nano)}
	for i := range c.s.Run.Protocol.Metrics {
		m := &c.s.Run.Protocol.Metrics[i]
		v, missing := c.read.value(m, o)
		if missing == "" && (math.IsNaN(v) || math.IsInf(v, 0)) {
			missing = "the value is not a finite number"
		}
		value := ""
		if missing == "" {
			value = plain(v)
		}
		if err := c.row(slotOf(o), ran, m, value, missing); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvRows) notRun(slot trial.Slot) error {
	for i := range c.s.Run.Protocol.Metrics {
		m := &c.s.Run.Protocol.Metrics[i]
		if err := c.row(slot, []string{"not-run", "", "", ""}, m, "", "the trial did not run"); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvRows) row(slot trial.Slot, ran []string, m *protocol.Metric, value, missing string) error {
	cell := c.cells[slot.Cell]
	row := []string{csvText(slot.Cell)}
	for i, f := range c.s.Run.Protocol.Factors {
		level := cell.Level(f.Name)
		if !c.numeric[i] {
			level = csvText(level)
		}
		row = append(row, level)
	}
	row = append(row, cell.Class, strconv.Itoa(slot.Round), strconv.FormatBool(slot.Warmup), strconv.Itoa(slot.Slot), csvText(slot.Arm))
	row = append(row, ran...)
	return c.out.Write(append(row, csvText(m.Name), csvText(m.Unit), value, csvText(missing)))
}

var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numericFactors says of each factor whether all its levels are numbers. A
// column of numbers stays one, the sign of a negative level included.
func numericFactors(p *protocol.Protocol) []bool {
	numeric := make([]bool, len(p.Factors))
	for i, f := range p.Factors {
		numeric[i] = true
		for _, l := range f.Levels {
			numeric[i] = numeric[i] && plainNumber.MatchString(string(l))
		}
	}
	return numeric
}

// csvText is a text cell that a spreadsheet will not take for a formula, also
// where it skips blanks in front.
func csvText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if t := strings.TrimSpace(s); t != "" && strings.ContainsRune("=+-@", rune(t[0])) {
		return "'" + s
	}
	return s
}
