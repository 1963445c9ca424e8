package query

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// tree is a document that can be changed. A node stays raw bytes until something
// below it changes, so that an update costs what it touches and not what the
// document holds.
type tree struct {
	raw  Value
	open bool // kids hold the content, raw only the type
	kids []branch
}

// branch is a field of a document, or an element of an array, whose key is not used.
type branch struct {
	key string
	sub *tree
}

func newTree(v Value) *tree { return &tree{raw: v} }

func emptyDocument() Value {
	return value.Doc(bsoncore.Document{5, 0, 0, 0, 0})
}

func (t *tree) isDocument() bool { return value.IsDocument(t.raw) }
func (t *tree) isArray() bool    { return value.IsArray(t.raw) }

// unfold makes the children changeable.
func (t *tree) unfold() {
	if t.open {
		return
	}
	t.open = true
	for k, v := range value.Fields(t.raw.Data) {
		t.kids = append(t.kids, branch{k, newTree(v)})
	}
}

// find is the place of a field or of an array position, or -1.
func (t *tree) find(key string) int {
	t.unfold()
	if t.isArray() {
		if n, ok := position(key); ok && n < len(t.kids) {
			return n
		}
		return -1
	}
	for i := range t.kids {
		if t.kids[i].key == key {
			return i
		}
	}
	return -1
}

func (t *tree) add(key string, sub *tree) { t.kids = append(t.kids, branch{key, sub}) }

func (t *tree) removeAt(i int) { t.kids = append(t.kids[:i], t.kids[i+1:]...) }

// value is the tree as BSON.
func (t *tree) value() Value {
	if !t.open {
		return t.raw
	}
	var b value.Builder
	for i := range t.kids {
		if t.isArray() {
			b.Push(t.kids[i].sub.value())
			continue
		}
		b.Add(t.kids[i].key, t.kids[i].sub.value())
	}
	if t.isArray() {
		return b.Array()
	}
	return b.Value()
}

// pathSet notices paths of which one contains another.
type pathSet struct {
	full  map[string]bool
	inner map[string]bool // proper beginnings of those in full
}

// add adds a path. If it contains, is contained in or is one that was added before,
// conflict is where they meet.
func (s *pathSet) add(path string) (conflict string, ok bool) {
	if s.full == nil {
		s.full, s.inner = map[string]bool{}, map[string]bool{}
	}
	if s.full[path] || s.inner[path] {
		return path, false
	}
	for i := range path {
		if path[i] == '.' {
			if s.full[path[:i]] {
				return path[:i], false
			}
		}
	}
	for i := range path {
		if path[i] == '.' {
			s.inner[path[:i]] = true
		}
	}
	s.full[path] = true
	return "", true
}

func joinPath(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func indexKey(i int) string { return strconv.Itoa(i) }
