package expr

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// System is what expressions see of the world around them.
type System struct {
	// Now is $$NOW, one instant for a whole command. Zero is the epoch's begin.
	Now time.Time
	// ClusterTime is $$CLUSTER_TIME. Zero means that the variable does not exist.
	ClusterTime struct{ T, I uint32 }
	// Rand gives numbers in [0, 1). Nil makes $rand, $sampleRate and $sample errors.
	Rand func() float64
	// Collation is the order of strings; nil is by bytes.
	Collation *value.Collation
}

// Vars are the variables in sight: the system's, and user variables, the innermost
// first. Vars are immutable. A nil *Vars has no user variables and a zero System.
type Vars struct {
	sys   *System
	name  string
	value value.Value
	outer *Vars
}

var noSystem System

// NewVars evaluates a command's let document, once. The expressions in it see no
// document.
func NewVars(let bsoncore.Document, sys System) (*Vars, error) {
	base := &Vars{sys: &sys}
	out := base
	for name, v := range value.Fields(let) {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		e, err := Parse(v, base)
		if err != nil {
			return nil, err
		}
		got, err := e.Eval(value.Missing, base)
		if err != nil {
			return nil, err
		}
		out = out.With(name, value.Clone(got))
	}
	return out, nil
}

// With adds a variable, which hides an outer one of the same name.
func (vs *Vars) With(name string, v value.Value) *Vars {
	return &Vars{sys: vs.System(), name: name, value: v, outer: vs}
}

// Let is a let document that gives the same user variables again, whenever and wherever
// it is evaluated.
func (vs *Vars) Let() bsoncore.Document {
	var names []*Vars
	for v := vs; v != nil; v = v.outer {
		if v.name != "" && !slices.ContainsFunc(names, func(o *Vars) bool { return o.name == v.name }) {
			names = append(names, v)
		}
	}
	b := bsoncore.NewDocumentBuilder()
	for _, v := range slices.Backward(names) {
		if value.IsMissing(v.value) {
			b.AppendString(v.name, "$$REMOVE")
		} else {
			b.AppendDocument(v.name, bsoncore.NewDocumentBuilder().AppendValue("$literal", v.value).Build())
		}
	}
	return b.Build()
}

// System is what the variables were made with.
func (vs *Vars) System() *System {
	if vs == nil || vs.sys == nil {
		return &noSystem
	}
	return vs.sys
}

// Collated are the same variables under another collation.
func (vs *Vars) Collated(c *value.Collation) *Vars {
	if vs.Collation() == c {
		return vs
	}
	sys := *vs.System()
	sys.Collation = c
	out := &Vars{sys: &sys}
	if vs != nil {
		out.name, out.value, out.outer = vs.name, vs.value, vs.outer
	}
	return out
}

// Collation is the order of strings; nil is by bytes.
func (vs *Vars) Collation() *value.Collation { return vs.System().Collation }

func (vs *Vars) find(name string) (value.Value, bool) {
	for v := vs; v != nil; v = v.outer {
		if v.name == name {
			return v.value, true
		}
	}
	return value.Missing, false
}

// CheckName refuses what cannot be the name of a user variable. Errors: 16866 to
// 16868.
func CheckName(name string) error {
	if name == "" {
		return value.Errorf(16866, "empty variable names are not allowed")
	}
	if c := name[0]; !(c >= 'a' && c <= 'z') && c < 0x80 {
		return value.Errorf(16867, "'%s' starts with an invalid character for a user variable name", name)
	}
	for i := 1; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80) {
			return value.Errorf(16868, "'%s' contains an invalid character for a variable name: '%c'", name, c)
		}
	}
	return nil
}
