package authority

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestObligationsHaveTheirTests: every obligation names a test, and every test that
// DESIGN.md names is there.
func TestObligationsHaveTheirTests(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	must(t, err)
	sources, err := filepath.Glob("*_test.go")
	must(t, err)
	have := map[string]bool{}
	for _, path := range sources {
		b, err := os.ReadFile(path)
		must(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(b, -1) {
			have[string(m[1])] = true
		}
	}
	rows := regexp.MustCompile(`(?m)^\| ([RWMS]\d+) \| .* \| (.*) \|$`).FindAllSubmatch(design, -1)
	if len(rows) < 20 {
		t.Fatalf("only %d obligations found; the pattern is wrong", len(rows))
	}
	last := map[byte]int{}
	for _, row := range rows {
		number := string(row[1])
		last[number[0]]++
		if want := last[number[0]]; number != fmt.Sprintf("%c%d", number[0], want) {
			t.Errorf("obligation %s stands where %c%d is due", number, number[0], want)
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(row[2], -1)
		if len(named) == 0 {
			t.Errorf("obligation %s has no test", number)
		}
		for _, m := range named {
			if !have[string(m[1])] {
				t.Errorf("obligation %s names %s, which is not there", number, m[1])
			}
		}
	}
}
