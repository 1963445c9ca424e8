package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine is s as it may stand on a line: what an arm or a judge printed can
// hold escape sequences that move the cursor, newlines that fake a heading,
// and marks that turn the reading direction. White space becomes one blank;
// what cannot be seen becomes the sign for a character that cannot be shown.
func oneLine(s string) string {
	return graphic(strings.Join(strings.Fields(s), " "))
}

// graphic is s without what could move a terminal's cursor; the end of a line goes.
func graphic(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r':
			return -1
		case unicode.IsGraphic(r):
			return r
		}
		return utf8.RuneError
	}, s)
}

// clipped is oneLine cut to n characters, with a sign where it was cut.
func clipped(s string, n int) string {
	s = oneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// wrapped breaks s between words into lines of at most width characters. A
// word that is longer than a line is broken too, since a terminal would.
func wrapped(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	var line []rune
	flush := func() {
		lines = append(lines, string(line))
		line = line[:0]
	}
	for _, word := range strings.Fields(oneLine(s)) {
		w := []rune(word)
		if len(line) > 0 && len(line)+1+len(w) > width {
			flush()
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		for len(line)+len(w) > width {
			room := width - len(line)
			line, w = append(line, w[:room]...), w[room:]
			flush()
		}
		line = append(line, w...)
	}
	if len(line) > 0 || len(lines) == 0 {
		flush()
	}
	return lines
}

// counted is a number with its noun: 1 round, 2 rounds.
func counted(n int, noun string) string {
	s := strconv.Itoa(n)
	if n == 1 {
		return s + " " + noun
	}
	return thousands(s) + " " + noun + "s"
}

// sortedKeys are the keys of a count in an order that does not change.
func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }

// compact leaves out empty parts.
func compact(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
}
