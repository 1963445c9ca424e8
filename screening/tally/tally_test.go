package tally_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/screening/tally"
)

func TestWhatAStudyContributes(t *testing.T) {
	s := tally.Study{
		Decisions: []tally.Decision{
			{Reviewer: "a", Stage: "title", Include: true}, {Reviewer: "b", Stage: "title", Include: false},
			{Reviewer: "a", Stage: "full", Include: true},
		},
		Sessions:     []tally.Session{{ID: "1", Reviewer: "a"}},
		Reservations: []tally.Reservation{{Reviewer: "c"}},
	}
	want := map[tally.Family]tally.Rows{
		tally.ProjectScreening: {{}: {"conflict": 1, "partial": 1, "includes": 2, "excludes": 1}},
		tally.MembershipScreening: {
			{Reviewer: "a"}: {"decisions": 2, "includes": 2, "sessions": 1},
			{Reviewer: "b"}: {"decisions": 1, "excludes": 1},
			{Reviewer: "c"}: {"reserved": 1},
		},
		tally.ReviewerScreening: {
			{Reviewer: "a", Stage: "title"}: {"decisions": 1, "disagreed": 1},
			{Reviewer: "b", Stage: "title"}: {"decisions": 1, "disagreed": 1},
			{Reviewer: "a", Stage: "full"}:  {"decisions": 1, "open": 1},
		},
	}
	for f, w := range want {
		if got := tally.Contribution(f, s); !got.Equal(w) {
			t.Errorf("%s: got %v, want %v", f, got, w)
		}
		if got := tally.Contribution(f, tally.Study{Required: 3}); len(got) != 0 {
			t.Errorf("%s: an untouched study contributes %v", f, got)
		}
	}
}

func study(t *rapid.T, label string) tally.Study {
	s := tally.Study{Required: rapid.IntRange(0, 3).Draw(t, label+"required")}
	for r := range 4 {
		for _, stage := range []string{"title", "full"} {
			who := fmt.Sprint("r", r)
			switch rapid.IntRange(0, 4).Draw(t, label) {
			case 0:
				s.Decisions = append(s.Decisions, tally.Decision{Reviewer: who, Stage: stage, Include: true})
			case 1:
				s.Decisions = append(s.Decisions, tally.Decision{Reviewer: who, Stage: stage})
			case 2:
				s.Sessions = append(s.Sessions, tally.Session{Reviewer: who, Stage: stage})
			case 3:
				s.Reservations = append(s.Reservations, tally.Reservation{Reviewer: who, Stage: stage})
			}
		}
	}
	return s
}

func TestMovesAddUpToTheContribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum []tally.Move
		last := tally.Study{}
		for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
			next := study(t, fmt.Sprint("study", i))
			sum = append(sum, tally.Moves(tally.Families(), last, next)...)
			last = next
		}
		for _, m := range sum {
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range tally.Families() {
			if got, want := tally.Sum(f, sum), tally.Contribution(f, last); !got.Equal(want) {
				t.Fatalf("%s: the moves add up to %v, the study contributes %v", f, got, want)
			}
		}
		if m := tally.Moves(tally.Families(), last, last); len(m) != 0 {
			t.Fatalf("no change moves %v", m)
		}
	})
}

func TestMovesThatCannotBeApplied(t *testing.T) {
	for _, m := range []tally.Move{{}, {Family: "Unheard", Counters: tally.Counters{"x": 1}}, {Family: tally.ProjectScreening}} {
		if m.Check() == nil {
			t.Errorf("%+v passes", m)
		}
	}
}
