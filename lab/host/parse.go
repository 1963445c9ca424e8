package host

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// parseUint refuses signs, blanks and overflow, which garbage tends to have.
func parseUint(b []byte) (n uint64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseFloat refuses NaN, infinities and negative numbers: no file read here
// has one that means anything.
func parseFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f >= 0 && !math.IsInf(f, 0)
}

func nextField(b []byte) (field, rest []byte) {
	b = bytes.TrimLeft(b, " \t")
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

func nextLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// keyed is the number of a line such as "inactive_file 4096".
func keyed(b []byte, key string) (uint64, bool) {
	for len(b) > 0 {
		var line []byte
		line, b = nextLine(b)
		if k, rest := nextField(line); string(k) == key {
			v, _ := nextField(rest)
			return parseUint(v)
		}
	}
	return 0, false
}

// parseList reads a list of CPUs such as 0-3,8.
func parseList(s string) (cpus []int, ok bool) {
	const most = 1 << 16
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, okA := parseUint([]byte(first))
		b, okB := parseUint([]byte(last))
		if !okA || !okB || a > b || b >= most {
			return nil, false
		}
		for ; a <= b; a++ {
			cpus = append(cpus, int(a))
		}
	}
	return cpus, true
}
