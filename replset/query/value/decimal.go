package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Limits of decimal128: significant digits, and the exponent of the last digit.
const (
	decimalDigits = 34
	decimalExpMax = 6111
	decimalExpMin = -6176
)

// dec is a decimal number coef × 10^exp of any length, an infinity or not a
// number. coef is never negative and never changed once it is in a dec.
type dec struct {
	coef *big.Int
	exp  int
	neg  bool
	inf  bool
	nan  bool
}

var (
	bigTen  = big.NewInt(10)
	decNaN  = dec{nan: true, coef: new(big.Int)}
	decZero = dec{coef: new(big.Int)}
)

func pow10(n int) *big.Int { return new(big.Int).Exp(bigTen, big.NewInt(int64(n)), nil) }

func decOfInt(i int64) dec {
	c := big.NewInt(i)
	neg := c.Sign() < 0
	return dec{coef: c.Abs(c), neg: neg}
}

// decOfFloat is f exactly: every double is a finite decimal, of up to 767 digits.
func decOfFloat(f float64) dec {
	switch {
	case math.IsNaN(f):
		return decNaN
	case math.IsInf(f, 0):
		return dec{coef: new(big.Int), inf: true, neg: f < 0}
	case f == 0:
		return decZero
	}
	frac, exp2 := math.Frexp(math.Abs(f))
	mant := big.NewInt(int64(math.Ldexp(frac, 53)))
	exp2 -= 53
	d := dec{coef: mant, neg: f < 0}
	if exp2 >= 0 {
		d.coef = mant.Lsh(mant, uint(exp2))
		return d
	}
	// m / 2^k = m × 5^k / 10^k
	five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-exp2)), nil)
	d.coef = mant.Mul(mant, five)
	d.exp = exp2
	return d
}

// decOfFloat15 is f to 15 significant digits, which is how the server brings a
// double into decimal arithmetic: 0.1 becomes 0.1, not its 55 digits.
func decOfFloat15(f float64) dec {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return decOfFloat(f)
	}
	return decOfString(strconv.FormatFloat(f, 'e', 14, 64))
}

func decOfString(s string) dec {
	d128, err := bson.ParseDecimal128(s)
	if err != nil {
		return decNaN
	}
	return decOf128(d128)
}

func decOf128(d bson.Decimal128) dec {
	if d.IsNaN() {
		return decNaN
	}
	if sign := d.IsInf(); sign != 0 {
		return dec{coef: new(big.Int), inf: true, neg: sign < 0}
	}
	c, exp, err := d.BigInt()
	if err != nil {
		return decNaN
	}
	neg := c.Sign() < 0
	return dec{coef: new(big.Int).Abs(c), exp: exp, neg: neg}
}

func (d dec) isZero() bool { return !d.nan && !d.inf && d.coef.Sign() == 0 }

func (d dec) sign() int {
	switch {
	case d.nan || d.isZero():
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func (d dec) negated() dec { d.neg = !d.neg; return d }

func (d dec) abs() dec { d.neg = false; return d }

// digits are the significant digits without trailing zeros, and the exponent of
// the first of them.
func (d dec) digits() (s string, adjusted int) {
	s = d.coef.String()
	return strings.TrimRight(s, "0"), len(s) - 1 + d.exp
}

// scaled is the coefficient when the exponent is brought down to exp.
func (d dec) scaled(exp int) *big.Int {
	c := new(big.Int).Set(d.coef)
	if d.exp > exp {
		c.Mul(c, pow10(d.exp-exp))
	}
	if d.neg {
		c.Neg(c)
	}
	return c
}

// cmp compares finite and infinite decimals; NaN is below all.
func (d dec) cmp(e dec) int {
	if d.nan || e.nan {
		return boolCmp(!d.nan, !e.nan)
	}
	if s, t := d.sign(), e.sign(); s != t || s == 0 {
		return s - t
	}
	if d.inf || e.inf {
		c := boolCmp(d.inf, e.inf)
		if d.neg {
			return -c
		}
		return c
	}
	a, ea := d.digits()
	b, eb := e.digits()
	c := ea - eb
	if c == 0 {
		c = strings.Compare(a, b)
	}
	if d.neg {
		c = -c
	}
	return c
}

func boolCmp(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func fromSigned(c *big.Int, exp int) dec {
	return dec{coef: new(big.Int).Abs(c), exp: exp, neg: c.Sign() < 0}
}

func (d dec) add(e dec) dec {
	switch {
	case d.nan || e.nan || d.inf && e.inf && d.neg != e.neg:
		return decNaN
	case d.inf:
		return d
	case e.inf:
		return e
	}
	exp := min(d.exp, e.exp)
	return fromSigned(new(big.Int).Add(d.scaled(exp), e.scaled(exp)), exp)
}

func (d dec) mul(e dec) dec {
	neg := d.neg != e.neg
	switch {
	case d.nan || e.nan || d.inf && e.isZero() || e.inf && d.isZero():
		return decNaN
	case d.inf || e.inf:
		return dec{coef: new(big.Int), inf: true, neg: neg}
	}
	return dec{coef: new(big.Int).Mul(d.coef, e.coef), exp: d.exp + e.exp, neg: neg}
}

// quo divides to enough digits that rounding to decimal128 is right. e is not zero.
func (d dec) quo(e dec) dec {
	neg := d.neg != e.neg
	switch {
	case d.nan || e.nan || d.inf && e.inf:
		return decNaN
	case d.inf:
		return dec{coef: new(big.Int), inf: true, neg: neg}
	case e.inf:
		return dec{coef: new(big.Int), neg: neg}
	case e.isZero():
		return decNaN
	}
	shift := max(0, decimalDigits+2+len(e.coef.String())-len(d.coef.String()))
	num := new(big.Int).Mul(d.coef, pow10(shift))
	q, r := new(big.Int).QuoRem(num, e.coef, new(big.Int))
	out := dec{coef: q, exp: d.exp - e.exp - shift, neg: neg}
	if r.Sign() != 0 { // one sticky digit makes ties impossible
		out.coef = q.Add(q.Mul(q, bigTen), big.NewInt(1))
		out.exp--
		return out
	}
	return out.trimmed(d.exp - e.exp)
}

// trimmed drops trailing zeros until the exponent reaches want.
func (d dec) trimmed(want int) dec {
	c := new(big.Int).Set(d.coef)
	q, r := new(big.Int), new(big.Int)
	for d.exp < want && c.Sign() != 0 {
		q.QuoRem(c, bigTen, r)
		if r.Sign() != 0 {
			break
		}
		c.Set(q)
		d.exp++
	}
	d.coef = c
	return d
}

// rem has the sign of d, as fmod has. e is not zero.
func (d dec) rem(e dec) dec {
	switch {
	case d.nan || e.nan || d.inf || e.isZero():
		return decNaN
	case e.inf:
		return d
	}
	exp := min(d.exp, e.exp)
	return fromSigned(new(big.Int).Rem(d.scaled(exp), e.scaled(exp)), exp)
}

// rounding is how a decimal loses digits.
type rounding int

const (
	halfEven rounding = iota
	toZero
	toFloor
	toCeil
)

// at cuts the number to a multiple of 10^exp.
func (d dec) at(exp int, mode rounding) dec {
	if d.nan || d.inf || d.exp >= exp {
		return d
	}
	drop := exp - d.exp
	if drop > len(d.coef.String())+1 {
		drop = len(d.coef.String()) + 1
	}
	unit := pow10(drop)
	q, r := new(big.Int).QuoRem(d.coef, unit, new(big.Int))
	up := false
	switch mode {
	case halfEven:
		c := r.Lsh(r, 1).Cmp(unit)
		up = c > 0 || c == 0 && q.Bit(0) == 1
	case toFloor:
		up = d.neg && r.Sign() != 0
	case toCeil:
		up = !d.neg && r.Sign() != 0
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	return dec{coef: q, exp: exp, neg: d.neg}
}

// to128 rounds half to even to what a decimal128 can hold; too large a number
// becomes an infinity, too small a one zero.
func (d dec) to128() bson.Decimal128 {
	switch {
	case d.nan:
		return bson.NewDecimal128(0x7c00000000000000, 0)
	case d.inf && d.neg:
		return bson.NewDecimal128(0xf800000000000000, 0)
	case d.inf:
		return bson.NewDecimal128(0x7800000000000000, 0)
	}
	for range 2 { // rounding 99…9 up adds a digit, once
		if over := len(d.coef.String()) - decimalDigits; over > 0 {
			d = d.at(d.exp+over, halfEven)
		}
	}
	if d.exp < decimalExpMin {
		d = d.at(decimalExpMin, halfEven)
	}
	if d.exp > decimalExpMax && d.coef.Sign() != 0 {
		grown := new(big.Int)
		if d.exp-decimalExpMax <= decimalDigits {
			grown.Mul(d.coef, pow10(d.exp-decimalExpMax))
		}
		if grown.Sign() == 0 || len(grown.String()) > decimalDigits {
			return dec{inf: true, neg: d.neg, coef: d.coef}.to128()
		}
		d.coef, d.exp = grown, decimalExpMax
	}
	d.exp = min(max(d.exp, decimalExpMin), decimalExpMax)
	c := new(big.Int).Set(d.coef)
	if d.neg {
		c.Neg(c)
	}
	out, _ := bson.ParseDecimal128FromBigInt(c, d.exp)
	return out
}

func (d dec) float() float64 {
	switch {
	case d.nan:
		return math.NaN()
	case d.inf && d.neg:
		return math.Inf(-1)
	case d.inf:
		return math.Inf(1)
	}
	s := d.coef.String() + "e" + strconv.Itoa(d.exp)
	if d.neg {
		s = "-" + s
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range: ±Inf, which is right
	return f
}

// sqrt is right to more digits than decimal128 has. d is not negative.
func (d dec) sqrt() dec {
	if d.nan || d.inf || d.isZero() {
		return d
	}
	shift := 2 * (decimalDigits + 2)
	if (d.exp-shift)%2 != 0 {
		shift++
	}
	c := new(big.Int).Mul(d.coef, pow10(shift))
	root := new(big.Int).Sqrt(c)
	out := dec{coef: root, exp: (d.exp - shift) / 2}
	if new(big.Int).Mul(root, root).Cmp(c) != 0 {
		return out
	}
	return out.trimmed(0)
}
