package protocol

import "slices"

// expand replaces a preset by the outcomes it stands for.
//
// four-branch: a regression blocks whatever else holds; a significant gain
// that reaches the floor goes; a tie that a frozen condition finds worth
// having goes with a caveat; everything else is not worth an irreversible
// step. A failed check has ended the decision before any of them (ABORT).
func (d *Decision) expand(p *Protocol) {
	if d.Preset != "four-branch" {
		return
	}
	guard := ""
	block := "veto.any"
	if slices.ContainsFunc(p.Gates, func(g Rule) bool { return g.Class != ClassStress }) {
		guard, block = " && gate.all", "veto.any || !gate.all"
	}
	d.Outcomes = []Outcome{
		{Name: "REGRESSION", Class: "no-go", When: "primary.significant && primary.worse || " + block,
			Say: "The treatment makes something worse that was agreed to be untouchable."},
		{Name: "PROCEED", Class: "go", When: "primary.significant && primary.better && primary.meets_floor && !veto.any" + guard,
			Say: "The gain is real, large enough to matter, and nothing blocks it."},
	}
	if d.Caveat != "" {
		d.Outcomes = append(d.Outcomes, Outcome{Name: "PROCEED-WITH-CAVEAT", Class: "go", When: "(" + d.Caveat + ") && !veto.any" + guard,
			Say: "No proven gain on the primary metric; the secondary gain named in the protocol is there."})
	}
	d.Outcomes = append(d.Outcomes, Outcome{Name: "NO-BENEFIT", Class: "no-go",
		Say: "No gain that matters was shown; the change is not worth its risk."})
}
