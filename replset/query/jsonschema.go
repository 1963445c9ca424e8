package query

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// schema is a $jsonSchema, parsed: rules that each hold or not. A rule on a kind of
// values holds for all others.
type schema struct{ rules []rule }

type rule struct {
	name  string
	holds func(v Value) bool
}

func (s *schema) valid(v Value) bool {
	for _, r := range s.rules {
		if !r.holds(v) {
			return false
		}
	}
	return true
}

func (s *schema) match(_ *matching, doc []byte) (bool, error) { return s.valid(value.Doc(doc)), nil }

// SchemaFailures are the keywords of the filter's top-level $jsonSchema that a
// document does not satisfy; none if it has no such operator.
func (f *Filter) SchemaFailures(doc Document) []string {
	s, ok := f.root.(*schema)
	if !ok {
		return nil
	}
	var out []string
	for _, r := range s.rules {
		if !r.holds(value.Doc(doc)) {
			out = append(out, r.name)
		}
	}
	return out
}

// parseSchema parses the keywords of MongoDB's JSON Schema. Errors: 9 and 14 for a
// malformed one, 238 for dependencies, patternProperties and additionalItems.
func parseSchema(v Value) (*schema, error) {
	if !value.IsDocument(v) {
		return nil, value.Errorf(value.TypeMismatch, "$jsonSchema must be an object")
	}
	s := &schema{}
	for k, arg := range value.Fields(v.Data) {
		holds, err := parseRule(k, value.Clone(arg), v)
		if err != nil {
			return nil, err
		}
		if holds != nil {
			s.rules = append(s.rules, rule{k, holds})
		}
	}
	return s, nil
}

func badSchema(k, want string) error {
	return value.Errorf(value.TypeMismatch, "$jsonSchema keyword '%s' must be %s", k, want)
}

func parseRule(k string, arg, all Value) (func(Value) bool, error) {
	switch k {
	case "title", "description":
		if !value.IsString(arg) {
			return nil, badSchema(k, "a string")
		}
		return nil, nil
	case "exclusiveMinimum", "exclusiveMaximum":
		if arg.Type != bsoncore.TypeBoolean {
			return nil, badSchema(k, "a boolean")
		}
		return nil, nil // part of minimum and maximum
	case "bsonType", "type":
		return parseSchemaType(k, arg)
	case "enum":
		if !value.IsArray(arg) || value.Len(arg.Data) == 0 {
			return nil, badSchema(k, "a non-empty array")
		}
		list := value.List(arg.Data)
		return func(v Value) bool {
			return slices.ContainsFunc(list, func(e Value) bool { return value.Equal(e, v) })
		}, nil
	case "minimum", "maximum":
		return parseBoundRule(k, arg, all)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return parseCountRule(k, arg)
	case "pattern":
		re, err := parseRegex(arg, value.Missing)
		if !value.IsString(arg) || err != nil {
			return nil, badSchema(k, "a regular expression")
		}
		return func(v Value) bool { return !value.IsString(v) || re.holds(v) }, nil
	case "multipleOf":
		if !value.IsNumber(arg) || value.NumberOf(arg).Sign() <= 0 {
			return nil, badSchema(k, "a positive number")
		}
		return func(v Value) bool {
			return !value.IsNumber(v) || value.Rem(value.NumberOf(v), value.NumberOf(arg)).IsZero()
		}, nil
	case "required", "properties", "additionalProperties":
		return parseObjectRule(k, arg, all)
	case "items", "uniqueItems":
		return parseArrayRule(k, arg)
	case "allOf", "anyOf", "oneOf", "not":
		return parseCombined(k, arg)
	case "dependencies", "patternProperties", "additionalItems":
		return nil, value.Errorf(value.NotImplemented, "$jsonSchema keyword '%s' is not supported", k)
	}
	return nil, value.Errorf(value.FailedToParse, "Unknown $jsonSchema keyword: %s", k)
}

// jsonTypes are JSON Schema's own names of types; the others are those of $type.
var jsonTypes = map[string]string{"object": "object", "array": "array", "number": "number", "boolean": "bool", "string": "string", "null": "null"}

func parseSchemaType(k string, arg Value) (func(Value) bool, error) {
	names := []Value{arg}
	if value.IsArray(arg) {
		names = value.List(arg.Data)
	}
	var list value.Builder
	for _, n := range names {
		name := value.Str(n)
		if !value.IsString(n) {
			return nil, badSchema(k, "a string or an array of strings")
		}
		if k == "type" {
			alias, ok := jsonTypes[name]
			if !ok {
				return nil, value.Errorf(value.BadValue, "Unknown type name alias: %s", name)
			}
			name = alias
		}
		list.Push(value.String(name))
	}
	p, err := parseType(list.Array())
	if err != nil {
		return nil, err
	}
	return p.holds, nil
}

func parseBoundRule(k string, arg, all Value) (func(Value) bool, error) {
	if !value.IsNumber(arg) {
		return nil, badSchema(k, "a number")
	}
	o := opGte
	exclusive := value.Truth(value.Lookup(all.Data, "exclusive"+strings.ToUpper(k[:1])+k[1:]))
	switch {
	case k == "minimum" && exclusive:
		o = opGt
	case k == "maximum" && exclusive:
		o = opLt
	case k == "maximum":
		o = opLte
	}
	return func(v Value) bool { return !value.IsNumber(v) || comparison{o, arg}.holds(v) }, nil
}

func parseCountRule(k string, arg Value) (func(Value) bool, error) {
	n, ok := value.Integer(arg)
	if !ok || n < 0 {
		return nil, badSchema(k, "a non-negative integer")
	}
	least := strings.HasPrefix(k, "min")
	fits := func(size int) bool { return least && int64(size) >= n || !least && int64(size) <= n }
	switch k[3:] {
	case "Length":
		return func(v Value) bool { return !value.IsString(v) || fits(utf8.RuneCountInString(value.Str(v))) }, nil
	case "Items":
		return func(v Value) bool { return !value.IsArray(v) || fits(value.Len(v.Data)) }, nil
	}
	return func(v Value) bool { return !value.IsDocument(v) || fits(value.Len(v.Data)) }, nil
}

func parseObjectRule(k string, arg, all Value) (func(Value) bool, error) {
	if k == "required" {
		if !value.IsArray(arg) || value.Len(arg.Data) == 0 {
			return nil, badSchema(k, "a non-empty array of strings")
		}
		return func(v Value) bool {
			for name := range value.Elements(arg.Data) {
				if value.IsDocument(v) && value.IsMissing(value.Lookup(v.Data, value.Str(name))) {
					return false
				}
			}
			return true
		}, nil
	}
	if k == "properties" {
		if !value.IsDocument(arg) {
			return nil, badSchema(k, "an object")
		}
		kids := map[string]*schema{}
		for name, sub := range value.Fields(arg.Data) {
			s, err := parseSchema(sub)
			if err != nil {
				return nil, err
			}
			kids[name] = s
		}
		return func(v Value) bool {
			if !value.IsDocument(v) {
				return true
			}
			for name, e := range value.Fields(v.Data) {
				if s := kids[name]; s != nil && !s.valid(e) {
					return false
				}
			}
			return true
		}, nil
	}
	known := value.Lookup(all.Data, "properties")
	others := func(Value) bool { return false }
	switch {
	case arg.Type == bsoncore.TypeBoolean && arg.Boolean():
		return nil, nil
	case arg.Type == bsoncore.TypeBoolean:
	default:
		s, err := parseSchema(arg)
		if err != nil {
			return nil, err
		}
		others = s.valid
	}
	return func(v Value) bool {
		if !value.IsDocument(v) {
			return true
		}
		for name, e := range value.Fields(v.Data) {
			if (!value.IsDocument(known) || value.IsMissing(value.Lookup(known.Data, name))) && !others(e) {
				return false
			}
		}
		return true
	}, nil
}

func parseArrayRule(k string, arg Value) (func(Value) bool, error) {
	if k == "uniqueItems" {
		if arg.Type != bsoncore.TypeBoolean {
			return nil, badSchema(k, "a boolean")
		}
		if !arg.Boolean() {
			return nil, nil
		}
		return func(v Value) bool {
			return !value.IsArray(v) || len(keySet(value.List(v.Data), nil)) == value.Len(v.Data)
		}, nil
	}
	each := func(i int) *schema { return nil }
	if value.IsArray(arg) {
		list, err := parseSchemas(k, arg)
		if err != nil {
			return nil, err
		}
		each = func(i int) *schema {
			if i < len(list) {
				return list[i]
			}
			return nil
		}
	} else {
		s, err := parseSchema(arg)
		if err != nil {
			return nil, err
		}
		each = func(int) *schema { return s }
	}
	return func(v Value) bool {
		if !value.IsArray(v) {
			return true
		}
		for i, e := range value.List(v.Data) {
			if s := each(i); s != nil && !s.valid(e) {
				return false
			}
		}
		return true
	}, nil
}

func parseSchemas(k string, arg Value) ([]*schema, error) {
	if !value.IsArray(arg) || value.Len(arg.Data) == 0 {
		return nil, badSchema(k, "a non-empty array")
	}
	var list []*schema
	for e := range value.Elements(arg.Data) {
		s, err := parseSchema(e)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func parseCombined(k string, arg Value) (func(Value) bool, error) {
	if k == "not" {
		s, err := parseSchema(arg)
		if err != nil {
			return nil, err
		}
		return func(v Value) bool { return !s.valid(v) }, nil
	}
	list, err := parseSchemas(k, arg)
	if err != nil {
		return nil, err
	}
	return func(v Value) bool {
		n := 0
		for _, s := range list {
			if s.valid(v) {
				n++
			}
		}
		switch k {
		case "allOf":
			return n == len(list)
		case "oneOf":
			return n == 1
		}
		return n > 0
	}, nil
}
