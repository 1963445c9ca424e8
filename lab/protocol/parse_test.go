package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// load parses a file that must be without fault.
func load(t testing.TB, file string) *Protocol {
	t.Helper()
	return parse(t, string(read(t, file)))
}

func parse(t testing.TB, src string) *Protocol {
	t.Helper()
	p, faults := Parse("exp.yaml", []byte(src), known)
	if len(faults) > 0 {
		t.Fatalf("%v\nin:\n%s", faults, src)
	}
	return p
}

func TestFullHasNoFault(t *testing.T) {
	p := load(t, "testdata/full.yaml")
	if why := p.Infeasible(); len(why) > 0 {
		t.Error(why)
	}
}

// What an editor or a version control system does to a file unasked must not
// make it another protocol.
func TestSameProtocolInAnotherDress(t *testing.T) {
	full := string(read(t, "testdata/full.yaml"))
	want := parse(t, full).Canonical()
	var tree any
	if err := yaml.Unmarshal([]byte(full), &tree); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.MarshalIndent(tree, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]string{
		"byte order mark":   "\ufeff" + full,
		"Windows line ends": strings.ReplaceAll(full, "\n", "\r\n"),
		"both":              "\ufeff" + strings.ReplaceAll(full, "\n", "\r\n"),
		"no comments":       regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(full, ""),
		"more comments":     strings.ReplaceAll(full, "\n", " # why\n"),
		"document marks":    "---\n" + full + "...\n",
		"sorted as JSON":    strings.ReplaceAll(string(asJSON), "\t", " "),
		"no last line end":  strings.TrimRight(full, "\n"),
		"reversed":          reversed(full),
	} {
		if got := parse(t, src).Canonical(); !bytes.Equal(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// reversed has the top-level keys of a file in the opposite order.
func reversed(src string) string {
	var parts []string
	for _, line := range strings.SplitAfter(src, "\n") {
		if line != "" && line[0] >= 'a' && line[0] <= 'z' {
			parts = append(parts, "")
		}
		if len(parts) > 0 {
			parts[len(parts)-1] += line
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func TestTextThatNoEditorShows(t *testing.T) {
	for _, c := range []struct {
		src          string
		line, column int
		want         string
	}{
		{"assay: 1\nname: \xffx\n", 2, 7, "not UTF-8 text; save the file as UTF-8"},
		{"assay: 1\nname: é\xc3\n", 2, 8, "not UTF-8"},
		{"\xff\xfea\x00s\x00", 1, 1, "not UTF-8"},
		{"assay: 1\nname: a\x00b\n", 2, 8, "control character U+0000; remove it"},
		{"assay: 1 # \x1b[31mred\n", 1, 12, "control character U+001B"},
		{"assay: 1\rname: exp\r", 1, 9, "control character U+000D"},
		{"assay: 1\nname: \u0085\n", 2, 7, "control character U+0085"},
		{"assay: 1\nname: \"\x7f\"\n", 2, 8, "control character U+007F"},
	} {
		p, faults := Parse("exp.yaml", []byte(c.src), nil)
		if p != nil || len(faults) != 1 {
			t.Errorf("%q: %d faults: %v", c.src, len(faults), faults)
			continue
		}
		f := faults[0]
		if f.Line != c.line || f.Column != c.column || !strings.Contains(f.Message, c.want) {
			t.Errorf("%q: %d:%d %s; want %d:%d %s", c.src, f.Line, f.Column, f.Message, c.line, c.column, c.want)
		}
		if regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`).MatchString(f.Error()) {
			t.Errorf("%q: the message would steer the terminal: %q", c.src, f.Error())
		}
	}
}

func TestFaultExcerpt(t *testing.T) {
	long := strings.Repeat("x", 100) + "HERE" + strings.Repeat("y", 100)
	for _, c := range []struct {
		name string
		f    Fault
		want string
	}{
		{"plain", Fault{File: "f", Line: 3, Column: 2, Message: "m", source: "abc"}, "f:3:2: m\n  3 | abc\n    |  ^"},
		{"tab", Fault{File: "f", Line: 3, Column: 3, Message: "m", source: "a\tb"}, "f:3:3: m\n  3 | a b\n    |   ^"},
		{"not ASCII", Fault{File: "f", Line: 10, Column: 3, Message: "m", source: "éüx"}, "f:10:3: m\n  10 | éüx\n     |   ^"},
		{"behind the end", Fault{File: "f", Line: 1, Column: 9, Message: "m", source: "ab"}, "f:1:9: m\n  1 | ab\n    |         ^"},
		{"no place", Fault{File: "f", Message: "m"}, "f:1:1: m"},
		{"escape", Fault{File: "f", Line: 1, Column: 1, Message: "m", source: "\x1b[2J"}, "f:1:1: m\n  1 | \ufffd[2J\n    | ^"},
		{"long line", Fault{File: "f", Line: 1, Column: 101, Message: "m", source: long}, "f:1:101: m\n  1 | " + long[67:135] + "\n    | " + strings.Repeat(" ", 33) + "^"},
	} {
		if got := c.f.Error(); got != c.want {
			t.Errorf("%s:\n%q\n%q", c.name, got, c.want)
		}
	}
}

// Every file that is built to exhaust a parser ends soon, in a fault.
func TestBombs(t *testing.T) {
	if !thorough {
		t.Skip("times nothing that is worth timing under the race detector")
	}
	const size = maxFileBytes
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	stairs := func(unit string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-2000; i++ {
			b.WriteString(strings.Repeat(" ", i) + unit + "\n")
		}
		return b.String()
	}
	keys := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, src := range map[string]string{
		"two megabytes":       strings.Repeat("# x\n", 1<<19),
		"one long line":       "assay: " + strings.Repeat("x", size-10),
		"one long key":        strings.Repeat("x", size-10) + ": 1",
		"billion laughs":      laughs,
		"brackets":            strings.Repeat("[", 100_000),
		"quoted brackets":     fill(`["]",`),
		"brackets closed":     strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"braces":              fill("{a: "),
		"quoted braces":       fill(`{a: "}", b: `),
		"dashes":              fill("- "),
		"dashes on lines":     fill("-\n"),
		"question marks":      fill("? "),
		"question lines":      fill("?\n"),
		"questions and dash":  fill("? - "),
		"questions and words": fill("? a\n: b\n"),
		"stairs of keys":      stairs("a:"),
		"stairs of dashes":    stairs("-"),
		"tags":                "a: " + fill("!a "),
		"anchors":             "a: " + fill("&a "),
		"aliases":             "a: " + fill("*a "),
		"stars":               fill("*"),
		"ampersands":          fill("&"),
		"bangs":               fill("!"),
		"percents":            fill("%"),
		"bars":                fill("|\n"),
		"quotes":              fill(`"" `),
		"empty lists":         fill("[]"),
		"commas":              "[" + fill(",") + "]",
		"colons":              fill("a: "),
		"same key":            fill("a: 1\n"),
		"other keys":          keys("k%d: 1\n"),
		"merge keys":          fill("<<: *a\n"),
		"flow of keys":        "{" + keys("k%d: 1, ") + "}",
		"documents":           fill("---\na: 1\n"),
		"line ends":           fill("\n"),
		"spaces":              fill(" "),
		"tabs":                fill("\t"),
		"carriage returns":    fill("a: 1\r"),
		"open quote":          "a: \"" + fill("x\n"),
		"block":               "a: |\n" + fill("  x\n"),
		"folded":              "a: b\n" + fill("  x\n"),
		"many arms":           "arms:\n" + fill("- {a: 1}\n"),
		"many numbers":        "arms: [" + strings.Repeat("1,", 9_000) + "1]",
		"many levels":         "factors: [{name: f, levels: [" + keys("%d,")[:25_000] + "1]}]\nexclude: [{f: [" + strings.Repeat("x,", 4_000) + "x]}]",
		"many cells":          "factors: [" + keys("{name: f%d, levels: [a, b, c, d, e, f, g, h]},\n")[:10_000] + "]",
		"long condition":      edited(t, "ratio <= 1.2", strings.Repeat("(", 60_000)+"ratio"+strings.Repeat(")", 60_000)+" < 1"),
		"long negation":       edited(t, "ratio <= 1.2", "'"+strings.Repeat("!", 60_000)+"better'"),
		"long name":           edited(t, "ratio <= 1.2", strings.Repeat("x", 200_000)+" < 1"),
		"long number":         edited(t, "rounds: 20", "rounds: "+strings.Repeat("9", 200_000)),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			p, faults := Parse("bomb.yaml", []byte(src), known)
			text := faults.Error()
			// Far above what it takes, so that a busy machine fails no test, and
			// far below what the parser alone would take.
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
			if p != nil || len(faults) == 0 {
				t.Error("no fault")
			}
			if len(faults) > maxFaults+1 || len(text) > 2<<20 {
				t.Errorf("%d faults in %d bytes", len(faults), len(text))
			}
		})
	}
}

// The many rules that a protocol may have are looked at in reasonable time.
func TestLargestProtocol(t *testing.T) {
	var b strings.Builder
	b.WriteString(base[:strings.Index(base, "metrics:")])
	b.WriteString("metrics:\n")
	for i := range maxItems {
		fmt.Fprintf(&b, "- {name: m%d, better: lower, source: json}\n", i)
	}
	b.WriteString("primary: {metric: m0, cells: {size: 1}}\ngates:\n")
	for i := range maxItems {
		fmt.Fprintf(&b, "- {name: g%d, metric: m%d, require: ratio < 1.%d || p > 0.1 && diff < 3}\n", i, i, i)
	}
	b.WriteString("decision:\n  outcomes:\n")
	for i := range maxItems - 1 {
		fmt.Fprintf(&b, "  - {name: O%d, class: no-go, when: effect.m%d.ratio > 2 || effect.m%d.ratio < 1}\n", i, i, (i+1)%maxItems)
	}
	b.WriteString("  - {name: KEEP, class: no-go}\n")
	start := time.Now()
	_, faults := Parse("large.yaml", []byte(b.String()), known)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	// Only the gates that no outcome consults are wrong with it.
	if len(faults) != maxItems || !strings.Contains(faults[0].Message, "no outcome consults gate") {
		t.Errorf("%d faults: %v", len(faults), faults[:min(len(faults), 3)])
	}
}

// leaf is one value of a YAML tree.
type leaf struct {
	path string
	set  func(any)
}

// leaves are all values of the tree, mappings and lists among them.
func leaves(path string, v any, set func(any)) []leaf {
	out := []leaf{{path, set}}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			out = append(out, leaves(join(path, k), x, func(n any) { v[k] = n })...)
		}
	case []any:
		for i, x := range v {
			out = append(out, leaves(fmt.Sprintf("%s[%d]", path, i), x, func(n any) { v[i] = n })...)
		}
	}
	return out
}

func tree(t testing.TB, file string) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, b)
}

func decoded(t testing.TB, b []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A value of the wrong type at any place is a fault at that place, and never
// anything worse than a fault. The schema that editors use says the same.
func TestWrongTypeAnywhere(t *testing.T) {
	schema := compiledSchema(t)
	full := text(t, firsts(tree(t, "testdata/full.yaml")))
	sorted := func(doc any) []leaf {
		all := leaves("", doc, func(any) {})
		slices.SortFunc(all, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
		return all
	}
	kinds := []struct {
		name  string
		value any
	}{
		{"null", nil}, {"text", "some text"}, {"blank", " "}, {"list", []any{"x"}}, {"empty list", []any{}}, {"mapping", map[string]any{"x": "y"}},
		{"true", true}, {"number", json.Number("7")}, {"fraction", json.Number("1.5")},
	}
	for i, l := range sorted(decoded(t, full)) {
		if l.path == "" {
			continue
		}
		for j, kind := range kinds {
			if !thorough && (i+j)%5 != 0 {
				continue
			}
			doc := decoded(t, full)
			sorted(doc)[i].set(kind.value)
			r := &reader{file: "x", places: map[string]place{}, broken: map[string]bool{}}
			root := r.parse(string(text(t, doc)))
			if root == nil {
				t.Fatalf("%s = %s: not even YAML: %v", l.path, kind.name, r.faults)
			}
			p := &Protocol{}
			r.decode(root, "", reflect.ValueOf(p).Elem())
			form := slices.Clone(r.faults)
			if kind.name != "true" && kind.name != "number" && kind.name != "fraction" { // which are found as text is
				r.lint(p, known)
			}
			for _, f := range form {
				if !strings.HasPrefix(f.Path, l.path) || kind.name != "mapping" && len(form) > 1 {
					t.Errorf("%s = %s: %v", l.path, kind.name, form)
					break
				}
			}
			for _, f := range r.faults[len(form):] {
				if strings.HasPrefix(f.Path, l.path) && len(form) > 0 {
					t.Errorf("%s = %s: %v beside %v", l.path, kind.name, f, form)
				}
			}
			// What the schema cannot know, or what it leaves to lint.
			if strings.HasSuffix(l.path, "timeout") || kind.name == "empty list" {
				continue
			}
			if err := schema.Validate(doc); (err != nil) != (len(form) > 0) {
				t.Errorf("%s = %s: the parser says %v, the schema %v", l.path, kind.name, form, err)
			}
		}
	}
}

// firsts keeps the first entry of each list; the others have the same types.
func firsts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = firsts(x)
		}
	case []any:
		return []any{firsts(v[0])}
	}
	return v
}

// Each word of an enum is accepted where its tag says so, and no other is.
func TestEnums(t *testing.T) {
	seen := 0
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for name, f := range fieldsOf(typ) {
			ft := typ.FieldByIndex(f.index).Type
			walk(ft, path+"."+name)
			if f.enum == nil {
				continue
			}
			seen++
			for _, word := range append(slices.Clone(f.enum), "nonsense", strings.ToUpper(f.enum[0]), f.enum[0]+"x") {
				v := reflect.New(typ)
				r := &reader{file: "x", places: map[string]place{}, broken: map[string]bool{}}
				node := r.parse(name + ": " + word + "\n")
				r.decode(node, "", v.Elem())
				complaint := slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == name })
				if complaint == slices.Contains(f.enum, word) {
					t.Errorf("%s.%s: %s: %v", path, name, word, r.faults)
				}
			}
		}
	}
	walk(reflect.TypeFor[Protocol](), "")
	if seen < 15 {
		t.Errorf("only %d enums found", seen)
	}
}

// A number that readers of YAML disagree about is refused.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		src  string
		want float64
		ok   bool
	}{
		{"0.05", 0.05, true}, {"5e-2", 0.05, true}, {"5E-2", 0.05, true}, {"5.0e-2", 0.05, true}, {".05", 0.05, true}, {"+0.05", 0.05, true}, {"0.050", 0.05, true},
		{"1_0.5", 0, false}, {"0x1", 0, false}, {"010", 0, false}, {"1,5", 0, false}, {"5 %", 0, false}, {"nan", 0, false}, {"inf", 0, false}, {".NaN", 0, false}, {"-.INF", 0, false},
		{"'0.05'", 0, false}, {`"0.05"`, 0, false}, {"1e999", 0, false}, {"--1", 0, false}, {"1.2.3", 0, false}, {"1e", 0, false}, {"e5", 0, false}, {"0b1", 0, false}, {"0o7", 0, false}, {"12:30", 0, false},
	} {
		var v struct {
			X float64 `json:"x"`
		}
		r := &reader{file: "x", places: map[string]place{}, broken: map[string]bool{}}
		r.decode(r.parse("x: "+c.src), "", reflect.ValueOf(&v).Elem())
		if ok := len(r.faults) == 0; ok != c.ok || ok && v.X != c.want {
			t.Errorf("%s: %v, faults %v", c.src, v.X, r.faults)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"metrcs", "metrics"}, {"metric", "metrics"}, {"Metrics", "metrics"}, {"arm", "arms"}, {"nice", ""}, {"x", ""}, {"", ""}, {"quite-another", ""}, {"metriccss", "metrics"}, {"mtrcs", "metrics"},
	} {
		if got := nearest(c.word, []string{"arms", "metrics", "name", "host"}); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, rng.IntN(7))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		a, b := word(), word()
		if got, want := editDistance(a, b), slowDistance(a, b); got != want {
			t.Fatalf("%q to %q: %d, want %d", a, b, got, want)
		}
	}
}

func slowDistance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	if a[0] == b[0] {
		return slowDistance(a[1:], b[1:])
	}
	return 1 + min(slowDistance(a[1:], b), slowDistance(a, b[1:]), slowDistance(a[1:], b[1:]))
}

// FuzzParse checks that no text makes Parse panic or return a protocol
// together with faults, and that a protocol without fault survives the freeze.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/lint/*.yaml", "../cli/template.yaml", "../../examples/*/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			f.Fatalf("no seed matches %s", pattern)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte(base))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, faults := Parse("fuzz.yaml", src, known)
		if (p == nil) != (len(faults) > 0) {
			t.Fatalf("protocol %v and faults %v", p, faults)
		}
		_ = faults.Error()
		if p == nil {
			return
		}
		lock, err := Freeze(p, Evidence{Exploratory: "fuzzing"})
		if err != nil {
			t.Fatal(err)
		}
		p.Infeasible()
		_, q, err := ReadLock(lock.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("the lock holds another protocol:\n%s\n%s", p.Canonical(), q.Canonical())
		}
		again, faults := Parse("fuzz.yaml", src, known)
		if len(faults) > 0 || !bytes.Equal(p.Canonical(), again.Canonical()) {
			t.Fatal("the same text gave another protocol")
		}
	})
}
