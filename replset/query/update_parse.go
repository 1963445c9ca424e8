package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

// operation is one operator on one path.
type operation struct {
	name     string
	path     []string
	full     string
	create   bool // a path that is not there is made, and change called with Missing
	onInsert bool
	rename   []string // $rename: the source; path is the target
	change   change
}

// change computes a field's new value from its old one, which is Missing only if the
// operation creates. Missing as a result removes the field.
type change func(r *applying, path string, old Value) (Value, error)

// operatorParser makes a change of an operator's operand.
type operatorParser struct {
	create bool
	parse  func(u *Update, path string, arg Value) (change, error)
}

// updateOperators is a switch and not a map because $pull parses filters, which
// would make the table depend on itself.
func updateOperators(name string) (operatorParser, bool) {
	switch name {
	case "$set", "$setOnInsert":
		return operatorParser{true, parseSet}, true
	case "$unset":
		return operatorParser{false, parseUnset}, true
	case "$inc":
		return operatorParser{true, parseInc}, true
	case "$mul":
		return operatorParser{true, parseMul}, true
	case "$min":
		return operatorParser{true, parseMin}, true
	case "$max":
		return operatorParser{true, parseMax}, true
	case "$currentDate":
		return operatorParser{true, parseCurrentDate}, true
	case "$bit":
		return operatorParser{true, parseBit}, true
	case "$push":
		return operatorParser{true, parsePush}, true
	case "$addToSet":
		return operatorParser{true, parseAddToSet}, true
	case "$pop":
		return operatorParser{false, parsePop}, true
	case "$pull":
		return operatorParser{false, parsePull}, true
	case "$pullAll":
		return operatorParser{false, parsePullAll}, true
	}
	return operatorParser{}, false
}

func (u *Update) parseOperators(all Value) error {
	var seen pathSet
	used := map[string]bool{}
	for name, fields := range value.Fields(all.Data) {
		op, known := updateOperators(name)
		if !known && name != "$rename" {
			return value.Errorf(value.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", name)
		}
		if !value.IsDocument(fields) {
			return value.Errorf(value.FailedToParse, "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}", value.TypeName(fields), name, value.Show(fields))
		}
		for path, arg := range value.Fields(fields.Data) {
			if err := u.parseOperation(name, op, path, arg, &seen, used); err != nil {
				return err
			}
		}
	}
	for id := range u.filters {
		if !used[id] {
			return value.Errorf(value.FailedToParse, "The array filter for identifier '%s' was not used in the update %s", id, value.Show(all))
		}
	}
	// The server changes fields in the order of their paths, not of the statement; new
	// fields are appended in that order.
	slices.SortStableFunc(u.ops, func(a, b operation) int { return slices.CompareFunc(a.path, b.path, comparePart) })
	return nil
}

// comparePart orders field names by bytes, and positions as numbers.
func comparePart(a, b string) int {
	x, okX := position(a)
	y, okY := position(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}

func (u *Update) parseOperation(name string, parser operatorParser, path string, arg Value, seen *pathSet, used map[string]bool) error {
	op := operation{name: name, full: path, create: parser.create, onInsert: name == "$setOnInsert"}
	var err error
	if op.path, err = u.parsePath(name, path, used); err != nil {
		return err
	}
	if at, ok := seen.add(path); !ok {
		return conflict(path, at)
	}
	if name == "$rename" {
		return u.parseRename(op, arg, seen)
	}
	if op.change, err = parser.parse(u, path, arg); err != nil {
		return err
	}
	u.ops = append(u.ops, op)
	return nil
}

// parsePath checks a path and the positional parts in it.
func (u *Update) parsePath(op, path string, used map[string]bool) ([]string, error) {
	parts := splitPath(path)
	for i, part := range parts {
		switch {
		case part == "":
			return nil, value.Errorf(value.EmptyFieldName, "The update path '%s' contains an empty field name, which is not allowed.", path)
		case part == "$" || part == "$[]":
			u.dynamic = true
		case strings.HasPrefix(part, "$[") && strings.HasSuffix(part, "]"):
			u.dynamic = true
			id := part[2 : len(part)-1]
			if u.filters[id] == nil {
				return nil, badValue("No array filter found for identifier '%s' in path '%s'", id, path)
			}
			used[id] = true
		case part[0] == '$':
			return nil, value.Errorf(value.DollarPrefixedField, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update operator", part, path)
		default:
			continue
		}
		if i == 0 {
			return nil, badValue("Cannot have array filter identifier or positional operator as the first part of the path '%s'", path)
		}
	}
	return parts, nil
}

func (u *Update) parseRename(op operation, arg Value, seen *pathSet) error {
	if !value.IsString(arg) {
		return badValue("The 'to' field for $rename must be a string: %s: %s", op.full, value.Show(arg))
	}
	from, to := op.full, value.Str(arg)
	if from == to {
		return badValue("The source and target field for $rename must differ: %s: %q", from, to)
	}
	target, err := u.parsePath("$rename", to, map[string]bool{})
	if err != nil {
		return err
	}
	for _, part := range append(slices.Clone(op.path), target...) {
		if strings.HasPrefix(part, "$") {
			return badValue("The source and destination field for $rename may not be dynamic: %s", from)
		}
	}
	if strings.HasPrefix(to, from+".") || strings.HasPrefix(from, to+".") {
		return badValue("The source and target field for $rename must not be on the same path: %s: %q", from, to)
	}
	if at, ok := seen.add(to); !ok {
		return conflict(to, at)
	}
	op.rename, op.path, op.full = op.path, target, to
	u.ops = append(u.ops, op)
	return nil
}
