package query

import (
	"strconv"
	"strings"

	"github.com/assaylab/assay/replset/query/value"
)

func splitPath(path string) []string { return strings.Split(path, ".") }

// position is the array position that a part of a path may stand for. "01" is none.
func position(part string) (int, bool) {
	if part == "" || len(part) > 9 || part[0] == '0' && len(part) > 1 {
		return 0, false
	}
	n, err := strconv.Atoi(part)
	return n, err == nil && n >= 0 && part[0] != '+'
}

// walk visits the values that a filter's path means in a document, until visit
// returns true, and says whether it did. It is the one place where these rules of
// MongoDB's live:
//
//   - An array on the way stands for each of its documents; what else it holds is
//     passed over, so that an empty array yields nothing at all.
//   - A number is also a position in such an array.
//   - With expand, an array at the end yields its elements and then itself.
//   - A field that is not there yields Missing, which null equals.
//
// index is the position in the outermost array that was gone through, or -1: what
// a positional operator refers to.
func walk(doc []byte, path []string, index int, expand bool, visit func(v Value, index int) bool) bool {
	return walkFrom(value.Lookup(doc, path[0]), path[1:], index, expand, visit)
}

func walkFrom(v Value, rest []string, index int, expand bool, visit func(Value, int) bool) bool {
	switch {
	case len(rest) == 0:
		return visitLeaf(v, index, expand, visit)
	case value.IsDocument(v):
		return walk(v.Data, rest, index, expand, visit)
	case value.IsArray(v):
		return walkArray(v, rest, index, expand, visit)
	}
	return visit(value.Missing, index)
}

func visitLeaf(v Value, index int, expand bool, visit func(Value, int) bool) bool {
	if expand && value.IsArray(v) {
		i := 0
		for e := range value.Elements(v.Data) {
			if visit(e, outermost(index, i)) {
				return true
			}
			i++
		}
	}
	return visit(v, index)
}

func outermost(index, i int) int {
	if index >= 0 {
		return index
	}
	return i
}

func walkArray(array Value, rest []string, index int, expand bool, visit func(Value, int) bool) bool {
	want, numeric := position(rest[0])
	i := -1
	for e := range value.Elements(array.Data) {
		i++
		if numeric && i == want {
			if len(rest) == 1 {
				if visit(e, index) {
					return true
				}
			} else if (value.IsDocument(e) || value.IsArray(e)) && walkFrom(e, rest[1:], index, expand, visit) {
				return true
			}
		}
		if value.IsDocument(e) && walk(e.Data, rest, outermost(index, i), expand, visit) {
			return true
		}
	}
	return false
}
