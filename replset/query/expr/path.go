package expr

import (
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// checkFieldPath refuses what cannot name a field: empty parts and parts with '$'.
func checkFieldPath(path string) error {
	if path == "" {
		return value.Errorf(16872, "'$' by itself is not a valid FieldPath")
	}
	if strings.IndexByte(path, 0) >= 0 {
		return value.Errorf(16411, "FieldPath field names may not contain embedded nulls")
	}
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return value.Errorf(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$':
			return value.Errorf(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	return nil
}

// Walk follows a path from v. Through an array it collects what its documents have,
// leaving out those that have nothing. Numbers in a path are names, not positions.
func Walk(v value.Value, path []string) value.Value {
	for i, part := range path {
		switch {
		case value.IsDocument(v):
			v = value.Lookup(v.Data, part)
		case value.IsArray(v):
			var b value.Builder
			for e := range value.Elements(v.Data) {
				if !value.IsDocument(e) {
					continue
				}
				if got := Walk(e, path[i:]); !value.IsMissing(got) {
					b.Push(got)
				}
			}
			return b.Array()
		default:
			return value.Missing
		}
	}
	return v
}

// parsePath parses "$a.b" and "$$name.a.b".
func parsePath(s string, vars *Vars) (*Expr, error) {
	if !strings.HasPrefix(s, "$$") {
		if err := checkFieldPath(s[1:]); err != nil {
			return nil, err
		}
		return current(vars, strings.Split(s[1:], ".")), nil
	}
	name, rest, dotted := strings.Cut(s[2:], ".")
	var path []string
	if dotted {
		if err := checkFieldPath(rest); err != nil {
			return nil, err
		}
		path = strings.Split(rest, ".")
	}
	return variable(name, path, vars)
}

// current is a path from the document, unless $let has bound CURRENT to another.
func current(vars *Vars, path []string) *Expr {
	if _, bound := vars.find("CURRENT"); bound {
		return &Expr{eval: func(e *env) (value.Value, error) {
			v, _ := e.vars.find("CURRENT")
			return Walk(v, path), nil
		}}
	}
	return &Expr{path: path, eval: func(e *env) (value.Value, error) { return Walk(e.root, path), nil }}
}

func variable(name string, path []string, vars *Vars) (*Expr, error) {
	switch name {
	case "ROOT":
		return &Expr{eval: func(e *env) (value.Value, error) { return Walk(e.root, path), nil }}, nil
	case "CURRENT":
		return current(vars, path), nil
	case "REMOVE":
		return &Expr{eval: func(*env) (value.Value, error) { return value.Missing, nil }}, nil
	case "NOW":
		return &Expr{eval: func(e *env) (value.Value, error) {
			return Walk(value.DateOf(e.vars.System().Now), path), nil
		}}, nil
	case "CLUSTER_TIME":
		ct := vars.System().ClusterTime
		if ct.T == 0 {
			return nil, value.Errorf(51144, "system variable $$CLUSTER_TIME is not available")
		}
		return literal(value.Timestamp(ct.T, ct.I)), nil
	}
	if _, ok := vars.find(name); !ok {
		return nil, value.Errorf(value.UndefinedVariable, "Use of undefined variable: %s", name)
	}
	return &Expr{eval: func(e *env) (value.Value, error) {
		v, _ := e.vars.find(name)
		return Walk(v, path), nil
	}}, nil
}
