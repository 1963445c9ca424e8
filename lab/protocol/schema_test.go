package protocol

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("protocol.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("protocol.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 2020 {
		t.Errorf("compiled under draft %d", s.DraftVersion)
	}
	return s
}

func TestSchemaAcceptsProtocols(t *testing.T) {
	s := compiledSchema(t)
	examples, _ := filepath.Glob("../../examples/*/*.yaml")
	files := append([]string{"testdata/full.yaml", "../cli/template.yaml", "testdata/lint/caveat-good.yaml"}, examples...)
	if !slices.Contains(files, "../../examples/compressors/compressors.yaml") {
		t.Errorf("no example among %q", files)
	}
	for _, f := range files {
		if err := s.Validate(tree(t, f)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// An unknown key in any mapping but those whose keys are the author's own is
// refused by the schema and by the parser alike.
func TestUnknownKeyAnywhere(t *testing.T) {
	s := compiledSchema(t)
	tried := 0
	full := text(t, tree(t, "testdata/full.yaml"))
	for i := range leaves("", decoded(t, full), func(any) {}) {
		doc := decoded(t, full)
		all := leaves("", doc, func(any) {})
		slices.SortFunc(all, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
		path := all[i].path
		m, ok := at(doc, path).(map[string]any)
		own := strings.HasSuffix(path, "env") || strings.HasSuffix(path, "cells") || strings.HasPrefix(path, "exclude[")
		if !ok || own {
			continue
		}
		tried++
		m["zzz"] = "x"
		if err := s.Validate(doc); err == nil {
			t.Errorf("the schema accepts %s", join(path, "zzz"))
		}
		_, faults := Parse("x", text(t, doc), known)
		if len(faults) != 1 || faults[0].Path != join(path, "zzz") {
			t.Errorf("%s: %v", join(path, "zzz"), faults)
		}
	}
	if tried < 20 {
		t.Errorf("only %d mappings tried", tried)
	}
}

// at is the value at the path, by comparing the paths of all.
func at(v any, path string) any {
	if path == "" {
		return v
	}
	var found any
	var walk func(p string, v any)
	walk = func(p string, v any) {
		if p == path {
			found = v
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(join(p, k), x)
			}
		case []any:
			for i, x := range v {
				walk(p+"["+jsonInt(i)+"]", x)
			}
		}
	}
	walk("", v)
	return found
}

func jsonInt(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

// Editors show the descriptions, and the reference is made from them.
func TestEveryFieldIsDocumented(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				continue
			}
			if doc := f.Tag.Get("doc"); doc == "" || f.Tag.Get("json") == "" || !strings.HasSuffix(doc, ".") {
				t.Errorf("%s.%s: doc %q, json %q", typ, f.Name, doc, f.Tag.Get("json"))
			}
			// A zero that is written out would hide that the author left it out.
			if omit := strings.HasSuffix(f.Tag.Get("json"), ",omitempty"); omit && f.Tag.Get("required") == "true" {
				t.Errorf("%s.%s is required and may be omitted", typ, f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Protocol]())
	if len(seen) < 13 {
		t.Errorf("only %d types", len(seen))
	}
}
