package expr

import "github.com/assaylab/assay/replset/query/value"

func comparison(holds func(c int) bool) operator {
	return two(func(a, b Value) (Value, error) { return value.Bool(holds(value.Compare(a, b))), nil }).ordered(comparesOnly)
}

func cmp(a, b Value) (Value, error) {
	switch c := value.Compare(a, b); {
	case c < 0:
		return value.Int32(-1), nil
	case c > 0:
		return value.Int32(1), nil
	}
	return value.Int32(0), nil
}

func not(v Value) (Value, error) { return value.Bool(!value.Truth(v)), nil }

// parseLogic: $and and $or stop at the first argument that decides.
func parseLogic(name string, arg Value, vars *Vars) (*Expr, error) {
	args, err := parseArgs(name, arg, vars, 0, -1)
	if err != nil {
		return nil, err
	}
	decides := name == "$or"
	return &Expr{eval: func(e *env) (Value, error) {
		for _, x := range args {
			v, err := x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			if value.Truth(v) == decides {
				return value.Bool(decides), nil
			}
		}
		return value.Bool(!decides), nil
	}}, nil
}

func parseCond(name string, arg Value, vars *Vars) (*Expr, error) {
	var parts []*Expr
	if value.IsDocument(arg) {
		raw, err := fields(name, arg, 17083, []string{"if", "then", "else"}, nil)
		if err != nil {
			return nil, err
		}
		for _, k := range []string{"if", "then", "else"} {
			x, err := Parse(raw[k], vars)
			if err != nil {
				return nil, err
			}
			parts = append(parts, x)
		}
	} else {
		args, err := parseArgs(name, arg, vars, 3, 3)
		if err != nil {
			return nil, err
		}
		parts = args
	}
	return choose(branch{parts[0], parts[1]}, parts[2]), nil
}

type branch struct{ when, then *Expr }

func choose(b branch, otherwise *Expr) *Expr {
	return &Expr{eval: func(e *env) (Value, error) {
		v, err := b.when.eval(e)
		if err != nil {
			return value.Missing, err
		}
		if value.Truth(v) {
			return b.then.eval(e)
		}
		return otherwise.eval(e)
	}}
}

func parseSwitch(name string, arg Value, vars *Vars) (*Expr, error) {
	raw, err := fields(name, arg, 40067, []string{"branches"}, []string{"default"})
	if err != nil {
		return nil, err
	}
	if !value.IsArray(raw["branches"]) {
		return nil, value.Errorf(40061, "$switch expected an array for 'branches', found: %s", value.TypeName(raw["branches"]))
	}
	out := &Expr{eval: func(*env) (Value, error) {
		return value.Missing, value.Errorf(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}}
	if v, ok := raw["default"]; ok {
		if out, err = Parse(v, vars); err != nil {
			return nil, err
		}
	}
	list := value.List(raw["branches"].Data)
	if len(list) == 0 {
		return nil, value.Errorf(40068, "$switch requires at least one branch.")
	}
	for i := len(list) - 1; i >= 0; i-- {
		b, err := parseBranch(list[i], vars)
		if err != nil {
			return nil, err
		}
		out = choose(b, out)
	}
	return out, nil
}

func parseBranch(v Value, vars *Vars) (branch, error) {
	raw, err := fields("$switch branch", v, 40063, []string{"case", "then"}, nil)
	if err != nil {
		return branch{}, err
	}
	when, err := Parse(raw["case"], vars)
	if err != nil {
		return branch{}, err
	}
	then, err := Parse(raw["then"], vars)
	return branch{when, then}, err
}

func parseIfNull(name string, arg Value, vars *Vars) (*Expr, error) {
	args, err := parseArgs(name, arg, vars, 0, -1)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, value.Errorf(1257300, "$ifNull needs at least two arguments, had: %d", len(args))
	}
	return &Expr{eval: func(e *env) (Value, error) {
		for _, x := range args[:len(args)-1] {
			v, err := x.eval(e)
			if err != nil || !value.IsNullish(v) {
				return v, err
			}
		}
		return args[len(args)-1].eval(e)
	}}, nil
}
