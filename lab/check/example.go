package check

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on what a Result says in words, so that a run with a million
// violations still fits on a page.
const (
	maxExamples     = 8   // per result
	maxPerClass     = 2   // examples per class of finding
	maxMessages     = 5   // distinct messages in a merged result
	maxExampleBytes = 240 // per example
	maxValueBytes   = 48  // per key or value inside an example
)

// clip shortens s to at most limit bytes, never inside a character, and marks
// the cut.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// show writes a key or value for a reader; strings are quoted, so that an
// empty one or a control character is seen.
func show(value any) string {
	text := fmt.Sprint(value)
	if reflect.ValueOf(value).Kind() == reflect.String {
		text = strconv.Quote(text)
	}
	return clip(text, maxValueBytes)
}

// findings collects what a checker found, by class, in the order in which the
// classes were declared.
type findings struct {
	classes  []string
	count    map[string]int
	examples map[string][]string
}

func newFindings(classes ...string) *findings {
	return &findings{classes: classes, count: map[string]int{}, examples: map[string][]string{}}
}

func (f *findings) add(class, format string, args ...any) {
	f.count[class]++
	if len(f.examples[class]) < maxPerClass {
		f.examples[class] = append(f.examples[class], clip(class+": "+fmt.Sprintf(format, args...), maxExampleBytes))
	}
}

func (f *findings) empty() bool { return len(f.count) == 0 }

// summary says how many of each class there are: "2 lost, 1 torn".
func (f *findings) summary() string {
	var parts []string
	for _, class := range f.classes {
		if n := f.count[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
		}
	}
	return strings.Join(parts, ", ")
}

// list returns up to maxExamples examples, one of every class before a second
// of any, so that a flood of one class cannot hide another.
func (f *findings) list() []string {
	var all []string
	for i := range maxPerClass {
		for _, class := range f.classes {
			if ex := f.examples[class]; i < len(ex) {
				all = append(all, ex[i])
			}
		}
	}
	return all[:min(len(all), maxExamples)]
}
