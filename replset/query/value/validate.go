package value

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// MaxDocumentSize is the most bytes a stored document may have.
const MaxDocumentSize = 16 << 20

// MaxNesting is the most levels of documents and arrays, the outermost included.
const MaxNesting = 100

// Validate checks that a document is well-formed BSON, at most MaxDocumentSize
// bytes long and not nested deeper than MaxNesting. Nothing else in this package or
// those above it checks its input's form again. Errors: 22, 10334, 15.
func Validate(doc []byte) error {
	if len(doc) > MaxDocumentSize {
		return Errorf(BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", len(doc), len(doc), MaxDocumentSize)
	}
	return validateDocument(doc, 1)
}

func malformed(what string) error { return Errorf(InvalidBSON, "invalid BSON: %s", what) }

func validateDocument(doc []byte, depth int) error {
	if depth > MaxNesting {
		return Errorf(Overflow, "BSON document nested deeper than the maximum of %d levels", MaxNesting)
	}
	if len(doc) < 5 || int(binary.LittleEndian.Uint32(doc)) != len(doc) || doc[len(doc)-1] != 0 {
		return malformed("length of a document")
	}
	for rest := doc[4:]; len(rest) > 1; {
		_, v, tail, ok := next(rest)
		if !ok {
			return malformed("element of a document")
		}
		if err := validateValue(v, depth); err != nil {
			return err
		}
		rest = tail
		if len(rest) == 0 {
			return malformed("end of a document")
		}
	}
	return nil
}

func validateValue(v Value, depth int) error {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return validateDocument(v.Data, depth+1)
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		return validateText(v.Data)
	case bsoncore.TypeBoolean:
		if v.Data[0] > 1 {
			return malformed("boolean")
		}
	case bsoncore.TypeCodeWithScope:
		return validateScoped(v.Data, depth)
	case bsoncore.TypeBinary:
		return validateBinary(v)
	}
	return nil
}

func validateBinary(v Value) error {
	if _, _, ok := v.BinaryOK(); !ok {
		return malformed("binary")
	}
	return nil
}

func validateText(data []byte) error {
	if len(data) < 5 || int(binary.LittleEndian.Uint32(data)) != len(data)-4 || data[len(data)-1] != 0 {
		return malformed("length of a string")
	}
	return nil
}

func validateScoped(data []byte, depth int) error {
	if len(data) < 8 {
		return malformed("code with scope")
	}
	s, rest, ok := bsoncore.ReadValue(data[4:], bsoncore.TypeString)
	if !ok {
		return malformed("code with scope")
	}
	if err := validateText(s.Data); err != nil {
		return err
	}
	return validateDocument(rest, depth+1)
}
