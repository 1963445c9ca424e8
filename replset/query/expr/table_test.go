package expr

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/query/value/valuetest"
)

// argument draws a value, or a literal that some operator will understand.
func argument(t *rapid.T) Value {
	switch rapid.IntRange(0, 5).Draw(t, "argument") {
	case 0:
		return value.String(rapid.SampledFrom([]string{"day", "month", "week", "%Y-%m-%d", "+01:00", "mon", "int", "i", "(a)|b", "2026-01-02"}).Draw(t, "word"))
	case 1:
		return value.Missing
	case 2:
		return value.Int32(int32(rapid.IntRange(-2, 40).Draw(t, "small")))
	}
	return valuetest.Value(t, 2)
}

// survives: an operator gives BSON or an error with a code, whatever it gets.
func survives(t *rapid.T, name string, got Value, err error) {
	var e *value.Error
	if err != nil {
		if !errors.As(err, &e) || e.Code == 0 || e.Message == "" {
			t.Fatalf("%s: an error without a code: %v", name, err)
		}
		return
	}
	var b value.Builder
	b.Add("v", got)
	if err := value.Validate(b.Document()); errors.As(err, &e) && e.Code == value.InvalidBSON {
		t.Fatalf("%s gives no BSON: %v", name, err)
	}
}

func TestEagerOperatorsSurviveAnyArguments(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(eager)) {
		op := eager[name]
		rapid.Check(t, func(t *rapid.T) {
			hi := op.hi
			if hi < 0 {
				hi = op.lo + 3
			}
			args := make([]Value, rapid.IntRange(op.lo, hi).Draw(t, "count"))
			for i := range args {
				args[i] = argument(t)
			}
			got, err := op.apply(args)
			survives(t, name, got, err)
		})
	}
}

func TestNamedOperatorsSurviveAnyArguments(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		op := named[name]
		rapid.Check(t, func(t *rapid.T) {
			args := namedArgs{}
			for _, k := range op.required {
				args[k] = argument(t)
			}
			for _, k := range op.optional {
				if rapid.Bool().Draw(t, "has "+k) {
					args[k] = argument(t)
				}
			}
			got, err := op.apply(args)
			survives(t, name, got, err)
		})
	}
}

func TestAccumulatorsSurviveAnyValues(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(accumulators)) {
		rapid.Check(t, func(t *rapid.T) {
			acc := accumulators[name](nil)
			for range rapid.IntRange(0, 4).Draw(t, "count") {
				if err := acc.Add(argument(t)); err != nil {
					survives(t, name, value.Missing, err)
					return
				}
			}
			survives(t, name, acc.Result(), nil)
		})
	}
}

// No operator is in two tables, or supported and unsupported at once.
func TestTablesDoNotOverlap(t *testing.T) {
	for name := range eager {
		if _, twice := named[name]; twice || unsupported[name] || specialForm(name) != nil {
			t.Errorf("%s is in two tables", name)
		}
	}
	for name := range named {
		if unsupported[name] || specialForm(name) != nil {
			t.Errorf("%s is in two tables", name)
		}
	}
	for name := range unsupported {
		if specialForm(name) != nil {
			t.Errorf("%s is in two tables", name)
		}
	}
}

// The sum of a group does not depend on the order in which its whole numbers come,
// and stays whole while it fits.
func TestSumOfWholeNumbersIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int32(), 0, 20).Draw(t, "ints")
		want, acc := int64(0), accumulators["$sum"](nil)
		for _, i := range list {
			want += int64(i)
			if err := acc.Add(value.Int32(i)); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := value.Integer(acc.Result()); !ok || got != want {
			t.Fatalf("%s, want %d", acc.Result(), want)
		}
	})
}

func TestUnsupportedSaysSo(t *testing.T) {
	for name := range unsupported {
		raw, err := bson.Marshal(bson.D{{Key: name, Value: 1}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(value.Doc(raw), nil)
		var e *value.Error
		if !errors.As(err, &e) || e.Code != value.NotImplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
}
