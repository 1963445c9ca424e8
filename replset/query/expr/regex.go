package expr

import (
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// pattern compiles the regex argument of $regexMatch and its like. ok is false if
// the answer is that of null.
func (a namedArgs) pattern() (re *value.Regexp, input string, ok bool, err error) {
	in := a["input"]
	if !value.IsNullish(in) && !value.IsString(in) {
		return nil, "", false, value.Errorf(51104, "$regexMatch needs 'input' to be of type string")
	}
	pat, opts := a["regex"], a["options"]
	if value.IsNullish(pat) {
		return nil, "", false, nil
	}
	var source, flags string
	switch {
	case value.IsString(pat):
		source = value.Str(pat)
	case pat.Type == bsoncore.TypeRegex:
		source, flags = pat.Regex()
	default:
		return nil, "", false, value.Errorf(51105, "$regexMatch needs 'regex' to be of type string or regex")
	}
	if !value.IsNullish(opts) {
		if !value.IsString(opts) {
			return nil, "", false, value.Errorf(51106, "$regexMatch needs 'options' to be of type string")
		}
		if flags != "" {
			return nil, "", false, value.Errorf(51107, "$regexMatch: found regex option(s) specified in both 'regex' and 'option' fields")
		}
		flags = value.Str(opts)
	}
	re, err = value.CompileRegex(source, flags, 51111)
	return re, value.Str(in), err == nil && value.IsString(in), err
}

func regexMatch(a namedArgs) (Value, error) {
	re, input, ok, err := a.pattern()
	if err != nil || !ok {
		return value.Bool(false), err
	}
	return value.Bool(re.MatchString(input)), nil
}

func regexFind(a namedArgs) (Value, error) {
	re, input, ok, err := a.pattern()
	if err != nil || !ok {
		return value.Null, err
	}
	at := re.FindStringSubmatchIndex(input)
	if at == nil {
		return value.Null, nil
	}
	return foundAt(input, at), nil
}

func regexFindAll(a namedArgs) (Value, error) {
	re, input, ok, err := a.pattern()
	if err != nil {
		return value.Missing, err
	}
	var b value.Builder
	if ok {
		for _, at := range re.FindAllStringSubmatchIndex(input, -1) {
			b.Push(foundAt(input, at))
		}
	}
	return b.Array(), nil
}

// foundAt describes one match; its position is counted in code points.
func foundAt(input string, at []int) Value {
	var captures, b value.Builder
	for i := 2; i+1 < len(at); i += 2 {
		if at[i] < 0 {
			captures.Push(value.Null)
			continue
		}
		captures.Push(value.String(input[at[i]:at[i+1]]))
	}
	b.Add("match", value.String(strings.Clone(input[at[0]:at[1]])))
	b.Add("idx", value.Int32(int32(utf8.RuneCountInString(input[:at[0]]))))
	b.Add("captures", captures.Array())
	return b.Value()
}
