package expr

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

func isDate(v Value) bool { return v.Type == bsoncore.TypeDateTime }

func anyNullish(args []Value) bool {
	for _, a := range args {
		if value.IsNullish(a) {
			return true
		}
	}
	return false
}

func add(args []Value) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	sum := value.IntNumber(0)
	date := value.Missing
	for _, a := range args {
		switch {
		case value.IsNumber(a):
			sum, _ = value.Add(sum, value.NumberOf(a))
		case isDate(a) && value.IsMissing(date):
			date = a
		case isDate(a):
			return value.Missing, value.Errorf(16612, "only one date allowed in an $add expression")
		default:
			return value.Missing, value.Errorf(value.TypeMismatch, "$add only supports numeric or date types, not %s", value.TypeName(a))
		}
	}
	if value.IsMissing(date) {
		return sum.Value(), nil
	}
	return shiftDate(date, sum)
}

// shiftDate moves a date by milliseconds.
func shiftDate(date Value, by value.Number) (Value, error) {
	ms, ok := value.Round(by, 0, value.RoundHalfEven).Int64()
	if !ok {
		return value.Missing, value.Errorf(value.Overflow, "date overflow")
	}
	sum := value.Millis(date) + ms
	if (sum > value.Millis(date)) != (ms > 0) && ms != 0 {
		return value.Missing, value.Errorf(value.Overflow, "date overflow")
	}
	return value.Date(sum), nil
}

func subtract(a, b Value) (Value, error) {
	switch {
	case value.IsNullish(a) || value.IsNullish(b):
		return value.Null, nil
	case value.IsNumber(a) && value.IsNumber(b):
		return value.Sub(value.NumberOf(a), value.NumberOf(b)).Value(), nil
	case isDate(a) && isDate(b):
		return value.Int64(value.Millis(a) - value.Millis(b)), nil
	case isDate(a) && value.IsNumber(b):
		return shiftDate(a, value.Negate(value.NumberOf(b)))
	}
	return value.Missing, value.Errorf(value.TypeMismatch, "can't $subtract %s from %s", value.TypeName(b), value.TypeName(a))
}

func multiply(args []Value) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	product := value.IntNumber(1)
	for _, a := range args {
		if !value.IsNumber(a) {
			return value.Missing, value.Errorf(value.TypeMismatch, "$multiply only supports numeric types, not %s", value.TypeName(a))
		}
		product, _ = value.Mul(product, value.NumberOf(a))
	}
	return product.Value(), nil
}

func divide(a, b Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(b) {
		return value.Null, nil
	}
	if !value.IsNumber(a) || !value.IsNumber(b) {
		return value.Missing, value.Errorf(value.TypeMismatch, "$divide only supports numeric types, not %s and %s", value.TypeName(a), value.TypeName(b))
	}
	if value.NumberOf(b).IsZero() {
		return value.Missing, value.Errorf(value.BadValue, "can't $divide by zero")
	}
	return value.Quo(value.NumberOf(a), value.NumberOf(b)).Value(), nil
}

func mod(a, b Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(b) {
		return value.Null, nil
	}
	if !value.IsNumber(a) || !value.IsNumber(b) {
		return value.Missing, value.Errorf(16611, "$mod only supports numeric types, not %s and %s", value.TypeName(a), value.TypeName(b))
	}
	if value.NumberOf(b).IsZero() {
		return value.Missing, value.Errorf(16610, "can't $mod by zero")
	}
	return value.Rem(value.NumberOf(a), value.NumberOf(b)).Value(), nil
}

// numeric is the frame of a function of one number: null stays null, what is not a
// number is an error.
func numeric(name string, code int32, v Value, f func(value.Number) (value.Number, error)) (Value, error) {
	if value.IsNullish(v) {
		return value.Null, nil
	}
	if !value.IsNumber(v) {
		return value.Missing, value.Errorf(code, "%s only supports numeric types, not %s", name, value.TypeName(v))
	}
	n, err := f(value.NumberOf(v))
	if err != nil {
		return value.Missing, err
	}
	return n.Value(), nil
}

func abs(v Value) (Value, error) {
	return numeric("$abs", 28765, v, func(n value.Number) (value.Number, error) {
		if n.Sign() >= 0 {
			return n, nil
		}
		if i, ok := n.Int64(); ok && i == math.MinInt64 && n.Kind == value.KindLong {
			return n, value.Errorf(28680, "can't take $abs of long long min")
		}
		return value.Negate(n), nil
	})
}

func ceil(v Value) (Value, error) {
	return numeric("$ceil", 28765, v, func(n value.Number) (value.Number, error) { return value.Round(n, 0, value.RoundUp), nil })
}

func floor(v Value) (Value, error) {
	return numeric("$floor", 28765, v, func(n value.Number) (value.Number, error) { return value.Round(n, 0, value.RoundDown), nil })
}

func round(args []Value) (Value, error) { return roundTo("$round", value.RoundHalfEven, args) }
func trunc(args []Value) (Value, error) { return roundTo("$trunc", value.RoundToZero, args) }

func roundTo(name string, how value.Rounding, args []Value) (Value, error) {
	places := int64(0)
	if len(args) == 2 {
		if value.IsNullish(args[1]) {
			return value.Null, nil
		}
		p, ok := value.Integer(args[1])
		if !ok {
			return value.Missing, value.Errorf(51082, "precision argument to %s must be a integral value", name)
		}
		if p < -20 || p > 100 {
			return value.Missing, value.Errorf(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", name, p)
		}
		places = p
	}
	return numeric(name, 51081, args[0], func(n value.Number) (value.Number, error) {
		return value.Round(n, int(places), how), nil
	})
}

func pow(a, b Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(b) {
		return value.Null, nil
	}
	if !value.IsNumber(a) {
		return value.Missing, value.Errorf(28762, "$pow's base must be numeric, not %s", value.TypeName(a))
	}
	if !value.IsNumber(b) {
		return value.Missing, value.Errorf(28763, "$pow's exponent must be numeric, not %s", value.TypeName(b))
	}
	base, e := value.NumberOf(a), value.NumberOf(b)
	if base.IsZero() && e.Sign() < 0 {
		return value.Missing, value.Errorf(28764, "$pow cannot take a base of 0 and a negative exponent")
	}
	if base.Kind <= value.KindLong && e.Kind <= value.KindLong {
		if n, ok := intPow(base, e); ok {
			return n.Value(), nil
		}
	}
	if err := noDecimal("$pow", base, e); err != nil {
		return value.Missing, err
	}
	return value.Double(math.Pow(base.Float(), e.Float())), nil
}

// intPow fails where the result is no integer that fits.
func intPow(base, e value.Number) (value.Number, bool) {
	n, _ := e.Int64()
	if n < 0 {
		return base, false
	}
	if b, _ := base.Int64(); b == 0 || b == 1 || b == -1 {
		n = min(n, 2+n%2) // the powers of these repeat
	}
	out := value.IntNumber(1)
	if max(base.Kind, e.Kind) == value.KindLong {
		out = value.LongNumber(1)
	}
	for ; n > 0; n-- { // at most 63 rounds: then it has overflowed
		product, exact := value.Mul(out, base)
		if !exact {
			return base, false
		}
		out = product
	}
	return out, true
}

// noDecimal refuses what is computed in doubles only: a decimal would silently lose
// half its digits.
func noDecimal(name string, args ...value.Number) error {
	for _, n := range args {
		if n.Kind == value.KindDecimal {
			return value.Errorf(value.NotImplemented, "%s of a decimal is not supported", name)
		}
	}
	return nil
}

func sqrt(v Value) (Value, error) {
	return numeric("$sqrt", 28765, v, func(n value.Number) (value.Number, error) {
		if n.Sign() < 0 {
			return n, value.Errorf(28714, "$sqrt's argument must be greater than or equal to 0")
		}
		return value.Sqrt(n), nil
	})
}

// double is the frame of a function computed in doubles.
func double(name string, v Value, f func(float64) (float64, error)) (Value, error) {
	return numeric(name, 28765, v, func(n value.Number) (value.Number, error) {
		if err := noDecimal(name, n); err != nil {
			return n, err
		}
		got, err := f(n.Float())
		return value.DoubleNumber(got), err
	})
}

func exp(v Value) (Value, error) {
	return double("$exp", v, func(f float64) (float64, error) { return math.Exp(f), nil })
}

func ln(v Value) (Value, error) {
	return double("$ln", v, func(f float64) (float64, error) {
		if f <= 0 {
			return 0, value.Errorf(28766, "$ln's argument must be a positive number, but is %v", f)
		}
		return math.Log(f), nil
	})
}

func log10(v Value) (Value, error) {
	return double("$log10", v, func(f float64) (float64, error) {
		if f <= 0 {
			return 0, value.Errorf(28761, "$log10's argument must be a positive number, but is %v", f)
		}
		return math.Log10(f), nil
	})
}

func logBase(a, b Value) (Value, error) {
	if value.IsNullish(a) || value.IsNullish(b) {
		return value.Null, nil
	}
	if !value.IsNumber(a) {
		return value.Missing, value.Errorf(28756, "$log's argument must be numeric, not %s", value.TypeName(a))
	}
	if !value.IsNumber(b) {
		return value.Missing, value.Errorf(28757, "$log's base must be numeric, not %s", value.TypeName(b))
	}
	x, base := value.NumberOf(a), value.NumberOf(b)
	if err := noDecimal("$log", x, base); err != nil {
		return value.Missing, err
	}
	if x.Sign() <= 0 {
		return value.Missing, value.Errorf(28758, "$log's argument must be a positive number, but is %v", x.Float())
	}
	if base.Sign() <= 0 || base.Float() == 1 {
		return value.Missing, value.Errorf(28759, "$log's base must be a positive number not equal to 1, but is %v", base.Float())
	}
	return value.Double(math.Log(x.Float()) / math.Log(base.Float())), nil
}

// trigonometric lists the functions of one angle or ratio, with their domain.
var trigonometric = map[string]struct {
	f      func(float64) float64
	lo, hi float64
}{
	"$sin": {math.Sin, -math.MaxFloat64, math.MaxFloat64}, "$cos": {math.Cos, -math.MaxFloat64, math.MaxFloat64},
	"$tan": {math.Tan, -math.MaxFloat64, math.MaxFloat64}, "$asin": {math.Asin, -1, 1}, "$acos": {math.Acos, -1, 1},
	"$atan": {math.Atan, math.Inf(-1), math.Inf(1)}, "$sinh": {math.Sinh, math.Inf(-1), math.Inf(1)},
	"$cosh": {math.Cosh, math.Inf(-1), math.Inf(1)}, "$tanh": {math.Tanh, math.Inf(-1), math.Inf(1)},
	"$asinh": {math.Asinh, math.Inf(-1), math.Inf(1)}, "$acosh": {math.Acosh, 1, math.Inf(1)}, "$atanh": {math.Atanh, -1, 1},
	"$degreesToRadians": {func(f float64) float64 { return f * math.Pi / 180 }, math.Inf(-1), math.Inf(1)},
	"$radiansToDegrees": {func(f float64) float64 { return f * 180 / math.Pi }, math.Inf(-1), math.Inf(1)},
}

func trig(name string) operator {
	fn := trigonometric[name]
	return one(func(v Value) (Value, error) {
		return double(name, v, func(f float64) (float64, error) {
			if f < fn.lo || f > fn.hi {
				return 0, value.Errorf(50989, "cannot apply %s to %v, value must be in [%v,%v]", name, f, fn.lo, fn.hi)
			}
			return fn.f(f), nil
		})
	})
}

func atan2(a, b Value) (Value, error) {
	return double("$atan2", a, func(y float64) (float64, error) {
		if !value.IsNumber(b) {
			return 0, value.Errorf(51045, "$atan2 only supports numeric types, not %s", value.TypeName(b))
		}
		if err := noDecimal("$atan2", value.NumberOf(b)); err != nil {
			return 0, err
		}
		return math.Atan2(y, value.NumberOf(b).Float()), nil
	})
}

func bitAnd(args []Value) (Value, error) {
	return bits("$bitAnd", args, -1, func(a, b int64) int64 { return a & b })
}
func bitOr(args []Value) (Value, error) {
	return bits("$bitOr", args, 0, func(a, b int64) int64 { return a | b })
}
func bitXor(args []Value) (Value, error) {
	return bits("$bitXor", args, 0, func(a, b int64) int64 { return a ^ b })
}

func bits(name string, args []Value, unit int64, f func(a, b int64) int64) (Value, error) {
	if anyNullish(args) {
		return value.Null, nil
	}
	long := false
	for _, a := range args {
		if a.Type != bsoncore.TypeInt32 && a.Type != bsoncore.TypeInt64 {
			return value.Missing, value.Errorf(value.TypeMismatch, "%s only supports int and long operands, not %s", name, value.TypeName(a))
		}
		long = long || a.Type == bsoncore.TypeInt64
		i, _ := value.Integer(a)
		unit = f(unit, i)
	}
	if long {
		return value.Int64(unit), nil
	}
	return value.Int32(int32(unit)), nil
}

func bitNot(v Value) (Value, error) {
	if value.IsNullish(v) {
		return value.Null, nil
	}
	i, _ := value.Integer(v)
	switch v.Type {
	case bsoncore.TypeInt32:
		return value.Int32(^int32(i)), nil
	case bsoncore.TypeInt64:
		return value.Int64(^i), nil
	}
	return value.Missing, value.Errorf(value.TypeMismatch, "$bitNot only supports int and long, not %s", value.TypeName(v))
}
