package value

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Collation is an order of strings by the rules of a language: the Unicode
// Collation Algorithm with CLDR's tailorings, of the version that
// golang.org/x/text/collate carries. A nil Collation is the simple one, by bytes.
//
// Everything else that compares goes through Fold: it replaces each string of a value
// by its sort key, so that the keys and the order of this package, which are by
// bytes, do the rest. What a fold gives may be compared and made a key of, and nothing
// else: it is no text.
type Collation struct {
	strength  int
	caseLevel bool

	mu     sync.Mutex // a Collator keeps its place in itself
	levels *collate.Collator
	lesser *collate.Collator // without the third level, for a case level before it
	buf    collate.Buffer
}

// collations are the languages that MongoDB names, without variants.
var collations = strings.Fields(`af am ar as az be bg bn bo bs ca chr cs cy da de dsb dz ee el en eo es et fa fi fil fo fr ga gl gu ha haw he hi hr hsb hu hy
	id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl smn sq sr sv sw ta te
	th to tr ug uk ur vi wae yi yo zh zu`)

// refusedCollations are fields with the only value that is supported.
var refusedCollations = map[string]string{
	"caseFirst": "off", "alternate": "non-ignorable", "maxVariable": "", "backwards": "false", "normalization": "false", "version": "57.1",
}

// ParseCollation parses a collation document. An empty one, and the locale simple,
// give nil. Supported are locale, strength 1 to 3, caseLevel and numericOrdering. Errors: 9
// and 2 for a malformed one, 238 for what is not supported.
func ParseCollation(doc bsoncore.Document) (*Collation, error) {
	if Len(doc) == 0 {
		return nil, nil
	}
	c := &Collation{strength: 3}
	locale, numeric := "", false
	for k, v := range Fields(doc) {
		ok := true
		switch k {
		case "locale":
			locale, ok = Str(v), IsString(v)
		case "strength":
			n, whole := Integer(v)
			if !whole || n < 1 || n > 5 {
				return nil, Errorf(BadValue, "BSON field 'collation.strength' must be between 1 and 5")
			}
			c.strength = int(n)
		case "caseLevel":
			c.caseLevel, ok = v.BooleanOK()
		case "numericOrdering":
			numeric, ok = v.BooleanOK()
		default:
			only, known := refusedCollations[k]
			if !known {
				return nil, Errorf(40415, "BSON field 'collation.%s' is an unknown field.", k)
			}
			if got := strings.Trim(v.String(), `"`); got != only {
				return nil, Errorf(NotImplemented, "collation option %s: %s is not supported", k, got)
			}
		}
		if !ok {
			return nil, Errorf(TypeMismatch, "BSON field 'collation.%s' is the wrong type '%s'", k, TypeName(v))
		}
	}
	switch {
	case locale == "" && IsMissing(Lookup(doc, "locale")):
		return nil, Errorf(40414, "BSON field 'collation.locale' is missing but a required field")
	case locale == "simple" && Len(doc) > 1:
		return nil, Errorf(BadValue, "Collation spec may not specify options other than the locale if the locale is 'simple'")
	case locale == "simple":
		return nil, nil
	case c.strength > 3:
		return nil, Errorf(NotImplemented, "collation strength %d is not supported", c.strength)
	}
	return c, c.open(locale, numeric)
}

func (c *Collation) open(locale string, numeric bool) error {
	bad := Errorf(BadValue, "Field 'locale' is invalid in: { locale: %q }", locale)
	if strings.ContainsAny(locale, "@-") {
		return Errorf(NotImplemented, "collation locale %q with keywords is not supported", locale)
	}
	tag, err := language.Parse(strings.ReplaceAll(locale, "_", "-"))
	if err != nil || len(tag.Variants()) > 0 {
		return bad
	}
	if base, _ := tag.Base(); !slices.Contains(collations, base.String()) {
		return bad
	}
	var opts []collate.Option
	if numeric {
		opts = append(opts, collate.Numeric)
	}
	lesser := append(slices.Clone(opts), collate.IgnoreCase, collate.IgnoreWidth, collate.IgnoreCase)
	switch c.strength {
	case 1:
		opts = append(opts, collate.Loose)
	case 2:
		opts = lesser
	}
	c.levels = collate.New(tag, opts...)
	if c.caseLevel && c.strength == 3 {
		c.lesser = collate.New(tag, lesser...)
	}
	return nil
}

// Fold is v with each string in it replaced by its sort key.
func (c *Collation) Fold(v Value) Value {
	if c == nil || !c.Concerns(v) {
		return v
	}
	switch {
	case IsDocument(v):
		var b Builder
		for k, e := range Fields(v.Data) {
			b.Add(k, c.Fold(e))
		}
		return b.Value()
	case IsArray(v):
		var b Builder
		for e := range Elements(v.Data) {
			b.Push(c.Fold(e))
		}
		return b.Array()
	}
	key := c.key(Str(v))
	data := make([]byte, 0, len(key)+5)
	n := len(key) + 1
	data = append(data, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return Value{Type: bsoncore.TypeString, Data: append(append(data, key...), 0)}
}

// Concerns says whether comparing with v can depend on the collation.
func (c *Collation) Concerns(v Value) bool {
	return c != nil && (ClassOf(v) == ClassString || IsDocument(v) || IsArray(v))
}

func (c *Collation) key(s string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf.Reset()
	if !c.caseLevel {
		return bytes.Clone(c.levels.KeyFromString(&c.buf, s))
	}
	first := c.levels
	if c.lesser != nil {
		first = c.lesser
	}
	out := bytes.Clone(first.KeyFromString(&c.buf, s))
	out = append(out, 0, 0, 0)
	// Marks have no case of their own: an accent must not count where it is ignored.
	for _, r := range norm.NFD.String(s) {
		switch {
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			out = append(out, 2)
		case unicode.IsLetter(r):
			out = append(out, 1)
		}
	}
	if c.lesser != nil {
		c.buf.Reset()
		out = append(append(out, 0), c.levels.KeyFromString(&c.buf, s)...)
	}
	return out
}

// Compare is Compare by this order.
func (c *Collation) Compare(a, b Value) int {
	if c == nil {
		return Compare(a, b)
	}
	return Compare(c.Fold(a), c.Fold(b))
}

// Equal says whether Compare finds no difference.
func (c *Collation) Equal(a, b Value) bool { return c.Compare(a, b) == 0 }

// KeyOf is KeyOf by this order.
func (c *Collation) KeyOf(v Value) []byte { return KeyOf(c.Fold(v)) }
