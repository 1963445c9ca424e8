package expr

import "github.com/assaylab/assay/replset/query/value"

// Value is short for a BSON value.
type Value = value.Value

// operator is an eager operator: its arguments are evaluated before it runs.
type operator struct {
	lo, hi int // number of arguments; hi < 0: no limit
	apply  func(args []Value) (Value, error)
	order  collating
}

// collating is what an operator does with the order of strings.
type collating int

const (
	ignoresOrder collating = iota
	// comparesOnly: the result has nothing of the arguments in it, so that they can be
	// folded.
	comparesOnly
	// givesCompared: which argument is the result depends on the order.
	givesCompared
)

// ordered marks an operator that compares.
func (op operator) ordered(how collating) operator {
	op.order = how
	return op
}

func checkCollated(name string, how collating, vars *Vars) error {
	if how == givesCompared && vars.Collation() != nil {
		return value.Errorf(value.NotImplemented, "%s is not supported with a collation", name)
	}
	return nil
}

func (op operator) parse(name string, arg Value, vars *Vars) (*Expr, error) {
	args, err := parseArgs(name, arg, vars, op.lo, op.hi)
	if err != nil {
		return nil, err
	}
	if err := checkCollated(name, op.order, vars); err != nil {
		return nil, err
	}
	by := vars.Collation()
	if op.order != comparesOnly {
		by = nil
	}
	return &Expr{eval: func(e *env) (Value, error) {
		vals := make([]Value, len(args))
		for i, x := range args {
			v, err := x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			vals[i] = by.Fold(v)
		}
		return op.apply(vals)
	}}, nil
}

func one(f func(Value) (Value, error)) operator {
	return operator{lo: 1, hi: 1, apply: func(a []Value) (Value, error) { return f(a[0]) }}
}

func two(f func(a, b Value) (Value, error)) operator {
	return operator{lo: 2, hi: 2, apply: func(a []Value) (Value, error) { return f(a[0], a[1]) }}
}

func many(f func(args []Value) (Value, error)) operator { return between(0, -1, f) }

func between(lo, hi int, f func(args []Value) (Value, error)) operator {
	return operator{lo: lo, hi: hi, apply: f}
}

// eager lists the operators with positional arguments.
var eager = map[string]operator{
	// arithmetic
	"$add": many(add), "$subtract": two(subtract), "$multiply": many(multiply), "$divide": two(divide), "$mod": two(mod),
	"$abs": one(abs), "$ceil": one(ceil), "$floor": one(floor), "$round": between(1, 2, round), "$trunc": between(1, 2, trunc),
	"$pow": two(pow), "$sqrt": one(sqrt), "$exp": one(exp), "$ln": one(ln), "$log": two(logBase), "$log10": one(log10),
	"$bitAnd": many(bitAnd), "$bitOr": many(bitOr), "$bitXor": many(bitXor), "$bitNot": one(bitNot),
	"$sin": trig("$sin"), "$cos": trig("$cos"), "$tan": trig("$tan"), "$asin": trig("$asin"), "$acos": trig("$acos"), "$atan": trig("$atan"),
	"$sinh": trig("$sinh"), "$cosh": trig("$cosh"), "$tanh": trig("$tanh"), "$asinh": trig("$asinh"), "$acosh": trig("$acosh"), "$atanh": trig("$atanh"),
	"$degreesToRadians": trig("$degreesToRadians"), "$radiansToDegrees": trig("$radiansToDegrees"), "$atan2": two(atan2),
	// comparison and logic
	"$eq": comparison(func(c int) bool { return c == 0 }), "$ne": comparison(func(c int) bool { return c != 0 }),
	"$gt": comparison(func(c int) bool { return c > 0 }), "$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt": comparison(func(c int) bool { return c < 0 }), "$lte": comparison(func(c int) bool { return c <= 0 }),
	"$cmp": two(cmp).ordered(comparesOnly), "$not": one(not),
	// strings
	"$concat": many(concat), "$toLower": one(toLower), "$toUpper": one(toUpper), "$strcasecmp": two(strcasecmp),
	"$substr": between(3, 3, substrBytes), "$substrBytes": between(3, 3, substrBytes), "$substrCP": between(3, 3, substrCP),
	"$split": two(split), "$strLenBytes": one(strLenBytes), "$strLenCP": one(strLenCP),
	"$indexOfBytes": between(2, 4, indexOfBytes), "$indexOfCP": between(2, 4, indexOfCP),
	// arrays
	"$size": one(size), "$arrayElemAt": two(arrayElemAt), "$first": one(first), "$last": one(last),
	"$concatArrays": many(concatArrays), "$slice": between(2, 3, slice), "$in": two(in).ordered(comparesOnly), "$indexOfArray": between(2, 4, indexOfArray).ordered(comparesOnly),
	"$range": between(2, 3, rangeOf), "$reverseArray": one(reverseArray), "$isArray": one(isArray),
	"$arrayToObject": one(arrayToObject), "$objectToArray": one(objectToArray),
	// sets
	"$setEquals": between(2, -1, setEquals).ordered(comparesOnly), "$setIsSubset": two(setIsSubset).ordered(comparesOnly),
	"$setIntersection": many(setIntersection).ordered(givesCompared), "$setUnion": many(setUnion).ordered(givesCompared),
	"$setDifference":   two(setDifference).ordered(givesCompared),
	"$allElementsTrue": one(allElementsTrue), "$anyElementTrue": one(anyElementTrue),
	// objects and types
	"$mergeObjects": many(mergeObjects), "$type": one(typeOf), "$isNumber": one(isNumber),
	"$bsonSize": one(bsonSize), "$binarySize": one(binarySize),
	"$toBool": converter("bool"), "$toDate": converter("date"), "$toDecimal": converter("decimal"), "$toDouble": converter("double"),
	"$toInt": converter("int"), "$toLong": converter("long"), "$toObjectId": converter("objectId"), "$toString": converter("string"),
}

// namedOperator is an eager operator with named arguments.
type namedOperator struct {
	required []string
	optional []string
	code     int32  // of the error for wrong names
	bare     string // not empty: an argument that is no such document is this one
	apply    func(args namedArgs) (Value, error)
}

// namedArgs are evaluated arguments; what was not given is Missing.
type namedArgs map[string]Value

// has says whether an argument was given, whatever it came to.
func (a namedArgs) has(name string) bool { _, ok := a[name]; return ok }

func (op namedOperator) parse(name string, arg Value, vars *Vars) (*Expr, error) {
	if op.bare != "" && !op.isNamed(arg) {
		return op.parseBare(name, arg, vars)
	}
	raw, err := fields(name, arg, op.code, op.required, op.optional)
	if err != nil {
		return nil, err
	}
	if name == "$minN" || name == "$maxN" {
		if err := checkCollated(name, givesCompared, vars); err != nil {
			return nil, err
		}
	}
	args := make(map[string]*Expr, len(raw))
	for k, v := range raw {
		if args[k], err = Parse(v, vars); err != nil {
			return nil, err
		}
	}
	return op.expr(args), nil
}

// isNamed: {date: …} names arguments; "$d" and {$toDate: …} are the argument itself.
func (op namedOperator) isNamed(arg Value) bool {
	k, _, ok := value.First(arg.Data)
	return value.IsDocument(arg) && ok && (k == "" || k[0] != '$')
}

func (op namedOperator) parseBare(name string, arg Value, vars *Vars) (*Expr, error) {
	args, err := parseArgs(name, arg, vars, 1, 1)
	if err != nil {
		return nil, err
	}
	return op.expr(map[string]*Expr{op.bare: args[0]}), nil
}

func (op namedOperator) expr(args map[string]*Expr) *Expr {
	return &Expr{eval: func(e *env) (Value, error) {
		vals := make(namedArgs, len(args))
		for k, x := range args {
			v, err := x.eval(e)
			if err != nil {
				return value.Missing, err
			}
			vals[k] = v
		}
		return op.apply(vals)
	}}
}

// named lists the operators with named arguments.
var named = map[string]namedOperator{
	"$trim":          {[]string{"input"}, []string{"chars"}, 50694, "", trimmer(true, true)},
	"$ltrim":         {[]string{"input"}, []string{"chars"}, 50694, "", trimmer(true, false)},
	"$rtrim":         {[]string{"input"}, []string{"chars"}, 50694, "", trimmer(false, true)},
	"$replaceOne":    {[]string{"input", "find", "replacement"}, nil, 51750, "", replacer(1)},
	"$replaceAll":    {[]string{"input", "find", "replacement"}, nil, 51749, "", replacer(-1)},
	"$regexMatch":    {[]string{"input", "regex"}, []string{"options"}, 51103, "", regexMatch},
	"$regexFind":     {[]string{"input", "regex"}, []string{"options"}, 51103, "", regexFind},
	"$regexFindAll":  {[]string{"input", "regex"}, []string{"options"}, 51103, "", regexFindAll},
	"$zip":           {[]string{"inputs"}, []string{"useLongestLength", "defaults"}, 34460, "", zip},
	"$firstN":        {[]string{"input", "n"}, nil, 5787801, "", firstN},
	"$lastN":         {[]string{"input", "n"}, nil, 5787801, "", lastN},
	"$minN":          {[]string{"input", "n"}, nil, 5787801, "", minN},
	"$maxN":          {[]string{"input", "n"}, nil, 5787801, "", maxN},
	"$dateToString":  {[]string{"date"}, []string{"format", "timezone", "onNull"}, 18534, "", dateToString},
	"$dateFromParts": {nil, []string{"year", "month", "day", "hour", "minute", "second", "millisecond", "timezone"}, 40518, "", dateFromParts},
	"$dateToParts":   {[]string{"date"}, []string{"timezone", "iso8601"}, 40520, "", dateToParts},
	"$dateAdd":       {[]string{"startDate", "unit", "amount"}, []string{"timezone"}, 5166401, "", dateShift(1)},
	"$dateSubtract":  {[]string{"startDate", "unit", "amount"}, []string{"timezone"}, 5166401, "", dateShift(-1)},
	"$dateDiff":      {[]string{"startDate", "endDate", "unit"}, []string{"timezone", "startOfWeek"}, 5166302, "", dateDiff},
	"$dateTrunc":     {[]string{"date", "unit"}, []string{"binSize", "timezone", "startOfWeek"}, 5439008, "", dateTrunc},
	"$year":          datePart(yearOf),
	"$month":         datePart(monthOf),
	"$dayOfMonth":    datePart(dayOfMonth),
	"$dayOfWeek":     datePart(dayOfWeek),
	"$dayOfYear":     datePart(dayOfYear),
	"$hour":          datePart(hourOf),
	"$minute":        datePart(minuteOf),
	"$second":        datePart(secondOf),
	"$millisecond":   datePart(millisecondOf),
	"$week":          datePart(weekOf),
	"$isoWeek":       datePart(isoWeek),
	"$isoWeekYear":   datePart(isoWeekYear),
	"$isoDayOfWeek":  datePart(isoDayOfWeek),
}
