package protocol

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one thing wrong with a protocol file.
type Fault struct {
	File    string
	Line    int // 1-based; 0 where the fault has no place
	Column  int // 1-based
	Path    string
	Message string // what is wrong and what to do
	source  string // the line itself
}

// Error is the fault as file:line:col, the source line and a caret.
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s", f.File, max(f.Line, 1), max(f.Column, 1), f.Message)
	if f.source == "" {
		return b.String()
	}
	// The excerpt is cut around the caret, so that a long line stays readable.
	const width = 68
	line, col := []rune(printable(f.source)), max(f.Column, 1)
	start := 0
	if col > width {
		start = col - width/2
	}
	end := min(len(line), start+width)
	if start > len(line) {
		start = len(line)
	}
	num := fmt.Sprint(f.Line)
	fmt.Fprintf(&b, "\n  %s | %s", num, string(line[start:end]))
	fmt.Fprintf(&b, "\n  %s | %s^", strings.Repeat(" ", len(num)), strings.Repeat(" ", max(col-1-start, 0)))
	return b.String()
}

// Faults is everything wrong with a protocol file, in the order of its lines.
type Faults []Fault

func (fs Faults) Error() string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = f.Error()
	}
	return strings.Join(parts, "\n")
}

func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.CompactFunc(fs, func(a, b Fault) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
}

// printable is the text as one line that a terminal shows as it is, each
// character one column wide.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t' || c == '\n':
			return ' '
		case !unicode.IsPrint(c) && c != '\u00a0':
			return utf8.RuneError
		}
		return c
	}, s)
}

// maxCandidates bounds how many names are compared with a misspelt one.
const maxCandidates = 5000

// nearest is the candidate most like the word, "" if none is close enough to
// be what was meant.
func nearest(word string, candidates []string) string {
	best, bestDist := "", 3
	if len(word) <= 4 {
		bestDist = 2
	}
	if len(candidates) > maxCandidates {
		return best
	}
	for _, c := range candidates {
		if len(c)-len(word) >= bestDist || len(word)-len(c) >= bestDist {
			continue
		}
		if d := editDistance(word, c); d < bestDist && d < len(word) {
			best, bestDist = c, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diag+cost)
			diag, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

func didYouMean(word string, candidates []string) string {
	if n := nearest(word, candidates); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}
