package authority

import (
	"encoding/hex"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ID is a person's UUID, in the byte order of its text (RFC 9562).
type ID [16]byte

// ParseID reads the usual text of a UUID, 8-4-4-4-12 hexadecimal digits of either
// case. Braces, a URN prefix and text without dashes are errors: an id comes from a
// token or a URL, where another spelling is a sign that something is wrong.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("authority: %.40q is not a UUID of the form 8-4-4-4-12", s)
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("authority: %.40q is not a UUID: %w", s, err)
	}
	return id, nil
}

// String is the usual text of a UUID.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Layout is how a UUID lies in the _id of a document. A wrong layout finds nobody,
// so that everybody is denied.
type Layout int

const (
	// Standard is BinData subtype 4: the bytes in the order of the text.
	Standard Layout = iota
	// CSharpLegacy is BinData subtype 3 as the C# driver wrote it: the first three
	// groups are little-endian.
	CSharpLegacy
)

const (
	subtypeLegacy   = bson.TypeBinaryUUIDOld
	subtypeStandard = bson.TypeBinaryUUID
)

func (l Layout) check() error {
	if l != Standard && l != CSharpLegacy {
		return fmt.Errorf("authority: no layout %d of a UUID", l)
	}
	return nil
}

// Binary is the value of _id for a person.
func (l Layout) Binary(id ID) bson.Binary {
	if l == CSharpLegacy {
		b := swapped(id)
		return bson.Binary{Subtype: subtypeLegacy, Data: b[:]}
	}
	return bson.Binary{Subtype: subtypeStandard, Data: id[:]}
}

// parse is the inverse of Binary. A value of the other subtype is an error: the same
// bytes would be another person.
func (l Layout) parse(subtype byte, data []byte) (ID, error) {
	want := l.Binary(ID{}).Subtype
	if subtype != want {
		return ID{}, fmt.Errorf("_id has BinData subtype %d, not %d", subtype, want)
	}
	if len(data) != len(ID{}) {
		return ID{}, errors.New("_id is not 16 bytes long")
	}
	id := ID(data)
	if l == CSharpLegacy {
		id = swapped(id)
	}
	return id, nil
}

func swapped(id ID) ID {
	id[0], id[1], id[2], id[3] = id[3], id[2], id[1], id[0]
	id[4], id[5] = id[5], id[4]
	id[6], id[7] = id[7], id[6]
	return id
}
