package authority

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Record is what the set holds about a person at one moment.
type Record struct {
	ID    ID
	Found bool // false: a majority agrees that there is no such person

	// Revision grows by one with each change; 1 or more, 0 where nothing was found.
	Revision int64
	Roles    []string
}

// Has says whether the person has the role. Nobody has the empty role.
func (r Record) Has(role string) bool { return role != "" && slices.Contains(r.Roles, role) }

// Fields are the names of a record's fields in the document; "" is "revision" and
// "roles". Other fields of the document are not fetched.
type Fields struct {
	Revision string // int64 or int32, 1 or more
	Roles    string // array of strings, none of them empty
}

func (f *Fields) check() error {
	if f.Revision == "" {
		f.Revision = "revision"
	}
	if f.Roles == "" {
		f.Roles = "roles"
	}
	for _, name := range []string{f.Revision, f.Roles} {
		if name == "_id" || name[0] == '$' || slices.ContainsFunc([]byte(name), func(b byte) bool { return b == '.' || b == 0 }) {
			return fmt.Errorf("authority: %q cannot be the field of a record: it must be a top-level field, not _id", name)
		}
	}
	if f.Revision == f.Roles {
		return fmt.Errorf("authority: revision and roles are both in the field %q", f.Roles)
	}
	return nil
}

// shape is how records lie in documents.
type shape struct {
	layout Layout
	fields Fields
}

// parse reads a document strictly. Whatever it does not fully understand is an error,
// since half of a record could be the half without the revocation.
func (s shape) parse(raw bson.Raw, want ID) (Record, error) {
	if err := raw.Validate(); err != nil {
		return Record{}, fmt.Errorf("not a BSON document: %w", err)
	}
	elements, err := raw.Elements()
	if err != nil {
		return Record{}, fmt.Errorf("not a BSON document: %w", err)
	}
	values := map[string]bson.RawValue{}
	for _, e := range elements {
		key := e.Key()
		if key != "_id" && key != s.fields.Revision && key != s.fields.Roles {
			continue
		}
		if _, twice := values[key]; twice {
			return Record{}, fmt.Errorf("field %q is there twice", key)
		}
		values[key] = e.Value()
	}
	subtype, data, ok := values["_id"].BinaryOK()
	if !ok {
		return Record{}, errors.New("_id is missing or no BinData")
	}
	id, err := s.layout.parse(subtype, data)
	if err != nil {
		return Record{}, err
	}
	if id != want {
		return Record{}, fmt.Errorf("the answer is about %s", id)
	}
	r := Record{ID: id, Found: true}
	if r.Revision, err = s.revision(values[s.fields.Revision]); err != nil {
		return Record{}, err
	}
	if r.Roles, err = s.roles(values[s.fields.Roles]); err != nil {
		return Record{}, err
	}
	return r, nil
}

func (s shape) revision(v bson.RawValue) (int64, error) {
	var n int64
	switch v.Type {
	case bson.TypeInt64:
		n = v.Int64()
	case bson.TypeInt32:
		n = int64(v.Int32())
	default:
		return 0, fmt.Errorf("field %q is missing or no whole number", s.fields.Revision)
	}
	if n < 1 {
		return 0, fmt.Errorf("field %q is %d; revisions begin at 1", s.fields.Revision, n)
	}
	return n, nil
}

func (s shape) roles(v bson.RawValue) ([]string, error) {
	array, ok := v.ArrayOK()
	if !ok {
		return nil, fmt.Errorf("field %q is missing or no array", s.fields.Roles)
	}
	values, err := array.Values()
	if err != nil {
		return nil, fmt.Errorf("field %q: %w", s.fields.Roles, err)
	}
	roles := make([]string, 0, len(values))
	for _, one := range values {
		role, ok := one.StringValueOK()
		if !ok || role == "" {
			return nil, fmt.Errorf("field %q holds something that is no role: %.40s", s.fields.Roles, one)
		}
		roles = append(roles, role)
	}
	return roles, nil
}
