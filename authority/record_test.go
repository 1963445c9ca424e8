package authority

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

var plain = shape{Standard, Fields{Revision: "revision", Roles: "roles"}}

func TestAMalformedDocumentIsNoRecord(t *testing.T) {
	id := ID{1, 2, 3}
	key := bson.E{Key: "_id", Value: Standard.Binary(id)}
	rev, roles := bson.E{Key: "revision", Value: int64(3)}, bson.E{Key: "roles", Value: bson.A{"admin"}}
	for name, doc := range map[string]bson.D{
		"empty":              {},
		"no id":              {rev, roles},
		"text id":            {{Key: "_id", Value: id.String()}, rev, roles},
		"other subtype":      {{Key: "_id", Value: CSharpLegacy.Binary(id)}, rev, roles},
		"short id":           {{Key: "_id", Value: bson.Binary{Subtype: 4, Data: id[:15]}}, rev, roles},
		"somebody else":      {{Key: "_id", Value: Standard.Binary(ID{9})}, rev, roles},
		"id twice":           {key, key, rev, roles},
		"no revision":        {key, roles},
		"double revision":    {key, {Key: "revision", Value: 3.0}, roles},
		"text revision":      {key, {Key: "revision", Value: "3"}, roles},
		"revision 0":         {key, {Key: "revision", Value: int64(0)}, roles},
		"negative revision":  {key, {Key: "revision", Value: int64(math.MinInt64)}, roles},
		"null revision":      {key, {Key: "revision", Value: nil}, roles},
		"revision twice":     {key, rev, rev, roles},
		"no roles":           {key, rev},
		"null roles":         {key, rev, {Key: "roles", Value: nil}},
		"text roles":         {key, rev, {Key: "roles", Value: "admin"}},
		"document of roles":  {key, rev, {Key: "roles", Value: bson.D{{Key: "0", Value: "admin"}}}},
		"a number as role":   {key, rev, {Key: "roles", Value: bson.A{"admin", 1}}},
		"a null as role":     {key, rev, {Key: "roles", Value: bson.A{nil}}},
		"a nested role":      {key, rev, {Key: "roles", Value: bson.A{bson.A{"admin"}}}},
		"an empty role":      {key, rev, {Key: "roles", Value: bson.A{""}}},
		"a symbol as role":   {key, rev, {Key: "roles", Value: bson.A{bson.Symbol("admin")}}},
		"roles twice":        {key, rev, roles, {Key: "roles", Value: bson.A{}}},
		"other letter cases": {key, {Key: "Revision", Value: int64(3)}, {Key: "Roles", Value: bson.A{"admin"}}},
	} {
		raw, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := plain.parse(raw, id); err == nil || rec.Found || rec.Has("admin") {
			t.Errorf("%s: taken for a record: %+v, %v", name, rec, err)
		}
	}
	whole, err := bson.Marshal(bson.D{key, rev, roles, {Key: "name", Value: "Ada"}})
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := plain.parse(whole, id); err != nil || !rec.Has("admin") || rec.Revision != 3 {
		t.Fatalf("a good record is refused, so the cases above show nothing: %+v, %v", rec, err)
	}
	for n := range whole {
		if rec, err := plain.parse(whole[:n], id); err == nil || rec.Has("admin") {
			t.Errorf("the first %d bytes of %d are taken for a record", n, len(whole))
		}
	}
}

func TestNobodyHasTheEmptyRole(t *testing.T) {
	if (Record{Found: true, Revision: 1, Roles: []string{""}}).Has("") {
		t.Fatal("the empty role is held")
	}
}

func TestAnyBytesAreRefusedOrRead(t *testing.T) {
	id := ID{7}
	good, err := bson.Marshal(bson.D{{Key: "_id", Value: Standard.Binary(id)}, {Key: "revision", Value: int32(1)}, {Key: "roles", Value: bson.A{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(good)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		rec, err := plain.parse(b, id)
		if err == nil && (rec.ID != id || !rec.Found || rec.Revision < 1 || slices.Contains(rec.Roles, "")) {
			t.Fatalf("%x became %+v", b, rec)
		}
	})
}

func TestIDsAndLayouts(t *testing.T) {
	// A known pair: 00112233-4455-6677-8899-aabbccddeeff as the C# driver stores it.
	id, err := ParseID("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	b := CSharpLegacy.Binary(id)
	if want := []byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}; b.Subtype != 3 || !bytes.Equal(b.Data, want) {
		t.Errorf("C# layout: subtype %d, %x", b.Subtype, b.Data)
	}
	if b := Standard.Binary(id); b.Subtype != 4 || !bytes.Equal(b.Data, id[:]) {
		t.Errorf("standard layout: subtype %d, %x", b.Subtype, b.Data)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if back, err := ParseID(strings.ToUpper(id.String())); err != nil || back != id {
			t.Fatalf("%s read as %s, %v", id, back, err)
		}
		for _, l := range []Layout{Standard, CSharpLegacy} {
			b := l.Binary(id)
			if back, err := l.parse(b.Subtype, b.Data); err != nil || back != id {
				t.Fatalf("layout %d: %s came back as %s, %v", l, id, back, err)
			}
		}
	})
	for _, s := range []string{"", "00112233445566778899aabbccddeeff", "{00112233-4455-6677-8899-aabbccddeeff}", "00112233-4455-6677-8899-aabbccddeeg0", "00112233-4455-6677-8899-aabbccddeef", "0011-22334455-6677-8899-aabbccddeeff", strings.Repeat("x", 1000)} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("%.50q is read as %s", s, id)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]Options{
		"negative deadline": {Deadline: -1}, "a deadline below maxTimeMS": {Deadline: 1000}, "a deadline for which the driver sends no maxTimeMS": {Deadline: maxDeadline + 1},
		"layout": {Layout: 7}, "id as field": {Fields: Fields{Roles: "_id"}}, "nested field": {Fields: Fields{Roles: "a.b"}},
		"operator as field": {Fields: Fields{Revision: "$inc"}}, "one field for both": {Fields: Fields{Revision: "x", Roles: "x"}},
	} {
		if _, err := NewReader(nil, o); err == nil {
			t.Errorf("%s: a reader was made", name)
		}
		if _, err := NewWriter(nil, o); err == nil {
			t.Errorf("%s: a writer was made", name)
		}
	}
}
