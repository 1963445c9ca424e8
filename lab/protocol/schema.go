package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
)

// topLevelKeys are the keys of a protocol file in the order of the type.
func topLevelKeys() []string {
	var keys []string
	t := reflect.TypeFor[Protocol]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// JSONSchema is the schema of the protocol file (draft 2020-12), for editors.
// It is made from the same types and tags as the parser; what only lint can
// know (names that refer to each other) is not in it.
func JSONSchema() []byte {
	s := schemaOf(reflect.TypeFor[Protocol]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Assay protocol"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("protocol: " + err.Error())
	}
	return append(b, '\n')
}

func schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": "^([0-9.]+(ns|us|µs|ms|s|m|h))+$"}
	case reflect.TypeFor[Scalar]():
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case reflect.TypeFor[Levels]():
		return map[string]any{"anyOf": []any{
			schemaOf(reflect.TypeFor[Scalar]()),
			map[string]any{"type": "array", "items": schemaOf(reflect.TypeFor[Scalar]()), "minItems": 1},
		}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		props, required := map[string]any{}, []string{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			s := schemaOf(f.Type)
			s["description"] = f.Tag.Get("doc")
			switch e := f.Tag.Get("enum"); {
			case e != "":
				s["enum"] = strings.Split(e, ",")
				delete(s, "type")
			case f.Type.Kind() == reflect.String:
				s["pattern"] = `\S`
			}
			props[name] = s
			if f.Tag.Get("required") == "true" {
				required = append(required, name)
			}
		}
		out := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	}
	panic("protocol: no schema for " + t.String())
}
