package analysis

import (
	"math"
	"slices"
	"testing"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

func windows(run *ledger.Run, limits []protocol.Limit, readings ...[]host.Reading) {
	for i, rs := range readings {
		run.Records = slices.Insert(run.Records, len(run.Records)-1, ledger.Record{Kind: ledger.KindHost, Host: &ledger.HostWindow{
			When: "during", From: i, To: i, Readings: rs, Breaches: host.Judge(rs, limits, "during"),
		}})
	}
}

func read(probe string, v float64) host.Reading {
	return host.Reading{Probe: probe, State: host.OK, Value: v, Unit: "%"}
}

func TestBreachesAreMergedAndTheWorstActionWins(t *testing.T) {
	p := plan(t, simple+`
host:
  - {probe: psi_io, max: 50, action: warn}
  - {probe: psi_io, max: 90, action: block}
  - {probe: steal, max: 5, action: provisional}
  - {probe: load_per_cpu, max: 2, action: warn}
`)
	during := []protocol.Limit{p.Host[0], p.Host[1], p.Host[2]}
	run := measure(t, p, steady)
	windows(run, during,
		[]host.Reading{read("psi_io", 60), read("steal", 1)},
		[]host.Reading{read("psi_io", 70), read("steal", 9)},
		[]host.Reading{read("psi_io", 95), read("steal", 3)},
		[]host.Reading{read("psi_io", 10), read("steal", 7)},
	)
	windows(run, p.Host[3:], []host.Reading{read("load_per_cpu", 1)})
	h := Analyze(run).Host
	if h.Worst != "block" {
		t.Errorf("the worst is %q", h.Worst)
	}
	var got []string
	for _, b := range h.Breaches {
		got = append(got, b.Action+" "+b.Probe)
	}
	if !slices.Equal(got, []string{"block psi_io", "provisional steal", "warn psi_io"}) {
		t.Fatalf("breaches %+v", h.Breaches)
	}
	if h.Breaches[2].Times != 3 || h.Breaches[0].Times != 1 || h.Breaches[1].Times != 2 {
		t.Errorf("breaches %+v", h.Breaches)
	}
	if want := "provisional: steal 9 %, allowed is at most 5, during"; h.Breaches[1].First != want {
		t.Errorf("first is %q, want %q", h.Breaches[1].First, want)
	}
	for _, s := range h.Probes {
		if s.Probe == "psi_io" && (s.Min != 10 || s.Max != 95 || s.Readings != 4 || s.Unavailable != 0 || s.Unit != "%") {
			t.Errorf("got %+v", s)
		}
	}
}

func TestALimitNeverReadTakesItsUnavailableAction(t *testing.T) {
	for _, c := range []struct{ limit, worst string }{
		{"{probe: steal, max: 5, action: block}", "block"},
		{"{probe: steal, max: 5, action: provisional}", "provisional"},
		{"{probe: steal, max: 5, action: warn}", "warn"},
		{"{probe: steal, max: 5, action: block, unavailable: provisional}", "provisional"},
		{"{probe: steal, max: 5, action: block, unavailable: warn}", "warn"},
		{"{probe: steal, max: 5, action: warn, unavailable: block}", "block"},
		{"{probe: steal, max: 5, action: block, unavailable: allow}", ""},
	} {
		p := plan(t, simple+"host:\n  - "+c.limit+"\n")
		never := Analyze(measure(t, p, steady)).Host
		unavailable := measure(t, p, steady)
		windows(unavailable, p.Host, []host.Reading{{Probe: "steal", Detail: "no stolen time"}})
		other := Analyze(unavailable).Host
		for what, h := range map[string]Host{"never read": never, "unavailable": other} {
			if h.Worst != c.worst || (len(h.Breaches) == 1) != (c.worst != "") {
				t.Errorf("%s, %s: worst %q, %+v", c.limit, what, h.Worst, h.Breaches)
			}
		}
		if s := other.Probes[0]; s.Readings != 0 || s.Unavailable != 1 || !math.IsNaN(float64(s.Min)) || s.Detail != "no stolen time" {
			t.Errorf("summary %+v", s)
		}
	}
	p := plan(t, simple+"host:\n  - {probe: steal, max: 5, action: block}\n  - {probe: steal, min: 0, action: block}\n")
	if h := Analyze(measure(t, p, steady)).Host; len(h.Breaches) != 1 || h.Breaches[0].Times != 2 {
		t.Errorf("two limits on one probe: %+v", h.Breaches)
	}
	// A run that goes on may still read it.
	run := measure(t, p, steady)
	run.Records = run.Records[:len(run.Records)-1]
	if h := Analyze(run).Host; h.Worst != "" {
		t.Errorf("an unfinished run: %+v", h)
	}
}

// A folder may hold an action that this version does not know.
func TestAnUnknownActionBlocks(t *testing.T) {
	p := plan(t, simple)
	for _, action := range []string{"quarantine", "", "Block"} {
		run := measure(t, p, steady)
		windows(run, nil, []host.Reading{read("steal", 50)})
		run.Records[len(run.Records)-2].Host.Breaches = []host.Breach{{Limit: protocol.Limit{Probe: "steal"}, Reading: read("steal", 50), Action: action}}
		if h := Analyze(run).Host; h.Worst != "block" || h.Breaches[0].Action != "block" {
			t.Errorf("action %q: %+v", action, h)
		}
	}
}

func TestWorseActionIsAnOrder(t *testing.T) {
	order := []string{"", "warn", "provisional", "block"}
	for i, a := range order {
		for j, b := range order {
			if got := worseAction(a, b); got != order[max(i, j)] {
				t.Errorf("%q and %q: %q", a, b, got)
			}
		}
	}
}
