package protocol

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decode reads node into v, recording where everything stands.
func (r *reader) decode(node ast.Node, path string, v reflect.Value) {
	here := nodePlace(node)
	if _, ok := r.places[path]; !ok {
		r.places[path] = here
	}
	switch n := node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.form(here, path, noAnchors)
		return
	case *ast.TagNode:
		r.form(here, path, noTags, n.Start.Value)
		return
	case *ast.NullNode:
		r.form(r.places[path], path, noValue) // at its key, since there is nothing to point at
		return
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := r.scalar(node, path, "a duration such as 30s"); ok {
			if err := t.UnmarshalText([]byte(text)); err != nil {
				r.form(here, path, "%q is not a duration; write it as 30s, 5m or 1h30m", text)
			} else if d, ok := v.Interface().(Duration); ok && d <= 0 {
				r.form(here, path, "a duration must be more than zero")
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.decode(node, path, v.Elem())
	case reflect.Struct:
		r.decodeStruct(node, path, v)
	case reflect.Slice:
		r.decodeSlice(node, path, v)
	case reflect.Map:
		r.decodeMap(node, path, v)
	case reflect.String:
		if text, ok := r.scalar(node, path, "text"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		if b, ok := node.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
		} else {
			r.form(here, path, "expected true or false, found %s", describe(node))
		}
	case reflect.Int:
		i, err := strconv.ParseInt(digits(node), 10, 32)
		switch {
		case err == nil:
			v.SetInt(i)
		case errors.Is(err, strconv.ErrRange):
			r.form(here, path, "%s is out of range; the largest is %d", describe(node), math.MaxInt32)
		default:
			r.form(here, path, "expected a whole number in plain digits, found %s", describe(node))
		}
	case reflect.Uint64:
		u, err := strconv.ParseUint(digits(node), 0, 64)
		switch {
		case err == nil:
			v.SetUint(u)
		case errors.Is(err, strconv.ErrRange):
			r.form(here, path, "%s is out of range; the largest is %d", describe(node), uint64(math.MaxUint64))
		default:
			r.form(here, path, "expected a whole number of 0 or more in plain digits, found %s", describe(node))
		}
	case reflect.Float64:
		f, err := strconv.ParseFloat(digits(node), 64)
		switch {
		case err == nil:
			v.SetFloat(f + 0) // -0 is 0
		case errors.Is(err, strconv.ErrRange):
			r.form(here, path, "%s is out of range", describe(node))
		default:
			r.form(here, path, "expected a number, found %s", describe(node))
		}
	default:
		panic("protocol: no decoder for " + v.Type().String())
	}
}

// number is what all readers of YAML take for the same number: no octal by a
// leading zero, no underscores, no infinity.
var number = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+|([0-9]+\.[0-9]*|\.[0-9]+|[1-9][0-9]*)([eE][+-]?[0-9]+)?)$`)

// digits is the number as it was written, "" for what is not one.
func digits(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		// A quoted number is text; so is 5e-2 to the library, but to no one else.
		if t := n.GetToken(); t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType && number.MatchString(t.Value) {
			return t.Value
		}
	}
	return ""
}

// scalar is the text of a single value as it was written.
func (r *reader) scalar(n ast.Node, path, want string) (string, bool) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	default:
		r.form(nodePlace(n), path, "expected %s, found %s", want, describe(n))
		return "", false
	}
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		c, _ := utf8.DecodeRuneInString(text[i:])
		r.form(nodePlace(n), path, "control character %U in the value; remove it", c)
		return "", false
	}
	return text, true
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", cut(n.Value, 24))
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	default:
		return cut(n.GetToken().Value, 24)
	}
}

// entries are the key-value pairs of a mapping, however the parser shaped it.
func (r *reader) entries(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	r.form(nodePlace(n), path, "expected a mapping (key: value), found %s", describe(n))
	return nil, false
}

// key is the text of a mapping's key, reported once if it stands twice.
func (r *reader) key(kv *ast.MappingValueNode, path string, seen map[string]bool) (string, bool) {
	at := nodePlace(kv.Key)
	switch n := kv.Key.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.form(at, path, noAnchors)
		return "", false
	case *ast.TagNode:
		r.form(at, path, noTags, n.Start.Value)
		return "", false
	case *ast.MappingKeyNode:
		r.form(at, path, "a key with a question mark is not allowed in a protocol; write key: value")
		return "", false
	}
	k := kv.Key.GetToken().Value
	if strings.ContainsFunc(k, isControl) {
		r.form(at, path, "control character in the key %q; remove it", k)
		return "", false
	}
	if seen[k] {
		r.fault(at, join(path, k), "duplicate key %q", k)
		return "", false
	}
	seen[k] = true
	return k, true
}

func (r *reader) decodeStruct(node ast.Node, path string, v reflect.Value) {
	kvs, ok := r.entries(node, path)
	if !ok {
		return
	}
	if path == "" {
		r.root = true
	}
	fields := fieldsOf(v.Type())
	names := slices.Sorted(maps.Keys(fields))
	seen, meant, present := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, kv := range kvs {
		present[kv.Key.GetToken().Value] = true
	}
	for _, kv := range kvs {
		k, ok := r.key(kv, path, seen)
		if !ok {
			continue
		}
		f, ok := fields[k]
		if !ok {
			// What was meant is not missing too.
			if near := nearest(k, names); near != "" && !present[near] {
				meant[near] = true
				r.broken[join(path, near)] = true
			}
			hint := didYouMean(k, names)
			if hint == "" {
				hint = "; keys here: " + strings.Join(names, " ")
			}
			r.form(nodePlace(kv.Key), join(path, k), "unknown key %q%s", cut(k, 40), hint)
			continue
		}
		p := join(path, k)
		r.places[p] = valuePlace(kv)
		fv := v.FieldByIndex(f.index)
		r.decode(kv.Value, p, fv)
		if fv.Kind() != reflect.String || r.broken[p] {
			continue
		}
		switch s := fv.String(); {
		case strings.TrimSpace(s) == "":
			r.form(r.places[p], p, noValue)
		case f.enum != nil && !slices.Contains(f.enum, s):
			r.form(r.places[p], p, "%s is %q; expected one of %s%s", k, cut(s, 40), strings.Join(f.enum, ", "), didYouMean(s, f.enum))
			fv.SetString("") // so that the default stands in for it
		}
	}
	if path != "" && len(kvs) > 0 && !slices.ContainsFunc(names, func(k string) bool { return seen[k] || meant[k] }) {
		r.broken[path] = true // something else altogether
	}
	for _, k := range names {
		if !fields[k].required || seen[k] || meant[k] || r.broken[path] {
			continue
		}
		at := nodePlace(node)
		if path == "" {
			at = place{1, 1}
		}
		r.form(at, join(path, k), "missing key %q: %s", k, fields[k].doc)
	}
}

// valuePlace points at the value where it stands on the key's own line or is
// a single value, and at the key otherwise.
func valuePlace(kv *ast.MappingValueNode) place {
	switch kv.Value.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.LiteralNode, *ast.NullNode:
		return nodePlace(kv.Key)
	}
	return nodePlace(kv.Value)
}

func (r *reader) decodeSlice(node ast.Node, path string, v reflect.Value) {
	if v.Type() == reflect.TypeFor[Levels]() {
		if _, isList := node.(*ast.SequenceNode); !isList {
			var one Scalar
			r.decode(node, path, reflect.ValueOf(&one).Elem())
			v.Set(reflect.ValueOf(Levels{one}))
			return
		}
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.form(nodePlace(node), path, "expected a list, found %s", describe(node))
		return
	}
	if len(list.Values) == 0 {
		return // nil, as everywhere else that nothing is given
	}
	if kind := v.Type().Elem().Kind(); len(list.Values) > maxItems && (kind == reflect.Struct || kind == reflect.Map) {
		r.form(nodePlace(list.Values[maxItems]), path, "%d entries; a list has at most %d", len(list.Values), maxItems)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(list.Values), len(list.Values))
	for i, item := range list.Values {
		p := fmt.Sprintf("%s[%d]", path, i)
		r.places[p] = nodePlace(item)
		r.decode(item, p, out.Index(i))
	}
	v.Set(out)
}

func (r *reader) decodeMap(node ast.Node, path string, v reflect.Value) {
	kvs, ok := r.entries(node, path)
	if !ok {
		return
	}
	if len(kvs) == 0 {
		return
	}
	out := reflect.MakeMap(v.Type())
	seen := map[string]bool{}
	for _, kv := range kvs {
		k, ok := r.key(kv, path, seen)
		if !ok {
			continue
		}
		p := join(path, k)
		r.places[p] = valuePlace(kv)
		item := reflect.New(v.Type().Elem()).Elem()
		r.decode(kv.Value, p, item)
		out.SetMapIndex(reflect.ValueOf(k), item)
	}
	v.Set(out)
}

// field is one key of a mapping, from the struct's tags.
type field struct {
	index    []int
	enum     []string
	required bool
	doc      string
}

func fieldsOf(t reflect.Type) map[string]field {
	fields := map[string]field{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() {
			continue
		}
		fd := field{index: f.Index, required: f.Tag.Get("required") == "true", doc: f.Tag.Get("doc")}
		if e := f.Tag.Get("enum"); e != "" {
			fd.enum = strings.Split(e, ",")
		}
		fields[name] = fd
	}
	return fields
}
