package check

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClipIsBoundedAndWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		limit := rapid.IntRange(8, 40).Draw(t, "limit")
		got := clip(s, limit)
		if len(got) > limit {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q is cut inside a character", got)
		}
		if len(s) <= limit && got != s {
			t.Fatalf("%q was cut although it fits", s)
		}
	})
}

func TestFindingsKeepOneOfEveryClass(t *testing.T) {
	classes := strings.Fields("a b c d e f g")
	f := newFindings(classes...)
	for _, class := range classes {
		for range 100 {
			f.add(class, "found")
		}
	}
	got := f.list()
	if len(got) != maxExamples {
		t.Errorf("%d examples", len(got))
	}
	for _, class := range classes {
		if !slices.Contains(got, class+": found") {
			t.Errorf("no example of %s", class)
		}
	}
}
