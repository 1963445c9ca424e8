package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

// pageHost is the state of the machine over the run.
type pageHost struct {
	About    string
	Windows  string
	Charts   []pageFigure
	Breaches []pageBreach
	More     string
	Probes   []pageProbe
}

type pageBreach struct {
	Probe, Action, First string
	Times                string
}

type pageProbe struct {
	Probe, Unit           string
	Readings, Unavailable string
	Range                 string
	Limits                []string
	Detail                string
}

// drawnProbes are the probes that say how busy the machine was over time; the
// others are states, for which a range is enough.
var drawnProbes = []string{"foreign_cpu", "load_per_cpu", "psi_cpu", "psi_io", "psi_memory", "steal"}

func newPageHost(s *Source, room *pageRoom) *pageHost {
	h := s.Results.Host
	v := &pageHost{About: hostInShort(s)}
	for i, b := range h.Breaches {
		if i == pageRows {
			v.More = leftOut(len(h.Breaches)-i, "broken limit")
			break
		}
		v.Breaches = append(v.Breaches, pageBreach{b.Probe, b.Action, shorten(b.First), thousands(strconv.Itoa(b.Times))})
	}
	for _, p := range h.Probes {
		row := pageProbe{
			Probe: p.Probe, Unit: p.Unit, Readings: strconv.Itoa(p.Readings), Unavailable: strconv.Itoa(p.Unavailable), Detail: shorten(p.Detail),
			Range: num(float64(p.Min)) + " to " + num(float64(p.Max)),
		}
		switch {
		case p.Readings == 0:
			row.Range = "unavailable"
		case p.Unit == "":
			row.Range = yesNo(float64(p.Min), float64(p.Max))
		case p.Min == p.Max:
			row.Range = num(float64(p.Min))
		}
		for _, l := range s.Run.Protocol.Host {
			if l.Probe == p.Probe {
				row.Limits = append(row.Limits, limitWords(l)...)
			}
		}
		v.Probes = append(v.Probes, row)
	}
	t := newTimeline(s.Run)
	v.Windows = counted(t.windows, "window")
	for _, name := range drawnProbes {
		c := t.plot(room.id(), name, s.Run.Protocol.Host)
		if lo, hi, _ := rangeOf(c.values()); lo == hi && !c.breached() {
			continue // the table says all there is to say
		}
		if chart := c.draw(); chart != "" {
			v.Charts = append(v.Charts, pageFigure{Caption: name, Chart: chart})
		}
	}
	return v
}

func hostInShort(s *Source) string {
	h := s.Results.Host
	switch {
	case len(h.Breaches) > 0:
		var said []string
		for _, b := range h.Breaches {
			said = append(said, b.Probe+" ("+b.Action+")")
		}
		return "limits broken: " + strings.Join(firstOf(said, 4), ", ")
	case len(h.Probes) == 0:
		return "nothing is known of it"
	}
	return "no limit was broken"
}

func yesNo(lo, hi float64) string {
	word := func(x float64) string {
		if x == 0 {
			return "no"
		}
		return "yes"
	}
	if word(lo) == word(hi) {
		return word(lo)
	}
	return "no and yes"
}

func limitWords(l protocol.Limit) []string {
	var all []string
	if l.Max != nil {
		all = append(all, "at most "+num(*l.Max)+", else "+l.Action)
	}
	if l.Min != nil {
		all = append(all, "at least "+num(*l.Min)+", else "+l.Action)
	}
	if len(all) == 0 {
		all = append(all, "must be available, else "+l.Action)
	}
	return all
}

// timeline is the readings of each probe over the time in which the run ran.
type timeline struct {
	windows int
	points  map[string][]hostPoint
	units   map[string]string
	resumed []time.Duration
}

func newTimeline(run *ledger.Run) *timeline {
	t := &timeline{points: map[string][]hostPoint{}, units: map[string]string{}}
	var began, last time.Time
	var still, at time.Duration
	for _, rec := range run.Records {
		switch {
		case rec.Begin != nil:
			began, last = rec.Begin.Time, rec.Begin.Time
		case rec.Trial != nil:
			last = later(last, rec.Trial.Start.Add(rec.Trial.Usage.Wall))
		case rec.Resume != nil:
			still += max(rec.Resume.Time.Sub(last), 0)
			last = later(last, rec.Resume.Time)
			t.resumed = append(t.resumed, max(last.Sub(began)-still, at))
		case rec.Host != nil:
			last = later(last, rec.Host.Time)
			// A clock that was set back must not turn the line around.
			at = max(rec.Host.Time.Sub(began)-still, at)
			t.add(rec.Host, at)
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (t *timeline) add(w *ledger.HostWindow, at time.Duration) {
	t.windows++
	for _, r := range w.Readings {
		if !slices.Contains(drawnProbes, r.Probe) {
			continue
		}
		p := hostPoint{at: at, value: math.NaN()}
		if r.Available() {
			p.value = r.Value
		}
		for _, b := range w.Breaches {
			p.breach = p.breach || b.Limit.Probe == r.Probe
		}
		t.units[r.Probe] = r.Unit
		t.points[r.Probe] = append(t.points[r.Probe], p)
	}
}

func (t *timeline) plot(id, probe string, limits []protocol.Limit) hostPlot {
	c := hostPlot{id: id, title: probe + " over the run", unit: t.units[probe], readings: t.points[probe], resumed: t.resumed}
	lo, hi := math.Inf(1), math.Inf(-1)
	breaches, missing := 0, 0
	for _, r := range c.readings {
		if finite(r.value) {
			lo, hi = math.Min(lo, r.value), math.Max(hi, r.value)
		} else {
			missing++
		}
		if r.breach {
			breaches++
		}
	}
	c.desc = fmt.Sprintf("%s, from %s to %s; %d unavailable; a limit was broken %s. ", counted(len(c.readings), "reading"), num(lo), num(hi), missing, counted(breaches, "time"))
	for _, l := range limits {
		if l.Probe != probe {
			continue
		}
		if l.Max != nil {
			c.limits = append(c.limits, hostLimit{*l.Max, "at most " + num(*l.Max) + ": " + l.Action})
		}
		if l.Min != nil {
			c.limits = append(c.limits, hostLimit{*l.Min, "at least " + num(*l.Min) + ": " + l.Action})
		}
		c.desc += "Limit: " + strings.Join(limitWords(l), "; ") + ". "
	}
	return c
}
