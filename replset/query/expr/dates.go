package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

// instant reads a date argument: dates, timestamps and object ids carry a time.
func instant(v Value) (time.Time, error) {
	switch v.Type {
	case bsoncore.TypeDateTime:
		return value.Time(v), nil
	case bsoncore.TypeTimestamp:
		t, _ := v.Timestamp()
		return time.Unix(int64(t), 0).UTC(), nil
	case bsoncore.TypeObjectID:
		return bson.ObjectID(v.ObjectID()).Timestamp().UTC(), nil
	}
	return time.Time{}, value.Errorf(16006, "can't convert from BSON type %s to Date", value.TypeName(v))
}

// zone reads a time zone: UTC or an offset. Named zones would need the machine's
// files, which a pure function has not.
func zone(v Value) (*time.Location, error) {
	if !value.IsString(v) {
		return nil, value.Errorf(40533, "timezone must evaluate to a string, found %s", value.TypeName(v))
	}
	s := value.Str(v)
	switch s {
	case "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT":
		return time.UTC, nil
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(s, offset), nil
		}
	}
	if strings.Contains(s, "/") {
		return nil, value.Errorf(value.NotImplemented, "time zone %q: only UTC and offsets are supported", s)
	}
	return nil, value.Errorf(40485, "unrecognized time zone identifier: \"%s\"", s)
}

// local is a date argument in the zone of the timezone argument. ok is false if the
// answer is null.
func (a namedArgs) local(date string) (t time.Time, ok bool, err error) {
	if value.IsNullish(a[date]) {
		return t, false, nil
	}
	loc := time.UTC
	if a.has("timezone") {
		if value.IsNullish(a["timezone"]) {
			return t, false, nil
		}
		if loc, err = zone(a["timezone"]); err != nil {
			return t, false, err
		}
	}
	t, err = instant(a[date])
	return t.In(loc), err == nil, err
}

func datePart(part func(time.Time) int) namedOperator {
	return namedOperator{
		required: []string{"date"}, optional: []string{"timezone"}, code: 40535, bare: "date",
		apply: func(a namedArgs) (Value, error) {
			t, ok, err := a.local("date")
			if err != nil || !ok {
				return value.Null, err
			}
			return value.Int32(int32(part(t))), nil
		},
	}
}

func yearOf(t time.Time) int        { return t.Year() }
func monthOf(t time.Time) int       { return int(t.Month()) }
func dayOfMonth(t time.Time) int    { return t.Day() }
func dayOfWeek(t time.Time) int     { return int(t.Weekday()) + 1 }
func dayOfYear(t time.Time) int     { return t.YearDay() }
func hourOf(t time.Time) int        { return t.Hour() }
func minuteOf(t time.Time) int      { return t.Minute() }
func secondOf(t time.Time) int      { return t.Second() }
func millisecondOf(t time.Time) int { return t.Nanosecond() / 1e6 }
func weekOf(t time.Time) int        { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }
func isoWeek(t time.Time) int       { _, w := t.ISOWeek(); return w }
func isoWeekYear(t time.Time) int   { y, _ := t.ISOWeek(); return y }
func isoDayOfWeek(t time.Time) int  { return (int(t.Weekday())+6)%7 + 1 }

func dateToString(a namedArgs) (Value, error) {
	t, ok, err := a.local("date")
	if err != nil {
		return value.Missing, err
	}
	if !ok {
		if a.has("onNull") {
			return a["onNull"], nil
		}
		return value.Null, nil
	}
	format := "%Y-%m-%dT%H:%M:%S.%LZ"
	if a.has("timezone") && t.Location() != time.UTC {
		format = "%Y-%m-%dT%H:%M:%S.%L%z"
	}
	if a.has("format") {
		switch {
		case value.IsNullish(a["format"]):
			return value.Null, nil
		case !value.IsString(a["format"]):
			return value.Missing, value.Errorf(18533, "$dateToString requires that 'format' be a string, found: %s", value.TypeName(a["format"]))
		}
		format = value.Str(a["format"])
	}
	s, err := formatDate(t, format)
	return value.String(s), err
}

// dateVerbs lists what may follow '%' in a format.
var dateVerbs = map[byte]func(time.Time) string{
	'Y': func(t time.Time) string { return fmt.Sprintf("%04d", t.Year()) },
	'm': func(t time.Time) string { return fmt.Sprintf("%02d", int(t.Month())) },
	'd': func(t time.Time) string { return fmt.Sprintf("%02d", t.Day()) },
	'H': func(t time.Time) string { return fmt.Sprintf("%02d", t.Hour()) },
	'M': func(t time.Time) string { return fmt.Sprintf("%02d", t.Minute()) },
	'S': func(t time.Time) string { return fmt.Sprintf("%02d", t.Second()) },
	'L': func(t time.Time) string { return fmt.Sprintf("%03d", millisecondOf(t)) },
	'j': func(t time.Time) string { return fmt.Sprintf("%03d", t.YearDay()) },
	'w': func(t time.Time) string { return strconv.Itoa(dayOfWeek(t)) },
	'u': func(t time.Time) string { return strconv.Itoa(isoDayOfWeek(t)) },
	'U': func(t time.Time) string { return fmt.Sprintf("%02d", weekOf(t)) },
	'V': func(t time.Time) string { return fmt.Sprintf("%02d", isoWeek(t)) },
	'G': func(t time.Time) string { return fmt.Sprintf("%04d", isoWeekYear(t)) },
	'z': func(t time.Time) string { return t.Format("-0700") },
	'Z': func(t time.Time) string { _, s := t.Zone(); return fmt.Sprintf("%+d", s/60) },
	'b': func(t time.Time) string { return t.Format("Jan") },
	'B': func(t time.Time) string { return t.Format("January") },
	'%': func(time.Time) string { return "%" },
}

func formatDate(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			return "", value.Errorf(18535, "Unmatched '%%' at end of format string")
		}
		verb, ok := dateVerbs[format[i]]
		if !ok {
			return "", value.Errorf(18536, "Invalid format character '%%%c' in format string", format[i])
		}
		b.WriteString(verb(t))
	}
	return b.String(), nil
}

func dateFromParts(a namedArgs) (Value, error) {
	if !a.has("year") {
		return value.Missing, value.Errorf(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	}
	parts := map[string]int{"month": 1, "day": 1}
	for _, k := range []string{"year", "month", "day", "hour", "minute", "second", "millisecond"} {
		if !a.has(k) {
			continue
		}
		if value.IsNullish(a[k]) {
			return value.Null, nil
		}
		n, ok := value.Integer(a[k])
		if !ok || n != int64(int16(n)) {
			return value.Missing, value.Errorf(40515, "'%s' must evaluate to an integer in the range -32768 to 32767, found %s", k, value.Show(a[k]))
		}
		parts[k] = int(n)
	}
	if y := parts["year"]; y < 1 || y > 9999 {
		return value.Missing, value.Errorf(40523, "'year' must evaluate to an integer in the range 1 to 9999, found %d", y)
	}
	loc := time.UTC
	if a.has("timezone") {
		if value.IsNullish(a["timezone"]) {
			return value.Null, nil
		}
		var err error
		if loc, err = zone(a["timezone"]); err != nil {
			return value.Missing, err
		}
	}
	t := time.Date(parts["year"], time.Month(parts["month"]), parts["day"], parts["hour"], parts["minute"], parts["second"], 0, loc)
	return value.Date(t.UnixMilli() + int64(parts["millisecond"])), nil
}

func dateToParts(a namedArgs) (Value, error) {
	t, ok, err := a.local("date")
	if err != nil || !ok {
		return value.Null, err
	}
	var b value.Builder
	num := func(k string, n int) { b.Add(k, value.Int32(int32(n))) }
	if value.Truth(a["iso8601"]) {
		num("isoWeekYear", isoWeekYear(t))
		num("isoWeek", isoWeek(t))
		num("isoDayOfWeek", isoDayOfWeek(t))
	} else {
		num("year", t.Year())
		num("month", monthOf(t))
		num("day", t.Day())
	}
	num("hour", t.Hour())
	num("minute", t.Minute())
	num("second", t.Second())
	num("millisecond", millisecondOf(t))
	return b.Value(), nil
}

// unitMillis are the units of fixed length.
var unitMillis = map[string]int64{
	"week": 7 * 86400000, "day": 86400000, "hour": 3600000, "minute": 60000, "second": 1000, "millisecond": 1,
}

// unitMonths are the units that are so many months.
var unitMonths = map[string]int64{"year": 12, "quarter": 3, "month": 1}

func (a namedArgs) unit() (string, error) {
	u := a["unit"]
	s := value.Str(u)
	if !value.IsString(u) || unitMillis[s] == 0 && unitMonths[s] == 0 {
		return "", value.Errorf(value.FailedToParse, "unknown time unit value: %s", value.Show(u))
	}
	return s, nil
}

func dateShift(sign int64) func(namedArgs) (Value, error) {
	return func(a namedArgs) (Value, error) {
		if value.IsNullish(a["unit"]) || value.IsNullish(a["amount"]) {
			return value.Null, nil
		}
		t, ok, err := a.local("startDate")
		if err != nil || !ok {
			return value.Null, err
		}
		unit, err := a.unit()
		if err != nil {
			return value.Missing, err
		}
		n, ok := value.Integer(a["amount"])
		if !ok || n > 1<<31 || n < -1<<31 {
			return value.Missing, value.Errorf(5166405, "$dateAdd expects integer amount of time units")
		}
		n *= sign
		if months := unitMonths[unit]; months > 0 {
			return value.DateOf(addMonths(t, n*months)), nil
		}
		return shiftDate(value.DateOf(t), value.LongNumber(n*unitMillis[unit]))
	}
}

// addMonths keeps the day of the month, or takes the month's last.
func addMonths(t time.Time, n int64) time.Time {
	first := time.Date(t.Year(), t.Month(), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location()).AddDate(0, int(n), 0)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

// dateDiff counts the unit boundaries between two dates.
func dateDiff(a namedArgs) (Value, error) {
	if value.IsNullish(a["unit"]) {
		return value.Null, nil
	}
	from, ok, err := a.local("startDate")
	if err != nil || !ok {
		return value.Null, err
	}
	to, ok, err := a.local("endDate")
	if err != nil || !ok {
		return value.Null, err
	}
	unit, err := a.unit()
	if err != nil {
		return value.Missing, err
	}
	start, err := a.startOfWeek()
	if err != nil {
		return value.Missing, err
	}
	return value.Int64(unitIndex(to, unit, start) - unitIndex(from, unit, start)), nil
}

// unitIndex numbers the units since the epoch, in the time's own zone.
func unitIndex(t time.Time, unit string, start time.Weekday) int64 {
	if months := unitMonths[unit]; months > 0 {
		return floorDiv(int64(t.Year())*12+int64(t.Month())-1, months)
	}
	_, offset := t.Zone()
	ms := t.UnixMilli() + int64(offset)*1000
	if unit == "week" { // the epoch was a Thursday
		ms += (int64(time.Thursday-start) + 7) % 7 * unitMillis["day"]
	}
	return floorDiv(ms, unitMillis[unit])
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (a namedArgs) startOfWeek() (time.Weekday, error) {
	if !a.has("startOfWeek") {
		return time.Sunday, nil
	}
	s := strings.ToLower(value.Str(a["startOfWeek"]))
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); s == name || s == name[:3] {
			return d, nil
		}
	}
	return 0, value.Errorf(value.FailedToParse, "unknown day of week value: %s", value.Show(a["startOfWeek"]))
}

// dateTrunc cuts a date to the begin of a unit.
func dateTrunc(a namedArgs) (Value, error) {
	if value.IsNullish(a["unit"]) {
		return value.Null, nil
	}
	t, ok, err := a.local("date")
	if err != nil || !ok {
		return value.Null, err
	}
	unit, err := a.unit()
	if err != nil {
		return value.Missing, err
	}
	if a.has("binSize") {
		if n, ok := value.Integer(a["binSize"]); !ok || n != 1 {
			return value.Missing, value.Errorf(value.NotImplemented, "$dateTrunc with a binSize other than 1 is not supported")
		}
	}
	start, err := a.startOfWeek()
	if err != nil {
		return value.Missing, err
	}
	if months := unitMonths[unit]; months > 0 {
		m := (int64(t.Month()) - 1) / months * months
		return value.DateOf(time.Date(t.Year(), time.Month(m+1), 1, 0, 0, 0, 0, t.Location())), nil
	}
	_, offset := t.Zone()
	ms := unitIndex(t, unit, start) * unitMillis[unit]
	if unit == "week" {
		ms -= (int64(time.Thursday-start) + 7) % 7 * unitMillis["day"]
	}
	return value.Date(ms - int64(offset)*1000), nil
}
