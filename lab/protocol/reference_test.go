package protocol

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestReferencePageIsCurrent(t *testing.T) {
	const page = "../../docs/protocol.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, reference(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, reference()) {
		t.Errorf("%s is not what the types say; run: UPDATE_DOCS=1 go test ./lab/protocol -run ReferencePage", page)
	}
}

func TestScopeNamesAreComplete(t *testing.T) {
	if got, want := len(RuleScope("").names()), len(RuleScope("")); got != want {
		t.Errorf("the page names %d of %d names that a rule may use", got, want)
	}
}

// reference is the page that describes every key, made from the same tags as
// the parser, in Markdown.
func reference() []byte {
	var b strings.Builder
	b.WriteString("# The protocol file\n\n" +
		"Every key, made from the types that the parser reads (`lab/protocol`); do not edit by hand.\n" +
		"A key marked * must be there. What a key may not say is found by `assay lint`.\n")
	todo := []reflect.Type{reflect.TypeFor[Protocol]()}
	seen := map[reflect.Type]bool{}
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		fmt.Fprintf(&b, "\n## %s\n\n| key | value | |\n|---|---|---|\n", strings.ToLower(t.Name()))
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Tag.Get("required") == "true" {
				name += " *"
			}
			value := valueWord(f.Type)
			if e := f.Tag.Get("enum"); e != "" {
				value = strings.ReplaceAll(e, ",", ", ")
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Tag.Get("doc"), "|", "\\|"))
			if s := structOf(f.Type); s != nil {
				todo = append(todo, s)
			}
		}
	}
	b.WriteString("\n## What conditions may name\n\n" +
		"A rule's `require` sees its metric in one cell: `" + strings.Join(RuleScope("").names(), "` `") + "`.\n" +
		"d, dz are positive where the treatment is better; diff is treatment minus reference, ratio is treatment over\n" +
		"reference, change is diff over the reference's mean. With `statistic: pooled` there is no p, d or dz; with median, max\n" +
		"and sum there are no intervals either.\n\n" +
		"An outcome's `when` sees `primary.` and one of p alpha d dz diff diff_low diff_high ratio change n significant better worse\n" +
		"meets_floor; `veto.NAME` (true: it blocks) and `veto.any`; `gate.NAME` (true: it holds) and `gate.all`; and, where the\n" +
		"primary comparison has one cell, `effect.METRIC.` and a rule's names. Arithmetic, comparisons, `&& || !`, `abs`, `min` and\n" +
		"`max` are all there is. A name without a value makes the condition neither true nor false: the run is then invalid.\n" +
		environment +
		"\n## Host probes\n\n`" + strings.Join(Probes, "` `") + "`\n")
	return []byte(b.String())
}

// environment is what lab/trial gives to commands.
const environment = `
## What commands find

An arm and its hooks run in its dir: by default the folder of the protocol file, with rev that folder in the
worktree. So do checks of scope trial; those of wider scopes run in the folder of the protocol file. In the environment:

| variable | what it is |
|---|---|
| ASSAY_SCRATCH | For an arm, a folder that is empty when the trial begins; for a check of scope trial the same, as the arm left it; for one of a wider scope, the folder that has one for each arm, by its name; for setup and cleanup, ASSAY_ARM_DIR. |
| ASSAY_OUT | A file: for an arm, JSON lines with figures, samples and checks; for a check, one object with operations, kinds, faults, message and examples. |
| ASSAY_ARM_DIR | A folder of the arm's own, which lives as long as the run. |
| ASSAY_PROTOCOL_DIR | The folder of the protocol file. |
| ASSAY_ARM, ASSAY_CELL, ASSAY_ROUND, ASSAY_SLOT | Which trial it is; the slot is the arm's place in the round. |
| ASSAY_SEED | The seed of the round, the same for all of its arms. |
| ASSAY_PHASE | measure, warmup, setup, prepare, check or cleanup. |
| ASSAY_FACTOR_NAME, ASSAY_SETTING_NAME | The level of each factor, the value of each setting. |
`

func (s Scope) names() []string {
	order := []string{"ref", "treat", "diff", "diff_low", "diff_high", "ratio", "ratio_low", "ratio_high", "change", "p", "d", "dz", "n", "better", "worse"}
	var out []string
	for _, n := range order {
		if _, ok := s[n]; ok {
			out = append(out, n)
		}
	}
	return out
}

// structOf is the struct that a field holds, nil where it holds none.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func valueWord(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return "duration, such as 30s"
	case reflect.TypeFor[Selector]():
		return "mapping of factor to level or list of levels"
	case reflect.TypeFor[Levels]():
		return "level or list of levels"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return valueWord(t.Elem())
	case reflect.Slice:
		if s := structOf(t); s != nil {
			return "list of [" + strings.ToLower(s.Name()) + "](#" + strings.ToLower(s.Name()) + ")"
		}
		return "list"
	case reflect.Map:
		return "mapping of name to text"
	case reflect.Struct:
		return "[" + strings.ToLower(t.Name()) + "](#" + strings.ToLower(t.Name()) + ")"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Uint64:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "text"
}
