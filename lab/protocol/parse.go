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

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a protocol file. A plan that a team agrees on is a few hundred
// lines; anything beyond these is a mistake or an attack.
const (
	maxFileBytes = 256 << 10
	maxTokens    = 20_000 // words and signs of YAML; the parser is quadratic in the keys of a mapping
	maxDepth     = 32
	maxItems     = 256 // of a list of mappings
	maxFaults    = 500
	maxMessage   = 1000 // characters
	maxCells     = 10_000
	maxRounds    = 100_000
	maxTrials    = 1_000_000
)

// Parse reads a protocol file, strictly, and fills in defaults. name is how
// the file is called in messages. All faults are found, not the first only;
// a Protocol is returned only when there are none. Known is what the program
// that runs it offers beyond the file; nil allows no Go functions.
func Parse(name string, src []byte, known *Known) (*Protocol, Faults) {
	// What an editor on Windows adds is no part of the text: the same protocol
	// has the same digest however its lines end.
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
	r := &reader{file: name, places: map[string]place{}, broken: map[string]bool{}}
	p := &Protocol{}
	if root := r.parse(text); root != nil {
		r.decode(root, "", reflect.ValueOf(p).Elem())
	}
	// The meaning is looked at even where the form has faults, so that one
	// lint shows both; what it needs and did not get is skipped there.
	if r.root {
		r.lint(p, known)
	}
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	p.defaults()
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

	// broken are the paths whose form is wrong: what looks at their meaning
	// says nothing, because one mistake is one fault.
	broken map[string]bool

	cells      []Cell // those that run
	cellsKnown bool   // false where a fault leaves open which cells those are
}

func (r *reader) fault(at place, path, format string, args ...any) {
	if len(r.faults) > maxFaults {
		return
	}
	f := Fault{File: r.file, Line: at.line, Column: at.column, Path: path, Message: cut(printable(fmt.Sprintf(format, args...)), maxMessage)}
	if len(r.faults) == maxFaults {
		f.Message = fmt.Sprintf("more than %d faults; the rest is not listed", maxFaults)
	}
	if at.line >= 1 && at.line <= len(r.lines) {
		f.source = r.lines[at.line-1]
	}
	r.faults = append(r.faults, f)
}

// form reports that what stands at the path cannot be read at all.
func (r *reader) form(at place, path, format string, args ...any) {
	r.broken[path] = true
	r.fault(at, path, format, args...)
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

func (r *reader) parse(text string) ast.Node {
	if len(text) > maxFileBytes {
		r.fault(place{1, 1}, "", "the file has %d bytes; a protocol has at most %d", len(text), maxFileBytes)
		return nil
	}
	r.lines = strings.Split(text, "\n")
	if at, what := unreadable(r.lines); what != "" {
		r.fault(at, "", "%s", what)
		return nil
	}
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		r.fault(tokenPlace(tokens[maxTokens]), "", "the file is too long; a protocol has at most %d words and signs", maxTokens)
		return nil
	}
	if at, deep := tooDeep(tokens); deep {
		r.fault(at, "", "nested deeper than %d levels", maxDepth)
		return nil
	}
	if at, what := lossy(tokens); what != "" {
		r.fault(at, "", "%s", what)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syn *yaml.SyntaxError
		if errors.As(err, &syn) && syn.Token != nil {
			at, hint := tokenPlace(syn.Token), ""
			if at.line <= len(r.lines) && bang.MatchString(r.lines[at.line-1]) {
				hint = "; a value that begins with ! must stand in quotes"
			}
			r.fault(at, "", "not YAML: %s%s", strings.ReplaceAll(syn.Message, "\t", `\t`), hint)
		} else {
			r.fault(place{1, 1}, "", "not YAML: %s", firstLine(err.Error()))
		}
		return nil
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if n, ok := d.Body.(*ast.DirectiveNode); ok {
			r.fault(nodePlace(n), "", "YAML directives are not allowed in a protocol; remove this line")
			return nil
		}
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

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, t.Position.Column}
}

func nodePlace(n ast.Node) place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return nodePlace(n.Values[0].Key)
		}
		return tokenPlace(n.Start)
	case *ast.MappingValueNode:
		return nodePlace(n.Key)
	case *ast.SequenceNode:
		return tokenPlace(n.Start)
	}
	return tokenPlace(n.GetToken())
}

const (
	noAnchors = "anchors, aliases and merge keys are not allowed in a protocol; write the value out, so that what is frozen is what is read"
	noTags    = "YAML takes %s for a tag, and tags are not allowed in a protocol; remove it, or put the whole value in quotes"
	noValue   = "no value; give one or remove the key"
)

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
	for i := range p.Settings {
		set(&p.Settings[i].Effect, EffectPlan)
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
