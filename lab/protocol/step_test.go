package protocol

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Names that stand in two places and must be the same in both.

// source is the text of the package's Go files.
func source(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var b strings.Builder
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			b.Write(read(t, f))
		}
	}
	return b.String()
}

func found(text, pattern string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return out
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// A protocol may not call an outcome what the gate calls one of its own.
func TestReservedOutcomesAreTheGates(t *testing.T) {
	guards := found(source(t, "../gate"), `\.guard\("([A-Z-]+)"`)
	if !slices.Equal(guards, sorted(ReservedOutcomes)) {
		t.Errorf("the gate has %q, reserved are %q", guards, sorted(ReservedOutcomes))
	}
}

// A variable that ${NAME} may name is one that a trial gets.
func TestTrialVarsAreSet(t *testing.T) {
	set := found(source(t, "../trial"), `"(ASSAY_[A-Z_]+)="`)
	for _, v := range TrialVars {
		if !slices.Contains(set, v) {
			t.Errorf("%s is known here and no trial gets it", v)
		}
	}
	for _, v := range set {
		if !slices.Contains(TrialVars, v) && v != "ASSAY_PAD" {
			t.Errorf("trials get %s, which is not known here", v)
		}
	}
	if !strings.Contains(source(t, "../trial"), "FactorVar(") {
		t.Error("trials do not name a factor's variable as it is named here")
	}
}

// The words that code compares with are words that a file may say.
func TestWordsAreInEnums(t *testing.T) {
	var enums []string
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		if s := structOf(typ); s != nil {
			for i := range s.NumField() {
				if e := s.Field(i).Tag.Get("enum"); e != "" {
					enums = append(enums, strings.Split(e, ",")...)
				}
				walk(s.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[Protocol]())
	words := found(string(read(t, "protocol.go")), `(?m)^\t(?:Isolation|Source|Scope|Test|Stat|Class|Action)[A-Za-z]+ += "([a-z_-]+)"$`)
	if len(words) < 30 {
		t.Fatalf("only %d words found", len(words))
	}
	for _, w := range words {
		if !slices.Contains(enums, w) {
			t.Errorf("no key may say %q", w)
		}
	}
}

// Every name that a rule or an outcome may consult is in the key's description.
func TestConditionNamesAreDocumented(t *testing.T) {
	f, _ := reflect.TypeFor[Rule]().FieldByName("Require")
	words := strings.Fields(strings.NewReplacer(",", " ", ".", " ").Replace(f.Tag.Get("doc")))
	for name := range comparison {
		stem := strings.TrimSuffix(strings.TrimSuffix(name, "_low"), "_high")
		if !slices.Contains(words, stem) || stem != name && !slices.Contains(words, strings.TrimPrefix(name, stem)) {
			t.Errorf("%s is not in %q", name, f.Tag.Get("doc"))
		}
	}
}

// A field of a kind that the parser has no decoder for panics here, before an
// author meets it.
func TestEveryTypeCanBeRead(t *testing.T) {
	p := &Protocol{}
	fill(reflect.ValueOf(p).Elem())
	for _, key := range topLevelKeys() {
		if !strings.Contains(string(p.Canonical()), `"`+key+`":`) {
			t.Errorf("%s is not in the canonical bytes", key)
		}
	}
	r := &reader{file: "x", places: map[string]place{}, broken: map[string]bool{}}
	root := r.parse(string(p.Canonical()))
	if root == nil {
		t.Fatal(r.faults)
	}
	q := &Protocol{}
	r.decode(root, "", reflect.ValueOf(q).Elem())
	// Every word is "x" there, so that only the enums have something to say.
	for _, f := range r.faults {
		if !strings.Contains(f.Message, "expected one of") {
			t.Error(f)
		}
	}
}

func TestProbesAreNamedOnce(t *testing.T) {
	if s := sorted(Probes); len(slices.Compact(s)) != len(Probes) {
		t.Errorf("%q", Probes)
	}
	if _, err := os.Stat("../host/probe_test.go"); err != nil {
		t.Error("the test that the probes are those of lab/host is gone:", err)
	}
}
