package report

import (
	"strings"
	"testing"
)

func TestTextBeginsAndEndsWithTheVerdict(t *testing.T) {
	for _, r := range goldenRuns {
		lines := strings.Split(strings.TrimSuffix(string(page(t, Text, r.make(t))), "\n"), "\n")
		if first, last := lines[0], lines[len(lines)-1]; first != last || !strings.HasPrefix(first, "VERDICT  ") {
			t.Errorf("%s: %q and %q", r.name, first, last)
		}
		wantNarrow(t, strings.Join(lines, "\n"), defaultWidth)
	}
}

func TestColourIsOnTheVerdictOnly(t *testing.T) {
	s := goRun(t)
	text := string(page(t, Terminal{Colour: true}.Write, s))
	if n := strings.Count(text, "\x1b["); n != 4 {
		t.Errorf("%d escapes", n)
	}
	if plain := strings.NewReplacer("\x1b[1;32m", "", "\x1b[0m", "").Replace(text); plain != string(page(t, Text, s)) {
		t.Error("colour changes more than the colour")
	}
	if text := string(page(t, Terminal{Colour: true}.Write, noGoRun(t))); !strings.HasPrefix(text, "VERDICT  \x1b[1;31mNO-GO\x1b[0m  REGRESSION\n") {
		t.Errorf("%q", text[:60])
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"a bb  ccc", []string{"a bb", "ccc"}},
		{"abcdefghijk", []string{"abcde", "fghij", "k"}},
		{"a abcdefgh", []string{"a", "abcde", "fgh"}},
		{"äöüßé x", []string{"äöüßé", "x"}},
	} {
		if got := wrapped(c.in, 5); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}

func TestRankTestShowsItsOwnEstimate(t *testing.T) {
	yaml := strings.Replace(writePath, "primary: {metric: wall,", "primary: {metric: wall, test: mann-whitney,", 1)
	s := makeRun(t, strings.Replace(yaml, "floor: {dz: 0.8}", "floor: {change: 0.02}", 1), made{trial: writePathTrial(0.82)})
	if text := string(page(t, Text, s)); !strings.Contains(text, " ms (Hodges-Lehmann), interval [-") || !strings.Contains(text, "mann-whitney, p < 0.0001") {
		t.Error(text)
	}
}

func TestANoteOfSeveralLinesKeepsThem(t *testing.T) {
	p := &textPage{width: 25}
	p.lines("  - ", "where the time goes:\nfind study   1.2  0.3\r\nfind \x1b[31mcontrol of everything 9.9\n")
	want := "  - where the time goes:\n    find study   1.2  0.3\n    find \uFFFD[31mcontrol of\n    everything 9.9\n"
	if got := p.b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
