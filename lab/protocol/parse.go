package protocol

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

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
		r.fault(place{1, 1}, "", "the file is empty; `init` writes a protocol to start from")
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
