// Package tally says what the statistics of screening count: the contribution of
// one study to the rows of a family, and the signed moves between two states of a
// study. It is pure, and must never know collections, versions or clocks.
package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Family is a kind of statistics.
type Family string

const (
	ProjectScreening    Family = "ProjectScreening"    // one row per project
	MembershipScreening Family = "MembershipScreening" // one row per reviewer
	ReviewerScreening   Family = "ReviewerScreening"   // one row per reviewer and stage
)

// Families are all of them, in the order they are reported.
func Families() []Family {
	return []Family{ProjectScreening, MembershipScreening, ReviewerScreening}
}

// Known says whether f is a family.
func (f Family) Known() bool { return slices.Contains(Families(), f) }

// Decision is what a reviewer has decided on a study at a stage.
type Decision struct {
	Reviewer string    `bson:"reviewer"`
	Stage    string    `bson:"stage"`
	Include  bool      `bson:"include"`
	At       time.Time `bson:"at"`
}

// Session is a reviewer's annotation session on a study.
type Session struct {
	ID          string            `bson:"id"`
	Reviewer    string            `bson:"reviewer"`
	Stage       string            `bson:"stage"`
	Annotations map[string]string `bson:"annotations,omitempty"`
	At          time.Time         `bson:"at"`
}

// Reservation is a study held for a reviewer who has not decided yet.
type Reservation struct {
	Reviewer string    `bson:"reviewer"`
	Stage    string    `bson:"stage"`
	At       time.Time `bson:"at"`
}

// Study is the part of a study that statistics are made of.
type Study struct {
	Required     int           `bson:"required"` // reviewers until a stage has come to something; 0 is 2
	Decisions    []Decision    `bson:"decisions"`
	Sessions     []Session     `bson:"sessions"`
	Reservations []Reservation `bson:"reservations"`
}

// Scope is what a row is about: the zero scope is the project.
type Scope struct {
	Reviewer string `bson:"reviewer"`
	Stage    string `bson:"stage"`
}

// Counters are named counts. A missing name is 0, and a count of 0 is not kept.
type Counters map[string]int64

// Add adds the counts of d, n times.
func (c Counters) Add(d Counters, n int64) {
	for k, v := range d {
		if c[k] += v * n; c[k] == 0 {
			delete(c, k)
		}
	}
}

// Rows are the counters of one family by scope. A scope without counts is not kept.
type Rows map[Scope]Counters

// Add adds the counts of d, n times.
func (r Rows) Add(d Rows, n int64) {
	for s, c := range d {
		r.add(s, c, n)
	}
}

func (r Rows) add(s Scope, c Counters, n int64) {
	if r[s] == nil {
		r[s] = Counters{}
	}
	if r[s].Add(c, n); len(r[s]) == 0 {
		delete(r, s)
	}
}

// Equal says whether both have the same counts.
func (r Rows) Equal(o Rows) bool {
	return maps.EqualFunc(r, o, func(a, b Counters) bool { return maps.Equal(a, b) })
}

// Move is a signed change of one row.
type Move struct {
	Family   Family   `bson:"family"`
	Scope    Scope    `bson:"scope"`
	Counters Counters `bson:"counters"`
}

// Check says why m cannot be applied to any row, or nil.
func (m Move) Check() error {
	if !m.Family.Known() {
		return fmt.Errorf("unknown family %q", m.Family)
	}
	if len(m.Counters) == 0 {
		return fmt.Errorf("a move of %s without counters", m.Family)
	}
	return nil
}

// Moves are what takes the rows of before to those of after, for the families
// given, in a fixed order. None means that the change moves no statistics.
func Moves(families []Family, before, after Study) []Move {
	var out []Move
	for _, f := range families {
		diff := Contribution(f, after)
		diff.Add(Contribution(f, before), -1)
		out = append(out, diff.Moves(f)...)
	}
	return out
}

// Moves are the rows as moves from nothing, ordered by scope.
func (r Rows) Moves(f Family) []Move {
	scopes := slices.SortedFunc(maps.Keys(r), Scope.compare)
	out := make([]Move, 0, len(scopes))
	for _, s := range scopes {
		out = append(out, Move{Family: f, Scope: s, Counters: r[s]})
	}
	return out
}

func (s Scope) compare(o Scope) int {
	return cmp.Or(cmp.Compare(s.Reviewer, o.Reviewer), cmp.Compare(s.Stage, o.Stage))
}

// Sum adds up the moves of one family.
func Sum(f Family, moves []Move) Rows {
	rows := Rows{}
	for _, m := range moves {
		if m.Family == f {
			rows.add(m.Scope, m.Counters, 1)
		}
	}
	return rows
}

// Contribution is what one study adds to the rows of a family. Rows are defined as
// the sum of the contributions of all studies of a project.
func Contribution(f Family, s Study) Rows {
	rows := Rows{}
	switch f {
	case ProjectScreening:
		for _, st := range stages(s) {
			rows.add(Scope{}, Counters{st.state: 1}, 1)
		}
		for _, d := range s.Decisions {
			rows.add(Scope{}, Counters{verdict(d): 1}, 1)
		}
	case MembershipScreening:
		for _, d := range s.Decisions {
			rows.add(Scope{Reviewer: d.Reviewer}, Counters{"decisions": 1, verdict(d): 1}, 1)
		}
		for _, n := range s.Sessions {
			rows.add(Scope{Reviewer: n.Reviewer}, Counters{"sessions": 1}, 1)
		}
		for _, v := range s.Reservations {
			rows.add(Scope{Reviewer: v.Reviewer}, Counters{"reserved": 1}, 1)
		}
	case ReviewerScreening:
		came := map[string]string{}
		for _, st := range stages(s) {
			came[st.name] = agreement[st.state]
		}
		for _, d := range s.Decisions {
			rows.add(Scope{Reviewer: d.Reviewer, Stage: d.Stage}, Counters{"decisions": 1, came[d.Stage]: 1}, 1)
		}
	}
	return rows
}

var agreement = map[string]string{"partial": "open", "included": "agreed", "excluded": "agreed", "conflict": "disagreed"}

func verdict(d Decision) string {
	if d.Include {
		return "includes"
	}
	return "excludes"
}

type stage struct{ name, state string }

// stages are the stages at which somebody has decided, and what they came to.
func stages(s Study) []stage {
	in, total := map[string]int{}, map[string]int{}
	for _, d := range s.Decisions {
		total[d.Stage]++
		if d.Include {
			in[d.Stage]++
		}
	}
	required := s.Required
	if required == 0 {
		required = 2
	}
	var out []stage
	for _, name := range slices.Sorted(maps.Keys(total)) {
		state := "conflict"
		switch {
		case total[name] < required:
			state = "partial"
		case in[name] == total[name]:
			state = "included"
		case in[name] == 0:
			state = "excluded"
		}
		out = append(out, stage{name, state})
	}
	return out
}
