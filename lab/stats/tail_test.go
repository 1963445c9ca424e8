package stats

import "testing"

// The incomplete beta function under the tail stops a program when it does not
// converge; nothing that Welch can ask of it may.
func TestStudentTailConvergesEverywhere(t *testing.T) {
	for df := 1.0; df < 1e12; df *= 1.7 {
		last := 1.0
		for x := 1e-8; x < 1e160; x *= 1.3 {
			p := studentTail(x, df)
			if !(p >= 0 && p <= last*(1+1e-8)) {
				t.Fatalf("tail(%v, %v) is %v after %v", x, df, p, last)
			}
			last = p
		}
		for alpha := 0.999; alpha > 1e-100; alpha *= 0.2 {
			x := studentQuantile(alpha, df)
			near(t, "tail of the quantile", studentTail(x, df), alpha, 1e-9)
		}
	}
}
