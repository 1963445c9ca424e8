package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
)

// Breach is a limit that does not hold, with the reading that broke it.
type Breach struct {
	Limit   protocol.Limit `json:"limit"`
	Reading Reading        `json:"reading"`
	// Action is what follows: block, provisional or warn.
	Action string `json:"action"`
	// When says at which moment of the run, in the words of the caller.
	When string `json:"when"`
}

// String is the breach as one phrase for people.
func (b Breach) String() string {
	s := b.Action + ": " + b.Reading.String()
	if b.Reading.Available() {
		var want []string
		if b.Limit.Min != nil {
			want = append(want, fmt.Sprintf("at least %.4g", *b.Limit.Min))
		}
		if b.Limit.Max != nil {
			want = append(want, fmt.Sprintf("at most %.4g", *b.Limit.Max))
		}
		s += ", allowed is " + strings.Join(want, " and ")
	}
	if b.When != "" {
		s += ", " + b.When
	}
	return s
}

// Judge compares readings with limits; what holds leaves no trace. A limit
// whose probe is absent or unavailable, or whose value is not a finite number,
// takes the limit's Unavailable, and its Action where that is empty. Several
// readings of one probe are judged one by one. An action that is no word of
// the protocol counts as block. A limit without bounds asks only that its
// probe be available.
func Judge(readings []Reading, limits []protocol.Limit, when string) []Breach {
	var all []Breach
	for _, l := range limits {
		seen := false
		for _, r := range readings {
			if r.Probe != l.Probe {
				continue
			}
			seen = true
			if !r.Available() {
				r.State = Unavailable
				all = missing(all, l, r, when)
			} else if broken(l, r) {
				r.State = Bad
				all = append(all, Breach{l, r, known(l.Action), when})
			}
		}
		if !seen {
			r := Reading{Probe: l.Probe, State: Unavailable, Detail: "not read"}
			all = missing(all, l, r, when)
		}
	}
	return all
}

func missing(all []Breach, l protocol.Limit, r Reading, when string) []Breach {
	action := l.Unavailable
	switch action {
	case protocol.ActionAllow:
		return all
	case "":
		action = l.Action
	}
	return append(all, Breach{l, r, known(action), when})
}

// broken asks whether the value is inside, so that a bound that is no number
// allows nothing.
func broken(l protocol.Limit, r Reading) bool {
	return l.Max != nil && !(r.Value <= *l.Max) || l.Min != nil && !(r.Value >= *l.Min)
}

func known(action string) string {
	switch action {
	case protocol.ActionWarn, protocol.ActionProvisional:
		return action
	}
	return protocol.ActionBlock
}

// Mark returns the readings with the state that the limits give them: bad
// where one is broken, else ok, and unavailable where there is nothing to
// judge. It does not change its argument.
func Mark(readings []Reading, limits []protocol.Limit) []Reading {
	marked := slices.Clone(readings)
	for i := range marked {
		r := &marked[i]
		isBroken := func(l protocol.Limit) bool { return l.Probe == r.Probe && broken(l, *r) }
		switch {
		case !r.Available():
			r.State, r.Value = Unavailable, 0
		case slices.ContainsFunc(limits, isBroken):
			r.State = Bad
		default:
			r.State = OK
		}
	}
	return marked
}

// Worst is the gravest action among the breaches: block, then provisional,
// then warn, and "" where there are none.
func Worst(breaches []Breach) string {
	worst := ""
	for _, b := range breaches {
		switch a := known(b.Action); {
		case a == protocol.ActionBlock:
			return a
		case a == protocol.ActionProvisional || worst == "":
			worst = a
		}
	}
	return worst
}
