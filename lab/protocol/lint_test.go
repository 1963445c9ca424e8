package protocol

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// known are the functions that the files in testdata may name.
var known = &Known{Arms: []string{"loose", "strict"}, Checks: []string{"deep"}}

func TestLintGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/lint/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			p, faults := Parse(name, read(t, file), known)
			if (p == nil) != (len(faults) > 0) {
				t.Errorf("a protocol and %d faults", len(faults))
			}
			if !slices.IsSortedFunc(faults, func(a, b Fault) int { return a.Line - b.Line }) {
				t.Error("faults are not in the order of the lines")
			}
			got := faults.Error() + "\n"
			if p != nil {
				got = "no fault\n"
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".want", got)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(read(t, file)); got != want {
		t.Errorf("%s (rewrite with -update):\n--- got\n%s--- want\n%s", file, got, want)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// base is a protocol without fault for cases that differ in one place.
const base = `assay: 1
name: exp
question: Which one?
arms:
  - {name: old, shell: ./old}
  - {name: new, shell: ./new}
factors:
  - {name: size, levels: [1, 16]}
design: {rounds: 20, warmup: 2, seed: 7}
metrics:
  - {name: wall, unit: ms, better: lower, source: wall}
  - {name: bytes, better: lower, source: json}
checks:
  - {name: same, scope: trial, shell: ./check}
primary: {metric: wall, cells: {size: 16}}
vetoes:
  - {name: grown, metric: bytes, require: ratio <= 1.2}
gates:
  - {name: small, metric: wall, cells: {size: 1}, require: ratio <= 1.1}
decision:
  outcomes:
    - {name: SHIP, class: go, when: primary.significant && primary.better && !veto.any && gate.all}
    - {name: KEEP, class: no-go}
host:
  - {probe: steal, max: 10, action: warn}
`

// edited is base with old replaced by new, which must be there once.
func edited(t testing.TB, old, new string) string {
	t.Helper()
	if strings.Count(base, old) != 1 {
		t.Fatalf("%q stands %d times in the base protocol", old, strings.Count(base, old))
	}
	return strings.Replace(base, old, new, 1)
}

func TestBaseHasNoFault(t *testing.T) {
	if _, faults := Parse("base.yaml", []byte(base), known); len(faults) > 0 {
		t.Fatal(faults)
	}
}

// One mistake is one fault, and its caret stands where ^ stands in the edit.
func TestOneMistakeIsOneFault(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.want, func(t *testing.T) {
			src := edited(t, c.old, c.new)
			at := strings.Index(src, "^")
			if at < 0 || strings.Count(src, "^") != 1 {
				t.Fatal("the edit must mark one place with ^")
			}
			line := strings.Count(src[:at], "\n") + 1
			column := len([]rune(src[strings.LastIndex(src[:at], "\n")+1:at])) + 1
			src = strings.Replace(src, "^", "", 1)
			p, faults := Parse("exp.yaml", []byte(src), known)
			if p != nil || len(faults) != 1 {
				t.Fatalf("%d faults in:\n%s\n%v", len(faults), c.new, faults)
			}
			f := faults[0]
			if !strings.Contains(f.Message, c.want) {
				t.Errorf("message %q lacks %q", f.Message, c.want)
			}
			if f.Line != line || f.Column != column {
				t.Errorf("at %d:%d, want %d:%d\n%v", f.Line, f.Column, line, column, f)
			}
		})
	}
}

// mistakes in the order of the keys of a protocol. old is replaced by new in
// base; ^ marks where the caret must be.
var mistakes = []struct{ old, new, want string }{
	// The top.
	{"assay: 1\n", "^", `missing key "assay": Version of this file format; 1.`},
	{"assay: 1", "assay: ^2", "version 2 of the protocol format; this program reads version 1"},
	{"assay: 1", "assay: ^0", "version 0 of the protocol format"},
	{"assay: 1", "assay: ^one", `expected a whole number in plain digits, found the text "one"`},
	{"assay: 1", "assay: ^1.0", "expected a whole number in plain digits, found 1.0"},
	{"name: exp", `name: ^"a b"`, `"a b" is not a name`},
	{"name: exp", "^name:", "no value; give one or remove the key"},
	{"name: exp", `name: ^""`, "no value"},
	{"name: exp", "name: ^[exp]", "expected text, found a list"},
	{"name: exp", "name: ^{a: b}", "expected text, found a mapping"},
	{"question: Which one?", `question: ^"  "`, "no value"},
	{"question: Which one?", "^queston: Which one?", `unknown key "queston"; did you mean "question"?`},
	{"question: Which one?", "question: Which one?\n^colour: red", `unknown key "colour"; keys here: arms assay`},
	{"question: Which one?", "question: Which one?\n^question: That one?", `duplicate key "question"`},
	{"question: Which one?", "question: Which one?\nhypotheses: ^faster", `expected a list, found the text "faster"`},
	{"question: Which one?", "question: Which one?\nhypotheses: [faster, ^{a: b}]", "expected text, found a mapping"},
	{"question: Which one?", "question: Which one?\ninputs: [a, ^.]", `"." is not a file`},
	{"question: Which one?", "question: Which one?\ninputs: [^'']", `"" is not a file`},

	// Arms.
	{"arms:\n  - {name: old, shell: ./old}\n  - {name: new, shell: ./new}", "^arms: []", "no arm; a comparison needs a reference"},
	{"arms:\n  - {name: old, shell: ./old}\n  - {name: new, shell: ./new}", "^arms:\n  - {name: old, shell: ./old}", "one arm; a comparison needs a reference"},
	{"arms:\n  - {name: old, shell: ./old}\n  - {name: new, shell: ./new}", "^arms:", "no value"},
	{"arms:\n  - {name: old, shell: ./old}\n  - {name: new, shell: ./new}", "arms: ^2", "expected a list, found 2"},
	{"arms:\n  - {name: old, shell: ./old}\n  - {name: new, shell: ./new}", "arms:\n  ^old: ./old\n  new: ./new", "expected a list, found a mapping"},
	{"  - {name: new, shell: ./new}", "  - ^new", `expected a mapping (key: value), found the text "new"`},
	{"  - {name: new, shell: ./new}", "  - {name: new, shell: ./new}\n  -^ ", "no value"},
	{"{name: new, shell: ./new}", "{name: ^old, shell: ./new}", `arm "old" stands twice; the first is at line 5`},
	{"{name: new, shell: ./new}", "{^name: , shell: ./new}", "no value"},
	{"{name: new, shell: ./new}", "{name: ^new/er, shell: ./new}", `"new/er" is not a name`},
	{"{name: new, shell: ./new}", "^{name: new}", `arm "new" executes nothing; give it one of command, shell, func`},
	{"{name: new, shell: ./new}", "^{name: new, shell: ./new, command: [./new]}", "more than one of command, shell, func"},
	{"{name: new, shell: ./new}", "{name: new, ^shel: ./new}", `unknown key "shel"; did you mean "shell"?`},
	{"{name: new, shell: ./new}", "{name: new, shell: ^./new\t--fast}", "a tab in plain text would be lost"},
	{"  - {name: new, shell: ./new}", "  - name: new\n    shell: ^|\n      \t./new\n      # why\n      ./old", "the block of text begins with a tab"},
	{"{name: new, shell: ./new}", `{name: new, shell: ^"./new\0"}`, "control character U+0000 in the value; remove it"},
	{"{name: new, shell: ./new}", `{name: new, shell: ^"./new \e[31m"}`, "control character U+001B in the value; remove it"},
	{"{name: new, shell: ./new}", `{name: new, shell: ./new, env: {^"A\e": x}}`, "control character in the key"},
	{"{name: new, shell: ./new}", "{name: new, command: ^./new}", "expected a list"},
	{"{name: new, shell: ./new}", "{name: new, command: [^[./new]]}", "expected text, found a list"},
	{"{name: new, shell: ./new}", "{name: new, command: [^'']}", "the program's name is empty"},
	{"{name: new, shell: ./new}", "{name: new, command: [./new, ^'${NOPE}']}", "unknown variable ${NOPE}"},
	{"{name: new, shell: ./new}", "{name: new, command: [./new, ^'${ASSAY_FACTOR_KEYS}']}", "unknown variable ${ASSAY_FACTOR_KEYS}"},
	{"{name: new, shell: ./new}", "{name: new, func: ^lose}", `this program has no arm function "lose"; did you mean "loose"?`},
	{"{name: new, shell: ./new}", "{name: new, func: ^nothing}", `no arm function "nothing"; there are loose, strict`},
	{"{name: new, shell: ./new}", "{name: new, func: loose, rev: ^main}", "cannot be taken from a revision"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, rev: ^--all}", `"--all" is not a git revision`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, rev: ^a b}", `"a b" is not a git revision`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, env: {ASSAY_ARM: ^x}}", `"ASSAY_ARM" cannot be set`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, env: {A-B: ^x}}", `"A-B" cannot be set`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, env: {A: ^[x]}}", "expected text, found a list"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, env: {A: x, ^A: y}}", `duplicate key "A"`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, env: ^[A]}", "expected a mapping (key: value), found a list"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, timeout: ^30}", `"30" is not a duration`},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, timeout: ^0s}", "a duration must be more than zero"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, timeout: ^-5s}", "a duration must be more than zero"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, timeout: ^99999999h}", "is not a duration"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, timeout: ^{s: 5}}", "expected a duration such as 30s, found a mapping"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, ok_exit: [0, ^256]}", "256 is not an exit status"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, ok_exit: [^-1]}", "-1 is not an exit status"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, ^ok_exit: []}", "no exit status would be a success"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, ok_exit: ^0}", "expected a list, found 0"},
	{"{name: new, shell: ./new}", "{name: new, shell: ./new, class: ^stress}", `class is "stress"; expected one of compared, reported`},
	{"{name: old, shell: ./old}", "{name: old, shell: ./old, class: ^reported}", "the first arm is the reference and cannot be merely reported"},

	// Factors and cells.
	{"{name: size, levels: [1, 16]}", "{name: ^Size, levels: [1, 16]}", `"Size" is not a factor name`},
	{"  - {name: size, levels: [1, 16]}", "  - {name: size, levels: [1, 16]}\n  - {name: ^size, levels: [a]}", `factor "size" stands twice; the first is at line 8`},
	{"{name: size, levels: [1, 16]}", "^{name: size, levels: []}", `factor "size" has no levels`},
	{"{name: size, levels: [1, 16]}", "{name: size, ^levels: }", "no value"},
	{"{name: size, levels: [1, 16]}", "^{name: size}", `missing key "levels"`},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: ^16}", "expected a list, found 16"},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16, ^a b]}", `"a b" is not a level`},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16, ^'16']}", `level "16" stands twice`},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16, ^{a: b}]}", "expected text, found a mapping"},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16, ^.nan]}", "expected text, found .nan"},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16, ^~]}", "no value"},
	{"design: {", "exclude: [{siz: ^1}]\ndesign: {", `unknown factor "siz"; did you mean "size"?`},
	{"design: {", "exclude: [{size: ^2}]\ndesign: {", `factor size has no level "2"`},
	{"design: {", "exclude: [{size: [1, ^2]}]\ndesign: {", `factor size has no level "2"`},
	{"design: {", "exclude: [{^size: []}]\ndesign: {", "no level given"},
	{"design: {", "exclude: [{size: ^{a: 1}}]\ndesign: {", "expected text, found a mapping"},
	{"design: {", "^exclude: [{}]\ndesign: {", "every cell is left out; nothing would run"},
	{"design: {", "^exclude: [{size: [1, 16]}]\ndesign: {", "every cell is left out; nothing would run"},
	{"design: {", "overrides: [^{rounds: 5}]\ndesign: {", `missing key "cells"`},
	{"design: {", "overrides: [^{cells: {size: 1}}]\ndesign: {", "changes nothing; give it one of rounds, warmup, timeout, class"},
	{"design: {", "overrides: [{cells: {size: 1}, rounds: ^0}]\ndesign: {", "0 rounds; exclude leaves cells out"},
	{"design: {", "overrides: [{cells: {size: 1}, rounds: ^-1}]\ndesign: {", "-1 rounds; give 1 to 100000"},
	{"design: {", "overrides: [{cells: {size: 1}, rounds: ^100001}]\ndesign: {", "100001 rounds; give 1 to 100000"},
	{"design: {", "overrides: [{cells: {size: 1}, warmup: ^-1}]\ndesign: {", "-1 warm-up rounds; give 0 to 100000"},
	{"design: {", "overrides: [{cells: {size: [1, ^2]}, rounds: 5}]\ndesign: {", `factor size has no level "2"; there are 1, 16`},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16]}\n  - {name: n, levels: [a, b]}\nexclude: [{size: 1, n: a}]\noverrides: [{^cells: {size: 1, n: a}, rounds: 5}]", "selects no cell that runs"},
	{"{name: size, levels: [1, 16]}", "{name: size, levels: [1, 16]}\n  - {name: n, levels: [a, b]}\noverrides: [{cells: {size: 16}, class: ^stres}]", `class is "stres"; expected one of gated, stress; did you mean "stress"?`},

	// Design.
	{"design: {rounds: 20,", "design: ^{", `missing key "rounds": Measured rounds per cell; fixed before data.`},
	{"design: {rounds: 20, warmup: 2, seed: 7}", "design: ^20", "expected a mapping (key: value), found 20"},
	{"design: {rounds: 20, warmup: 2, seed: 7}", "^design:", "no value"},
	{"design: {rounds: 20, warmup: 2, seed: 7}", "design:\n  ^<<: {rounds: 20}", "anchors, aliases and merge keys are not allowed"},
	{"rounds: 20", "rounds: ^0", "0 rounds; give 1 to 100000"},
	{"rounds: 20", "rounds: ^-5", "-5 rounds; give 1 to 100000"},
	{"rounds: 20", "rounds: ^1000000", "1000000 rounds; give 1 to 100000"},
	{"rounds: 20", "rounds: ^99999999999999999999", "is out of range; the largest is 2147483647"},
	{"levels: [1, 16]}\ndesign: {rounds: 20, warmup: 2, seed: 7}", "levels: [1, 16, 2, 3, 4, 5]}\ndesign: {rounds: ^100000, warmup: 2, seed: 7}", "1200024 trials in all cells, rounds and arms; a run has at most 1000000"},
	{"rounds: 20", "rounds: ^20.5", "expected a whole number in plain digits, found 20.5"},
	{"rounds: 20", "rounds: ^020", "expected a whole number in plain digits, found 020"},
	{"rounds: 20", "rounds: ^2_0", "expected a whole number in plain digits, found 2_0"},
	{"rounds: 20", "rounds: ^0x14", "expected a whole number in plain digits, found 0x14"},
	{"rounds: 20", `rounds: ^"20"`, `expected a whole number in plain digits, found the text "20"`},
	{"rounds: 20", "rounds: ^true", "expected a whole number in plain digits, found true"},
	{"rounds: 20", "rounds: ^[20]", "expected a whole number in plain digits, found a list"},
	{"rounds: 20", "^rounds: ~", "no value"},
	{"rounds: 20", "rounds: ^.inf", "expected a whole number in plain digits, found .inf"},
	{"warmup: 2", "warmup: ^-1", "-1 warm-up rounds; give 0 to 100000"},
	{"seed: 7", "seed: ^-7", "expected a whole number of 0 or more in plain digits, found -7"},
	{"seed: 7", "seed: ^18446744073709551616", "is out of range; the largest is 18446744073709551615"},
	{"seed: 7", "seed: ^7.5", "expected a whole number of 0 or more"},
	{"seed: 7", "seed: ^soon", "expected a whole number of 0 or more"},
	{"seed: 7", "seed: 7, isolation: ^thread", `isolation is "thread"; expected one of process, shared`},
	{"seed: 7", "seed: 7, stop: ^early", `stop is "early"; expected one of fixed`},
	{"seed: 7", "seed: 7, scratch: ^dsk", `did you mean "disk"?`},
	{"seed: 7", "seed: 7, scratch_gib: ^-1", "a ceiling must be 0 (none) or more"},

	// Metrics.
	{"{name: bytes, better: lower, source: json}", "{name: ^wall, better: lower, source: json}", `metric "wall" stands twice; the first is at line 11`},
	{"{name: bytes, better: lower, source: json}", "{name: ^Bytes, better: lower, source: json}", `"Bytes" is not a metric name`},
	{"{name: bytes, better: lower, source: json}", "^{better: lower, source: json}", `missing key "name"`},
	{"{name: bytes, better: lower, source: json}", "^{name: bytes, source: json}", `missing key "better": Which direction is an improvement.`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: ^smaller, source: json}", `better is "smaller"; expected one of lower, higher`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, ^beter: lower, source: json}", `unknown key "beter"; did you mean "better"?`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: ^jsn}", `did you mean "json"?`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: ^''}", "no value"},
	{"{name: bytes, better: lower, source: json}", "^{name: bytes, better: lower, source: samples}", "say which quantile of them is a trial's value"},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: samples, quantile: ^1.5}", "1.5 is not a quantile; give 0 (least) to 1 (greatest)"},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: samples, quantile: ^-0.1}", "-0.1 is not a quantile"},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: samples, quantile: ^.nan}", "expected a number, found .nan"},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: samples, quantile: ^p99}", "expected a number, found the text \"p99\""},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: samples, ^quantil: 0.99}", `unknown key "quantil"; did you mean "quantile"?`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: json, quantile: ^0.5}", `only samples have a quantile; "bytes" reads json`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: json, count: ^yes}", `expected true or false, found the text "yes"`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: json, count: ^1}", "expected true or false, found 1"},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: cpu, unit: ^min}", `"min" is no unit of cpu; use one of ms ns s us µs`},
	{"{name: bytes, better: lower, source: json}", "{name: bytes, better: lower, source: peak_memory, unit: ^MB}", `"MB" is no unit of peak_memory; use one of B GiB KiB MiB`},
	{"{name: bytes, better: lower, source: json}", "^{name: bytes, better: lower, source: gobench}", "unit says which figure of the line, for instance ns/op"},
	{"metrics:\n  - {name: wall, unit: ms, better: lower, source: wall}\n  - {name: bytes, better: lower, source: json}", "^metrics: []", "no metric; give at least the one that the primary comparison is about"},
	{"metrics:\n", "^metric:\n", `unknown key "metric"; did you mean "metrics"?`},

	// Checks.
	{"{name: same, scope: trial, shell: ./check}", "{name: ^Same, scope: trial, shell: ./check}", `"Same" is not a check name`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, shell: ./check}\n  - {name: ^same, scope: run, shell: ./check}", `check "same" stands twice`},
	{"{name: same, scope: trial, shell: ./check}", "^{name: same, scope: trial}", `check "same" has no judge`},
	{"{name: same, scope: trial, shell: ./check}", "^{name: same, scope: trial, shell: ./check, reported: true}", `check "same" has more than one of`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, command: [^'', x]}", "the program's name is empty"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, func: ^dep}", `this program has no check function "dep"; did you mean "deep"?`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: ^always, shell: ./check}", `scope is "always"; expected one of trial, round, cell, run`},
	{"{name: same, scope: trial, shell: ./check}", "^{name: same, shell: ./check}", `missing key "scope"`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: ^run, reported: true}", "an arm reports on its own trial; scope must be trial"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, reported: ^pass}", "expected true or false"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: run, ^arms: [new], shell: ./check}", "only a check of scope trial belongs to single arms"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, arms: [old, ^newer], shell: ./check}", `unknown arm "newer"; did you mean "new"?`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, cells: {size: ^2}, shell: ./check}", `factor size has no level "2"; there are 1, 16`},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, operations: ^0, shell: ./check}", "a check that may look at nothing passes on nothing"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, operations: ^-1, shell: ./check}", "a check that may look at nothing passes on nothing"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, operations: ^many, shell: ./check}", "expected a whole number"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, kinds: [read, ^''], shell: ./check}", "an empty name"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, faults: [^' '], shell: ./check}", "an empty name"},
	{"{name: same, scope: trial, shell: ./check}", "{name: same, scope: trial, ^shell: , timeout: 5s}", "no value"},

	// The primary comparison.
	{"primary: {metric: wall, cells: {size: 16}}", "primary: ^wall", "expected a mapping (key: value)"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: ^{cells: {size: 16}}", `missing key "metric"`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: ^wal}", `unknown metric "wal"; did you mean "wall"?`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: ^[wall]}", "expected text, found a list"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, treatment: ^nw}", `unknown arm "nw"; did you mean "new"?`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, treatment: ^old}", `"old" is the reference itself`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, cells: {sise: ^16}}", `unknown factor "sise"; did you mean "size"?`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, cells: ^16}", "expected a mapping (key: value), found 16"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, test: ^t}", `test is "t"; expected one of paired, welch, mann-whitney`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^0}", "alpha is 0: nothing would ever be significant"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^-0.05}", "alpha is -0.05; give a value between 1e-12 and 0.2"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^5}", "alpha is 5; give a value between"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^0.99}", "alpha is 0.99; give a value between"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^1e-300}", "alpha is 1e-300; give a value between"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^1e-400}", "alpha is 0: nothing would ever be significant"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^1e400}", "is out of range"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^.inf}", "expected a number, found .inf"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^5%}", `expected a number, found the text "5%"`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, alpha: ^'0.05'}", `expected a number, found the text "0.05"`},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, ^floor: {d: 0.9, dz: 0.5}}", "a floor has one scale; keep one of d, dz, change"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, ^floor: {change: -0.1}}", "a floor is a size without sign"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, floor: {d: ^0}}", "a floor of 0 is none"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, floor: {d: ^.inf}}", "expected a number"},
	{"primary: {metric: wall, cells: {size: 16}}", "primary: {metric: wall, floor: ^0.8}", "expected a mapping (key: value), found 0.8"},
	{"primary: {metric: wall, cells: {size: 16}}", "overrides: [{cells: {size: 16}, class: stress}]\n^primary: {metric: wall, cells: {size: 16}}", "no cell is left for the primary comparison: all it selects are stress cells"},

	// Vetoes and gates.
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: ^any, metric: bytes, require: ratio <= 1.2}", `"any" is not a rule name`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: ^all, metric: bytes, require: ratio <= 1.2}", `"all" is not a rule name`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, require: ratio <= 1.2}\n  - {name: ^grown, metric: bytes, require: ratio <= 1.3}", `veto "grown" stands twice; the first is at line 17`},
	{"{name: small, metric: wall, cells: {size: 1}, require: ratio <= 1.1}", "{name: small, metric: wall, require: ratio <= 1.1}\n  - {name: ^small, metric: wall, require: ratio <= 1.2}", `gate "small" stands twice; the first is at line 19`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: ^byts, require: ratio <= 1.2}", `unknown metric "byts"; did you mean "bytes"?`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, arm: ^newest, require: ratio <= 1.2}", `unknown arm "newest"; there are old, new`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, arm: ^old, require: ratio <= 1.2}", `"old" is the reference itself`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, cells: {size: [1, ^17]}, require: ratio <= 1.2}", `factor size has no level "17"`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, statistic: ^pooled, require: ratio <= 1.2}", `only samples can be pooled; "bytes" reads json`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, statistic: ^maximum, require: p < 0.05}", `statistic is "maximum"; expected one of`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "^{name: grown, metric: bytes}", `missing key "require"`},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, require: ^''}", "no value"},
	{"{name: grown, metric: bytes, require: ratio <= 1.2}", "{name: grown, metric: bytes, class: ^soft, require: ratio <= 1.2}", `class is "soft"; expected one of gated, stress`},
	{"gates:\n  - {", "overrides: [{cells: {size: 1}, class: stress}]\ngates:\n  - ^{", `gate "small" is judged nowhere: all the cells it selects are stress cells`},

	// Conditions of rules. The caret is inside the condition.
	{"ratio <= 1.2", "^ratoi <= 1.2", `unknown name "ratoi"; did you mean "ratio"?`},
	{"ratio <= 1.2", "ratio <= 1.2 && ^speed > 1", `unknown name "speed"; known here: better change d diff`},
	{"ratio <= 1.2", `"ratio <= 1.2 && ^speed > 1"`, `unknown name "speed"`},
	{"ratio <= 1.2", `'ratio <= 1.2 && ^speed > 1'`, `unknown name "speed"`},
	{"ratio <= 1.2", "1.2 >= ^primary.p", `unknown name "primary.p"; known here: better change`},
	{"ratio <= 1.2", "^ratio", "the condition is a number; compare it with something"},
	{"ratio <= 1.2", "^1 < 2", "the condition consults no result; it would be the same for every run"},
	{"ratio <= 1.2", "^true", "the condition consults no result"},
	{"ratio <= 1.2", "ratio <= 1.2 || ^1", "|| wants a truth here, and this is a number"},
	{"ratio <= 1.2", "ratio <= ^better", "<= wants a number here, and this is a truth"},
	{"ratio <= 1.2", "'!^ratio'", "! wants a truth here, and this is a number"},
	{"ratio <= 1.2", "-^better < 1", "- wants a number here, and this is a truth"},
	{"ratio <= 1.2", "better == ^1", "== wants a truth here, and this is a number"},
	{"ratio <= 1.2", "abs(^better) < 1", "abs wants a number here, and this is a truth"},
	{"ratio <= 1.2", "better ? worse : ^1", "?: wants a truth here, and this is a number"},
	{"ratio <= 1.2", "^ratio ? better : worse", "?: wants a truth here, and this is a number"},
	{"ratio <= 1.2", "ratio ^= 1.2", `unexpected token Operator("=")`},
	{"ratio <= 1.2", "ratio ^in 1..2", `"in" is not allowed: a condition has names, numbers`},
	{"ratio <= 1.2", "(ratio ^?? 1) > 1", `"??" is not allowed`},
	{"ratio <= 1.2", "ratio ^** 2 < 2", `"**" is not allowed`},
	{"ratio <= 1.2", "^now() > ratio", "not allowed: a condition has names"},
	{"ratio <= 1.2", "^len(ratio) > 1", `"len" is not allowed`},
	{"ratio <= 1.2", "^ratio() > 1", "not allowed: a condition has names"},
	{"ratio <= 1.2", "^min() < ratio", "not enough arguments to call min"},
	{"ratio <= 1.2", "let x = ratio^; x < 1", `";" is not allowed`},
	{"ratio <= 1.2", "ratio <= 1.2 ^// 1", `"//" is not allowed`},
	{"ratio <= 1.2", "ratio <= 1.2 ^/* 1 */", `"/*" is not allowed`},
	{"ratio <= 1.2", "ratio <= ^'1.2'", `"'" is not allowed`},
	{"ratio <= 1.2", "treat / ^0 <= 1.2", "division by zero"},
	{"ratio <= 1.2", "treat / (^1 - 1) <= 1.2", "division by zero"},
	{"ratio <= 1.2", "ratio <= 1.2 ^é", `"é" is not allowed`},
	{"require: ratio <= 1.2", "statistic: max, require: ^p < 0.05", `unknown name "p"`},
	{"require: ratio <= 1.2", "statistic: median, require: ^ratio_high < 2", `unknown name "ratio_high"`},
	{"ratio <= 1.2", "^primary < 1", `unknown name "primary"`},

	// Conditions that decide nothing.
	{"ratio <= 1.2", "^ratio <= 1.2 || true", "holds whatever is measured"},
	{"ratio <= 1.2", "^ratio <= 1.2 || ratio > 1.2", "holds whatever is measured"},
	{"ratio <= 1.2", "^ratio <= 1.2 || ratio >= 1", "holds whatever is measured"},
	{"ratio <= 1.2", "^p < 1", "holds whatever is measured"},
	{"ratio <= 1.2", "^p >= 0", "holds whatever is measured"},
	{"ratio <= 1.2", "^n > 0", "holds whatever is measured"},
	{"ratio <= 1.2", "^n == 20", "holds whatever is measured"},
	{"ratio <= 1.2", "^better || !better", "holds whatever is measured"},
	{"ratio <= 1.2", "^'!(better && worse)'", "holds whatever is measured"},
	{"ratio <= 1.2", "^treat <= ref || treat > ref || true", "holds whatever is measured"},
	{"ratio <= 1.2", "^better == better", "holds whatever is measured"},
	{"ratio <= 1.2", "^ratio <= 1.2 && false", "never holds"},
	{"ratio <= 1.2", "^ratio < 1 && ratio > 2", "never holds"},
	{"ratio <= 1.2", "^n >= 30", "never holds"},
	{"ratio <= 1.2", "^p > 1", "never holds"},
	{"ratio <= 1.2", "^better && worse", "never holds"},

	// The decision.
	{"decision:\n", "^decison:\n", `unknown key "decison"; did you mean "decision"?`},
	{ownRule, "^decision:", "no value"},
	{ownRule, "^decision: {}", "no rule; give preset: four-branch, or a list of outcomes"},
	{ownRule, "decision: ^four-branch", "expected a mapping (key: value)"},
	{ownRule, "^decision: {outcomes: []}", "no rule; give preset"},
	{ownRule, "decision: {outcomes: ^SHIP}", "expected a list"},
	{ownRule, "decision: {preset: ^five-branch}", `preset is "five-branch"; expected one of four-branch`},
	{ownRule, "^decision: {preset: four-branch, outcomes: [{name: KEEP, class: no-go}]}", "give a preset or outcomes, not both"},
	{"decision:\n", "decision:\n  caveat: ^effect.bytes.ratio < 1\n", "only the preset four-branch has a caveat"},
	{"{name: KEEP, class: no-go}", "{name: ^SHIP, class: no-go}", `outcome "SHIP" stands twice; the first is at line 22`},
	{"{name: KEEP, class: no-go}", "{name: ^ABORT, class: no-go}", `"ABORT" is an outcome that assay itself decides`},
	{"{name: KEEP, class: no-go}", "{name: ^vetoed, class: no-go}", `"vetoed" is an outcome that assay itself decides`},
	{"{name: KEEP, class: no-go}", `{name: ^"KEEP\tIT", class: no-go}`, "is not an outcome's name"},
	{"{name: KEEP, class: no-go}", "{name: KEEP, class: ^go}", "the last outcome is the default and may not be go"},
	{"{name: KEEP, class: no-go}", "{name: KEEP, class: ^nogo}", `class is "nogo"; expected one of go, no-go, inconclusive, invalid; did you mean "no-go"?`},
	{"{name: KEEP, class: no-go}", "^{name: KEEP}", `missing key "class"`},
	{"{name: KEEP, class: no-go}", "^{class: no-go}", `missing key "name"`},
	{"{name: KEEP, class: no-go}", "{name: KEEP, class: no-go, when: ^primary.worse}", "the last outcome is the default and has no condition; add one after it"},
	{"{name: KEEP, class: no-go}", "^{name: LOOK, class: inconclusive}\n    - {name: KEEP, class: no-go}", `outcome "LOOK" has no condition; only the last may have none`},
	{"gate.all}", "gate.all && ^gate.big}", `unknown name "gate.big"; known here: gate.all gate.small`},
	{"gate.all}", "gate.all && ^gate.smal}", `unknown name "gate.smal"; did you mean "gate.small"?`},
	{"gate.all}", "gate.all && ^veto.groan}", `unknown name "veto.groan"; did you mean "veto.grown"?`},
	{"gate.all}", "gate.all && ^effect.byte.ratio < 1}", `unknown name "effect.byte.ratio"; did you mean "effect.bytes.ratio"?`},
	{"gate.all}", "gate.all && ^primary.q < 1}", `unknown name "primary.q"; did you mean "primary.d"?`},
	{"gate.all}", "gate.all && ^p < 0.05}", `unknown name "p"`},
	{"gate.all}", "gate.all && ^check.same}", `unknown name "check.same"`},
	{"gate.all}", "gate.all && primary.significant == ^1}", "== wants a truth here"},
	{"when: primary.significant && primary.better && !veto.any && gate.all", `when: "gate.all && primary^['p'] < 1"`, `"[" is not allowed`},
	{"when: primary.significant && primary.better && !veto.any && gate.all", `when: 'gate.all && primary^["p" + ""] < 1'`, `"[" is not allowed`},
	{"gate.all}", "gate.all && ^primary?.p < 0.01}", "not allowed: a condition has names"},
	{"when: primary.significant && primary.better && !veto.any && gate.all", `when: primary.significant && gate.all && ^"a" + "b" == "ab"`, `"\"" is not allowed`},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || !gate.all", "holds whatever is measured"},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all && primary.n > 30", "never holds"},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all && primary.alpha > 0.05", "never holds"},
	{"{name: KEEP, class: no-go}", "{name: OVER, class: no-go, when: ^primary.p > 1}\n    - {name: KEEP, class: no-go}", "never holds"},

	{"{name: KEEP, class: no-go}", "{name: STOP, class: no-go, when: ^primary.better && primary.significant && gate.all && !veto.any && primary.p < 0.01}\n    - {name: KEEP, class: no-go}", `outcome "STOP" is never reached: wherever it holds, one above it holds too`},
	{"{name: small, metric: wall, cells: {size: 1}, require: ratio <= 1.1}\ndecision:\n  outcomes:\n    - {name: SHIP, class: go, when: primary.significant && primary.better && !veto.any && gate.all}", "{name: ^small, metric: wall, cells: {size: 1}, require: ratio <= 1.1}\ndecision:\n  outcomes:\n    - {name: SHIP, class: go, when: primary.significant && primary.better && (gate.all || gate.all == false)}", `gate "small" changes no outcome, although one names it`},

	// A go that needs nothing to be shown.
	{"primary.significant && primary.better && !veto.any && gate.all", "^primary.n > 5 && !veto.any || gate.all", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^primary.better || gate.all", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^primary.better && primary.meets_floor && !veto.any || gate.all", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || primary.p > 0.05", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || primary.p < 0.1", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || primary.p < 1", "holds whatever is measured"},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || primary.ratio <= 0.9", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^'!(primary.significant && primary.worse) || gate.all'", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^'!gate.all'", nothingShown},
	{"primary.significant && primary.better && !veto.any && gate.all", "^gate.all || (effect.bytes.ratio < 1 ? primary.better : primary.meets_floor)", nothingShown},
	{"    - {name: KEEP, class: no-go}", "    - {name: STOP, class: no-go, when: primary.significant && primary.worse}\n    - {name: SLIP, class: go, when: ^primary.better}\n    - {name: KEEP, class: no-go}", nothingShown},

	// Host limits.
	{"{probe: steal, max: 10, action: warn}", "{probe: ^stael, max: 10, action: warn}", `unknown probe "stael"; did you mean "steal"?`},
	{"{probe: steal, max: 10, action: warn}", "{probe: ^magic, max: 10, action: warn}", `unknown probe "magic"; there are load_per_cpu, foreign_cpu`},
	{"{probe: steal, max: 10, action: warn}", "^{probe: steal, action: warn}", "a limit needs max or min"},
	{"{probe: steal, max: 10, action: warn}", "^{probe: steal, min: 11, max: 10, action: warn}", "max 10 is below min 11: nothing would be allowed"},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, max: ^ten, action: warn}", "expected a number"},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, max: ^.inf, action: warn}", "expected a number, found .inf"},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, ^mx: 10, action: warn}", `unknown key "mx"; did you mean "max"?`},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, max: 10, action: ^stop}", `action is "stop"; expected one of block, warn, provisional`},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, max: 10, action: ^allow}", `action is "allow"; expected one of block, warn, provisional`},
	{"{probe: steal, max: 10, action: warn}", "^{probe: steal, max: 10}", `missing key "action"`},
	{"{probe: steal, max: 10, action: warn}", "{probe: steal, max: 10, action: warn, unavailable: ^ignore}", `unavailable is "ignore"; expected one of`},
}

const ownRule = `decision:
  outcomes:
    - {name: SHIP, class: go, when: primary.significant && primary.better && !veto.any && gate.all}
    - {name: KEEP, class: no-go}`

const nothingShown = "go would be reached with nothing shown"
