package value

import (
	"fmt"
	"strconv"
)

// MongoDB's error codes that carry a name. A code without a name here is named
// Location<code>, as the server does.
const (
	BadValue             int32 = 2
	FailedToParse        int32 = 9
	TypeMismatch         int32 = 14
	Overflow             int32 = 15
	PathNotViable        int32 = 28
	ConflictingOperators int32 = 40
	DollarPrefixedField  int32 = 52
	NotSingleValueField  int32 = 54
	EmptyFieldName       int32 = 56
	ImmutableField       int32 = 66
	InvalidOptions       int32 = 72
	InvalidPipelineOp    int32 = 168
	ParallelArrays       int32 = 171
	NotImplemented       int32 = 238
	ConversionFailure    int32 = 241
	BSONObjectTooLarge   int32 = 10334
	InvalidBSON          int32 = 22
	InvalidIDField       int32 = 53
	CannotCreateIndex    int32 = 67
	DuplicateKey         int32 = 11000
	ExceededMemoryLimit  int32 = 146
	UnknownPipelineStage int32 = 40324
	UndefinedVariable    int32 = 17276
	WrongExpressionArity int32 = 16020
)

var codeNames = map[int32]string{
	BadValue:             "BadValue",
	FailedToParse:        "FailedToParse",
	TypeMismatch:         "TypeMismatch",
	Overflow:             "Overflow",
	InvalidBSON:          "InvalidBSON",
	PathNotViable:        "PathNotViable",
	ConflictingOperators: "ConflictingUpdateOperators",
	DollarPrefixedField:  "DollarPrefixedFieldName",
	InvalidIDField:       "InvalidIdField",
	NotSingleValueField:  "NotSingleValueField",
	EmptyFieldName:       "EmptyFieldName",
	ImmutableField:       "ImmutableField",
	CannotCreateIndex:    "CannotCreateIndex",
	InvalidOptions:       "InvalidOptions",
	ExceededMemoryLimit:  "ExceededMemoryLimit",
	InvalidPipelineOp:    "InvalidPipelineOperator",
	ParallelArrays:       "CannotIndexParallelArrays",
	NotImplemented:       "NotImplemented",
	ConversionFailure:    "ConversionFailure",
	BSONObjectTooLarge:   "BSONObjectTooLarge",
	DuplicateKey:         "DuplicateKey",
}

// CodeName is MongoDB's name of an error code.
func CodeName(code int32) string {
	if name, ok := codeNames[code]; ok {
		return name
	}
	return "Location" + strconv.Itoa(int(code))
}

// Error is an error as a command answers it: MongoDB's code, its name, a message.
type Error struct {
	Code    int32
	Name    string
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("(%s) %s", e.Name, e.Message) }

// Errorf makes an *Error; the name follows from the code.
func Errorf(code int32, format string, args ...any) error {
	return &Error{Code: code, Name: CodeName(code), Message: fmt.Sprintf(format, args...)}
}
