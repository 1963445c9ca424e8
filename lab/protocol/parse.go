package protocol

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a protocol file. A plan that a team agrees on is a few hundred
// lines; anything beyond these is a mistake or an attack.
const (
	maxFileBytes = 1 << 20
	maxDepth     = 32
	maxCells     = 10_000
	maxRounds    = 100_000
)

// Parse reads a protocol file, strictly, and fills in defaults. name is how
// the file is called in messages. All faults are found, not the first only;
// a Protocol is returned only when there are none. Known is what the program
// that runs it offers beyond the file; nil allows no Go functions.
func Parse(name string, src []byte, known *Known) (*Protocol, Faults) {
	r := &reader{file: name, lines: strings.Split(string(src), "\n"), places: map[string]place{}}
	p := &Protocol{}
	if root := r.parse(src); root != nil {
		r.decode(root, "", reflect.ValueOf(p).Elem())
	}
	if len(r.faults) == 0 {
		p.defaults()
	}
	// The meaning is looked at even where the form has faults, so that one
	// lint shows both; what it needs and did not get is skipped there.
	if r.root {
		r.lint(p, known)
	}
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	return p, nil
}

// Known is what a program offers to the protocols it runs.
type Known struct {
	Arms   []string // Go functions that an arm may name
	Checks []string // Go functions that a check may name
}

// place is where a path of the file stands: its key, or the value itself in a
// list. Faults point at the value where there is one.
type place struct{ line, column int }

// reader walks the syntax tree along the Go types. It is written here, and
// not taken from the library's decoder, because that one stops at the first
// fault.
type reader struct {
	file   string
	lines  []string
	places map[string]place
	faults Faults
	root   bool // a mapping was found, so that looking at the meaning makes sense
}

func (r *reader) fault(at place, path, format string, args ...any) {
	f := Fault{File: r.file, Line: at.line, Column: at.column, Path: path, Message: fmt.Sprintf(format, args...)}
	if at.line >= 1 && at.line <= len(r.lines) {
		f.source = strings.TrimRight(r.lines[at.line-1], "\r")
	}
	r.faults = append(r.faults, f)
}

// at is the place of a path, or of the nearest enclosing one that stands in
// the file: a missing key is reported where it should have been.
func (r *reader) at(path string) place {
	for {
		if p, ok := r.places[path]; ok {
			return p
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return place{1, 1}
		}
		path = path[:i]
	}
}

func (r *reader) parse(src []byte) ast.Node {
	if len(src) > maxFileBytes {
		r.fault(place{1, 1}, "", "the file has %d bytes; a protocol has at most %d", len(src), maxFileBytes)
		return nil
	}
	if line, col, ok := tooDeep(r.lines); ok {
		r.fault(place{line, col}, "", "nested deeper than %d levels", maxDepth)
		return nil
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syn *yaml.SyntaxError
		if errors.As(err, &syn) && syn.Token != nil {
			r.fault(tokenPlace(syn.Token), "", "not YAML: %s", syn.Message)
		} else {
			r.fault(place{1, 1}, "", "not YAML: %s", firstLine(err.Error()))
		}
		return nil
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		r.fault(place{1, 1}, "", "the file is empty; `assay init` writes a protocol to start from")
		return nil
	case len(bodies) > 1:
		r.fault(nodePlace(bodies[1]), "", "a second YAML document; a protocol is one")
		return nil
	}
	return bodies[0]
}

// tooDeep looks at the text, because the parser itself recurses.
func tooDeep(lines []string) (line, column int, deep bool) {
	depth := 0
	for i, l := range lines {
		indent := 0
		for indent < len(l) && (l[indent] == ' ' || l[indent] == '-') {
			indent++
		}
		if indent > 4*maxDepth && strings.Count(l[:indent], "-") > maxDepth {
			return i + 1, indent, true
		}
		for j := 0; j < len(l); j++ {
			switch l[j] {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > 4*maxDepth {
				return i + 1, j + 1, true
			}
		}
	}
	return 0, 0, false
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, t.Position.Column}
}

func nodePlace(n ast.Node) place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return nodePlace(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return nodePlace(n.Key)
	case *ast.SequenceNode:
		return tokenPlace(n.Start)
	}
	return tokenPlace(n.GetToken())
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// decode reads node into v, recording where everything stands.
func (r *reader) decode(node ast.Node, path string, v reflect.Value) {
	here := nodePlace(node)
	if _, ok := r.places[path]; !ok {
		r.places[path] = here
	}
	if strings.Count(path, ".")+strings.Count(path, "[") > maxDepth {
		r.fault(here, path, "nested deeper than %d levels", maxDepth)
		return
	}
	switch n := node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.fault(here, path, "anchors, aliases and merge keys are not allowed in a protocol; write the value out, so that what is frozen is what is read")
		return
	case *ast.TagNode:
		r.fault(here, path, "YAML tags are not allowed in a protocol; remove %s", n.Start.Value)
		return
	case *ast.NullNode:
		r.fault(here, path, "no value; give one or remove the key")
		return
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := r.scalar(node, path, "a duration such as 30s"); ok {
			if err := t.UnmarshalText([]byte(text)); err != nil {
				r.fault(here, path, "%q is not a duration; write it as 30s, 5m or 1h30m", text)
			} else if d, ok := v.Interface().(Duration); ok && d <= 0 {
				r.fault(here, path, "a duration must be more than zero")
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
			r.fault(here, path, "expected true or false, found %s", describe(node))
		}
	case reflect.Int:
		if i, ok := integer(node); ok && i <= math.MaxInt32 && i >= math.MinInt32 {
			v.SetInt(int64(i))
		} else {
			r.fault(here, path, "expected a whole number, found %s", describe(node))
		}
	case reflect.Uint64:
		if n, ok := node.(*ast.IntegerNode); ok {
			if u, err := strconv.ParseUint(strings.ReplaceAll(n.GetToken().Value, "_", ""), 0, 64); err == nil {
				v.SetUint(u)
				return
			}
		}
		r.fault(here, path, "expected a whole number of 0 or more, found %s", describe(node))
	case reflect.Float64:
		switch n := node.(type) {
		case *ast.FloatNode:
			v.SetFloat(n.Value)
		case *ast.IntegerNode:
			i, _ := integer(n)
			v.SetFloat(float64(i))
		default:
			r.fault(here, path, "expected a number, found %s", describe(node))
		}
	default:
		panic("protocol: no decoder for " + v.Type().String())
	}
}

func integer(n ast.Node) (int64, bool) {
	in, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch x := in.Value.(type) {
	case int64:
		return x, true
	case uint64:
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

// scalar is the text of a single value as it was written.
func (r *reader) scalar(n ast.Node, path, want string) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	r.fault(nodePlace(n), path, "expected %s, found %s", want, describe(n))
	return "", false
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

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// entries are the key-value pairs of a mapping, however the parser shaped it.
func (r *reader) entries(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	r.fault(nodePlace(n), path, "expected a mapping (key: value), found %s", describe(n))
	return nil, false
}

// key is the text of a mapping's key, reported once if it stands twice.
func (r *reader) key(kv *ast.MappingValueNode, path string, seen map[string]bool) (string, bool) {
	at := nodePlace(kv.Key)
	if _, ok := kv.Key.(*ast.MergeKeyNode); ok {
		r.fault(at, path, "anchors, aliases and merge keys are not allowed in a protocol; write the value out, so that what is frozen is what is read")
		return "", false
	}
	k := kv.Key.GetToken().Value
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
	seen := map[string]bool{}
	for _, kv := range kvs {
		k, ok := r.key(kv, path, seen)
		if !ok {
			continue
		}
		f, ok := fields[k]
		if !ok {
			names := slices.Sorted(maps.Keys(fields))
			r.fault(nodePlace(kv.Key), join(path, k), "unknown key %q%s; keys here: %s", k, didYouMean(k, names), strings.Join(names, " "))
			continue
		}
		p := join(path, k)
		r.places[p] = valuePlace(kv)
		r.decode(kv.Value, p, v.FieldByIndex(f.index))
		if f.enum != nil && v.FieldByIndex(f.index).Kind() == reflect.String {
			if s := v.FieldByIndex(f.index).String(); s != "" && !slices.Contains(f.enum, s) {
				r.fault(r.places[p], p, "%s is %q; expected one of %s%s", k, s, strings.Join(f.enum, ", "), didYouMean(s, f.enum))
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if fields[k].required && !seen[k] {
			at := nodePlace(node)
			if path == "" {
				at = place{1, 1}
			}
			r.fault(at, join(path, k), "missing key %q: %s", k, fields[k].doc)
		}
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
		r.fault(nodePlace(node), path, "expected a list, found %s", describe(node))
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

// defaults fills in what the author left out, so that the canonical bytes
// hold every value the run depends on.
func (p *Protocol) defaults() {
	set := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	for i := range p.Arms {
		a := &p.Arms[i]
		set(&a.Class, ClassCompared)
		if a.Timeout == 0 {
			a.Timeout = Duration(DefaultTimeout)
		}
		if len(a.OKExit) == 0 {
			a.OKExit = []int{0}
		}
	}
	set(&p.Design.Isolation, IsolationProcess)
	set(&p.Design.Stop, "fixed")
	set(&p.Design.Scratch, "any")
	for i := range p.Metrics {
		m := &p.Metrics[i]
		set(&m.Key, m.Name)
		set(&m.Summarise, StatMean)
		if m.units() != nil {
			set(&m.Unit, map[bool]string{true: "MiB", false: "s"}[m.Source == SourcePeakMemory])
		}
	}
	for i := range p.Checks {
		c := &p.Checks[i]
		if c.Operations == 0 {
			c.Operations = 1
		}
		if c.Timeout == 0 {
			c.Timeout = Duration(DefaultTimeout)
		}
	}
	if p.Primary != nil {
		set(&p.Primary.Test, TestPaired)
		if p.Primary.Alpha == 0 {
			p.Primary.Alpha = 0.05
		}
		if p.Primary.Treatment == "" && len(p.Arms) > 1 {
			p.Primary.Treatment = p.Arms[1].Name
		}
	}
	for _, rules := range [][]Rule{p.Vetoes, p.Gates} {
		for i := range rules {
			set(&rules[i].Statistic, StatMean)
			set(&rules[i].Class, ClassGated)
			if rules[i].Arm == "" && p.Primary != nil {
				rules[i].Arm = p.Primary.Treatment
			}
		}
	}
	for i := range p.Host {
		set(&p.Host[i].Unavailable, p.Host[i].Action)
	}
	p.Decision.expand(p)
}
