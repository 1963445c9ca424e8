package report

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct{ got, want string }{
		{num(0), "0"}, {num(nan), "–"}, {num(inf), "∞"}, {num(-inf), "-∞"},
		{num(3), "3"}, {num(0.5), "0.5"}, {num(10.79987), "10.80"}, {num(0.0123456), "0.01235"}, {num(-1234567.8), "-1,234,568"},
		{num(999.96), "1,000.0"}, {num(0.00001234), "0.00001234"}, {num(1e-9), "1e-09"}, {num(1e15), "1e+15"}, {num(100000), "100,000"},
		{withUnit(0.0123, "s"), "12.3 ms"}, {withUnit(1500, "ns"), "1.5 µs"}, {withUnit(90, "us"), "90 µs"}, {withUnit(2e9, "ns"), "2 s"},
		{withUnit(-0.25, "ms"), "-250 µs"}, {withUnit(7200, "s"), "7,200 s"}, {withUnit(0, "s"), "0 s"}, {withUnit(2e6, "ns/op"), "2 ms/op"},
		{withUnit(3<<20, "B"), "3 MiB"}, {withUnit(512, "KiB"), "512 KiB"}, {withUnit(0.5, "GiB"), "512 MiB"}, {withUnit(2048, "B/op"), "2 KiB/op"},
		{withUnit(12, "ops/s"), "12 ops/s"}, {withUnit(12, ""), "12"}, {withUnit(nan, "s"), "–"}, {withUnit(inf, "s"), "∞ s"},
		{plusMinus(12.3456, 0.1234, "ms"), "12.35 ± 0.12 ms"}, {plusMinus(0.0123456, 0.001, "s"), "12.3 ± 1.0 ms"}, {plusMinus(3, 0, ""), "3 ± 0"},
		{plusMinus(5, nan, "s"), "5 s"}, {plusMinus(1e6, 12345, "ops"), "1,000,000 ± 12,345 ops"}, {plusMinus(nan, 1, "s"), "–"},
		{span(0.011, 0.9, "ms"), "11 … 900 µs"}, {span(nan, 1, "s"), "–"},
		{interval(-0.0012, 0.0034, "s"), "[-1.2, 3.4] ms"}, {interval(nan, nan, "s"), "–"}, {interval(nan, 1, "x"), "[–, 1] x"},
		{percent(0.123), "+12.3 %"}, {percent(-0.05), "-5.0 %"}, {percent(0), "0.0 %"}, {percent(0.00012), "+0.012 %"}, {percent(-1e-9), "0.0 %"},
		{percent(12.5), "+1,250 %"}, {percent(nan), "–"}, {percent(inf), "+∞ %"}, {percent(-inf), "-∞ %"},
		{percentInterval(-0.012, 0.034), "[-1.2, +3.4] %"}, {percentInterval(nan, nan), "–"},
		{pvalue(0.034), "0.034"}, {pvalue(0.00001), "< 0.0001"}, {pvalue(0), "< 0.0001"}, {pvalue(0.0012), "0.0012"}, {pvalue(1), "1.000"},
		{pvalue(0.04996), "0.04996"}, {pvalue(0.05), "0.050"}, {pvalue(0.0499999999), "0.05000000"}, {pvalue(nan), "–"},
		{pphrase(0.034), "p = 0.034"}, {pphrase(0), "p < 0.0001"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
