package host

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/assaylab/assay/lab/protocol"
)

func bound(v float64) *float64 { return &v }

func TestJudge(t *testing.T) {
	r := func(s State, v float64) []Reading { return []Reading{{Probe: "p", State: s, Value: v}} }
	block := protocol.Limit{Probe: "p", Max: bound(1), Action: "block"}
	with := func(unavailable string) protocol.Limit { l := block; l.Unavailable = unavailable; return l }
	for _, c := range []struct {
		name     string
		readings []Reading
		limit    protocol.Limit
		want     string
	}{
		{"inside", r(OK, 1), block, ""},
		{"above", r(OK, 1.01), block, "block"},
		{"below", r(OK, 1), protocol.Limit{Probe: "p", Min: bound(2), Action: "warn"}, "warn"},
		{"between", r(OK, 2), protocol.Limit{Probe: "p", Min: bound(2), Max: bound(3), Action: "warn"}, ""},
		{"marked bad by other limits", r(Bad, 1), block, ""},
		{"unavailable", r(Unavailable, 0), block, "block"},
		{"zero state", r("", 0), block, "block"},
		{"unknown state", r("fine", 0), block, "block"},
		{"NaN", r(OK, math.NaN()), block, "block"},
		{"minus infinity", r(OK, math.Inf(-1)), block, "block"},
		{"infinity", r(OK, math.Inf(1)), protocol.Limit{Probe: "p", Min: bound(1), Action: "warn"}, "warn"},
		{"absent", nil, block, "block"},
		{"another probe", []Reading{{Probe: "q", State: OK}}, block, "block"},
		{"absent, allowed", nil, with("allow"), ""},
		{"unavailable, allowed", r(Unavailable, 0), with("allow"), ""},
		{"allowed, yet broken", r(OK, 2), with("allow"), "block"},
		{"unavailable, provisional", r(Unavailable, 0), with("provisional"), "provisional"},
		{"unavailable, unknown word", r(Unavailable, 0), with("alow"), "block"},
		{"no action", r(OK, 2), protocol.Limit{Probe: "p", Max: bound(1)}, "block"},
		{"allow is no action", r(OK, 2), protocol.Limit{Probe: "p", Max: bound(1), Action: "allow"}, "block"},
		{"unknown action", r(OK, 2), protocol.Limit{Probe: "p", Max: bound(1), Action: "shrug"}, "block"},
		{"bound is NaN", r(OK, 0), protocol.Limit{Probe: "p", Max: bound(math.NaN()), Action: "block"}, "block"},
		{"no bounds, available", r(OK, 9), protocol.Limit{Probe: "p", Action: "block"}, ""},
		{"no bounds, unavailable", r(Unavailable, 0), protocol.Limit{Probe: "p", Action: "block"}, "block"},
		{"second reading is broken", append(r(OK, 0), r(OK, 5)...), block, "block"},
		{"second reading is unavailable", append(r(OK, 0), r(Unavailable, 0)...), block, "block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bs := Judge(c.readings, []protocol.Limit{c.limit}, "before")
			if w := Worst(bs); w != c.want {
				t.Fatalf("have %q want %q", w, c.want)
			}
			for _, b := range bs {
				if b.When != "before" || b.Reading.Probe != "p" || b.Reading.State == OK || b.String() == "" {
					t.Errorf("%+v", b)
				}
				if _, err := json.Marshal(b.Reading); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestWorst(t *testing.T) {
	of := func(actions ...string) string {
		var bs []Breach
		for _, a := range actions {
			bs = append(bs, Breach{Action: a})
		}
		return Worst(bs)
	}
	for _, c := range []struct{ have, want string }{
		{of(), ""},
		{of("warn"), "warn"},
		{of("provisional", "warn"), "provisional"},
		{of("warn", "provisional", "warn"), "provisional"},
		{of("warn", "block", "provisional"), "block"},
		{of("warn", ""), "block"},
		{of("warn", "allow"), "block"},
	} {
		if c.have != c.want {
			t.Errorf("have %q want %q", c.have, c.want)
		}
	}
}

func TestMark(t *testing.T) {
	in := []Reading{{Probe: "a", State: OK, Value: 5}, {Probe: "b", State: OK, Value: math.NaN()}, {Probe: "c", State: Bad, Value: 1}, {Probe: "d", Value: 1}, {Probe: "e", State: Unavailable}}
	limits := []protocol.Limit{
		{Probe: "a", Max: bound(9), Action: "warn"}, {Probe: "a", Max: bound(4), Action: "warn"},
		{Probe: "b", Max: bound(1), Action: "warn"}, {Probe: "e", Max: bound(1), Action: "block"},
	}
	want := []State{Bad, Unavailable, OK, Unavailable, Unavailable}
	out := Mark(in, limits)
	for i, r := range out {
		if r.State != want[i] {
			t.Errorf("%s is %s, want %s", r.Probe, r.State, want[i])
		}
	}
	if in[0].State != OK {
		t.Error("the argument was changed")
	}
	if out := Mark(in[:1], nil); out[0].State != OK {
		t.Error("bad without a limit")
	}
}

func TestReadingJSON(t *testing.T) {
	for _, c := range []struct {
		r    Reading
		want string
	}{
		{Reading{}, `{"probe":"","state":"unavailable","unit":""}`},
		{steal.is(0, ""), `{"probe":"steal","state":"ok","value":0,"unit":"%"}`},
		{steal.is(math.NaN(), ""), `{"probe":"steal","state":"unavailable","unit":"%","detail":"not a finite number"}`},
		{Reading{Probe: "p", State: "fine", Value: 3}, `{"probe":"p","state":"unavailable","unit":""}`},
		{Reading{Probe: "p", State: Bad, Value: math.Inf(1)}, `{"probe":"p","state":"unavailable","unit":""}`},
		{Reading{Probe: "p", State: Bad, Value: 2}, `{"probe":"p","state":"bad","value":2,"unit":""}`},
	} {
		b, err := json.Marshal(c.r)
		if err != nil || string(b) != c.want {
			t.Errorf("have %s, %v\nwant %s", b, err, c.want)
		}
		var back Reading
		if err := json.Unmarshal(b, &back); err != nil || back.Available() != c.r.Available() {
			t.Error(back, err)
		}
	}
	var r Reading
	if json.Unmarshal([]byte(`{"state":"fine"}`), &r) == nil {
		t.Error("an unknown state was read")
	}
}
