package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fourBranch is base with the preset, with or without gates and a caveat.
func fourBranch(t *testing.T, gates, caveat bool) *Protocol {
	t.Helper()
	src := base[:strings.Index(base, "decision:")] + "decision:\n  preset: four-branch\n"
	if caveat {
		src += "  caveat: effect.bytes.ratio <= 0.8\n"
	}
	if !gates {
		src = src[:strings.Index(src, "gates:")] + src[strings.Index(src, "decision:"):]
	}
	return parse(t, src)
}

// decide is what the gate stage does with outcomes and values.
func decide(t *testing.T, p *Protocol, values Named) (outcome, class string, err error) {
	t.Helper()
	for _, o := range p.Decision.Outcomes {
		if o.When == "" {
			return o.Name, o.Class, nil
		}
		c, err := Compile(o.When, p.OutcomeScope())
		if err != nil {
			t.Fatal(err)
		}
		switch holds, err := c.Eval(values); {
		case err != nil:
			return "", "", err
		case holds:
			return o.Name, o.Class, nil
		}
	}
	t.Fatal("no default")
	return "", "", nil
}

// The rule in words: a significant loss, a tripped veto or a broken gate is a
// regression, whatever else holds; a significant gain of at least the floor
// proceeds; otherwise the caveat may carry it; the rest is no benefit.
func TestFourBranchTruthTable(t *testing.T) {
	bools := []bool{false, true}
	rows := 0
	for _, gates := range bools {
		for _, caveat := range bools {
			p := fourBranch(t, gates, caveat)
			for bits := range 1 << 7 {
				bit := func(i int) bool { return bits>>i&1 == 1 }
				significant, better, worse, floor, veto, gate, secondary := bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6)
				if better && worse || !gates && !gate || !caveat && secondary {
					continue
				}
				rows++
				want := "NO-BENEFIT no-go"
				switch {
				case significant && worse, veto, !gate:
					want = "REGRESSION no-go"
				case significant && better && floor:
					want = "PROCEED go"
				case secondary:
					want = "PROCEED-WITH-CAVEAT go"
				}
				ratio := 1.0
				if secondary {
					ratio = 0.7
				}
				values := Named{
					"primary.significant": significant, "primary.better": better, "primary.worse": worse, "primary.meets_floor": floor,
					"veto.any": veto, "gate.all": gate, "effect.bytes.ratio": ratio,
				}
				outcome, class, err := decide(t, p, values)
				if got := outcome + " " + class; err != nil || got != want {
					t.Errorf("gates %v caveat %v %v: %s, %v; want %s", gates, caveat, values, got, err, want)
				}
			}
		}
	}
	if want := (3*4*2*2 + 3*4*2*1) * (1 + 2); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

// Each name that a branch consults must have a value, also where the branch
// would have been settled without it.
func TestFourBranchMissing(t *testing.T) {
	full := Named{
		"primary.significant": true, "primary.better": true, "primary.worse": false, "primary.meets_floor": true,
		"veto.any": false, "gate.all": true, "effect.bytes.ratio": 0.7,
	}
	for _, gates := range []bool{false, true} {
		p := fourBranch(t, gates, true)
		for _, o := range p.Decision.Outcomes {
			if o.When == "" {
				continue
			}
			c, err := Compile(o.When, p.OutcomeScope())
			if err != nil {
				t.Fatal(err)
			}
			if gates != slices.Contains(c.Names, "gate.all") {
				t.Errorf("%s with gates %v: consults %v", o.Name, gates, c.Names)
			}
			if !slices.Contains(c.Names, "veto.any") {
				t.Errorf("%s does not look at the vetoes: %v", o.Name, c.Names)
			}
			for _, name := range c.Names {
				for _, bits := range []bool{false, true} {
					values := Named{}
					for n, v := range full {
						if b, isTruth := v.(bool); isTruth {
							v = b != bits
						}
						if n != name {
							values[n] = v
						}
					}
					holds, err := c.Eval(values)
					var miss *MissingError
					if holds || !errors.As(err, &miss) || fmt.Sprint(miss.Names) != fmt.Sprint([]string{name}) {
						t.Errorf("%s without %s: %v, %v", o.Name, name, holds, err)
					}
				}
			}
		}
	}
}

// A gate that is only reported does not take part, and a rule over nothing does
// not look as if it did.
func TestFourBranchStressGates(t *testing.T) {
	src := base[:strings.Index(base, "decision:")] + "decision: {preset: four-branch}\n"
	p := parse(t, strings.Replace(src, "require: ratio <= 1.1", "require: ratio <= 1.1, class: stress", 1))
	for _, o := range p.Decision.Outcomes {
		if strings.Contains(o.When, "gate.") {
			t.Errorf("%s: %s", o.Name, o.When)
		}
	}
}

// The caveat is one operand, whatever operators it has.
func TestCaveatStaysInItsPlace(t *testing.T) {
	src := base[:strings.Index(base, "decision:")] + "decision:\n  preset: four-branch\n  caveat: effect.bytes.ratio <= 0.8 || effect.wall.ratio <= 0.8\n"
	p := parse(t, src)
	values := Named{
		"primary.significant": false, "primary.better": true, "primary.worse": false, "primary.meets_floor": false,
		"veto.any": true, "gate.all": true, "effect.bytes.ratio": 0.7, "effect.wall.ratio": 1.0,
	}
	c, err := Compile(p.Decision.Outcomes[2].When, p.OutcomeScope())
	if err != nil {
		t.Fatal(err)
	}
	if holds, err := c.Eval(values); holds || err != nil {
		t.Errorf("%s holds in spite of a veto: %v", c.Source, err)
	}
}

// A last outcome may not be go, and every go of the preset has a condition.
func TestFourBranchFailsClosed(t *testing.T) {
	for _, gates := range []bool{false, true} {
		for _, caveat := range []bool{false, true} {
			outcomes := fourBranch(t, gates, caveat).Decision.Outcomes
			for i, o := range outcomes {
				if last := i == len(outcomes)-1; last != (o.When == "") || o.Class == "go" && last || o.Say == "" {
					t.Errorf("%+v", o)
				}
			}
		}
	}
}
