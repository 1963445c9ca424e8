package browser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/report"
)

// reports are the pages that are looked at: each study, each example, each class of
// verdict.
func reports() []reportCase {
	all := []reportCase{
		{"fresh-go", gate.Go, "PROCEED", func(t testing.TB) *report.Source { return fresh(t, "one_by_one", "by_halves", 0) }},
		{"fresh-no-go", gate.NoGo, "REGRESSION", func(t testing.TB) *report.Source { return fresh(t, "by_halves", "one_by_one", 0) }},
		{"fresh-abort", gate.NoGo, "ABORT", func(t testing.TB) *report.Source { return fresh(t, "one_by_one", "forgetful", 0) }},
		{"fresh-incomplete", gate.Inconclusive, "INCOMPLETE", func(t testing.TB) *report.Source { return fresh(t, "one_by_one", "by_halves", 9) }},
		{"long-words", gate.Go, "PROCEED", crowded},
	}
	outcomes := map[string]string{"compressors": "", "gomap": "", "gomap-lossy": "ABORT"}
	for _, r := range recordings {
		c := reportCase{name: r.name, source: r.source, outcome: "EXPLORATORY", class: gate.Inconclusive}
		if outcome, fixed := outcomes[r.name]; fixed {
			c.outcome, c.class = outcome, ""
		}
		all = append(all, c)
	}
	return all
}

type reportCase struct {
	name    string
	class   gate.Class // "" is any
	outcome string     // "" is any
	source  func(testing.TB) *report.Source
}

// page writes the report of the case and says what the verdict is.
func (c reportCase) page(t testing.TB) (path string, s *report.Source) {
	t.Helper()
	s = c.source(t)
	if c.class != "" && s.Verdict.Class != c.class || c.outcome != "" && s.Verdict.Outcome != c.outcome {
		t.Errorf("the verdict is %s (%s): %s", s.Verdict.Outcome, s.Verdict.Class, s.Verdict.Why)
	}
	var b bytes.Buffer
	if err := report.HTML(&b, s); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, s
}

// A reader opens the page of a run from disk, on a large screen or on a phone, by day
// or by night, with a mouse or without, and sees the verdict at once.
func TestReportsInABrowser(t *testing.T) {
	b := start(t)
	for _, c := range reports() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, s := c.page(t)
			lookAt(t, c.name, func(size Look) (*Page, error) { return b.OpenFile(path, size) }, glance{".verdict .word", s.Verdict.Outcome})
		})
	}
}

// glance is a text that is seen before anybody scrolls.
type glance struct{ selector, text string }

// lookAt looks at a page in every way.
func lookAt(t *testing.T, name string, open func(Look) (*Page, error), glances ...glance) {
	t.Helper()
	for _, size := range []Look{wide, narrow} {
		p, err := open(size)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		look := func(what string, at Look, faults []Fault, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s at %v: %v", what, at, err)
			}
			for i, f := range faults {
				if i == 12 {
					t.Errorf("at %v: and %d more", at, len(faults)-i)
					break
				}
				t.Errorf("at %v: %v", at, f)
			}
		}
		for _, dark := range []bool{true, false} {
			at := Look{size.Width, size.Height, dark}
			if err := p.Look(at); err != nil {
				t.Fatal(err)
			}
			for _, g := range glances {
				faults, err := p.FirstScreen(g.selector, g.text)
				look("first screen", at, faults, err)
			}
			faults, err := p.Overflow()
			look("overflow", at, faults, err)
			photograph(t, p, fmt.Sprintf("%s-%v", name, at))
		}
		faults, err := p.Walk()
		look("keyboard", size, faults, err)
		faults, err = p.Overflow()
		look("overflow of what was folded", size, faults, err)
		for _, dark := range []bool{true, false} {
			if size == narrow && !dark {
				break // the colours are those of the wide page; what lies on what is seen in the dark
			}
			at := Look{size.Width, size.Height, dark}
			if err := p.Look(at); err != nil {
				t.Fatal(err)
			}
			faults, err = p.Contrast()
			look("contrast", at, faults, err)
		}
		photograph(t, p, fmt.Sprintf("%s-%v-open", name, size))
		faults, err = p.Structure()
		look("structure", size, faults, err)
		faults, err = p.Loading()
		look("loading", size, faults, err)
	}
}

// photograph keeps what is seen, screen by screen, for people to look at:
//
//	ASSAY_SCREENSHOTS=/tmp/shots go test ./internal/browser -run 'Reports|Served'
func photograph(t *testing.T, p *Page, name string) {
	t.Helper()
	dir := os.Getenv("ASSAY_SCREENSHOTS")
	if dir == "" {
		return
	}
	height, err := p.Height()
	if err != nil {
		t.Fatal(err)
	}
	const step, most = 760, 16 * 760
	for y := 0; y == 0 || y < min(height, most); y += step {
		if err := p.Scroll(y); err != nil {
			t.Fatal(err)
		}
		png, err := p.Screenshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%02d.png", name, y/step)), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Scroll(0); err != nil {
		t.Fatal(err)
	}
}

// A link to a part that is folded up opens it.
func TestALinkOpensWhatIsFolded(t *testing.T) {
	b := start(t)
	path, _ := reports()[0].page(t)
	p, err := b.OpenFile(path, wide)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const folded = `[...document.querySelectorAll("nav a")].map(a => a.hash).filter(h => document.querySelector(h).closest("details:not([open])"))`
	shut, err := run(p, chromedp.Evaluate[[]string](folded))
	if err != nil || len(shut) == 0 {
		t.Fatalf("nothing is folded up, or %v", err)
	}
	for _, hash := range shut {
		if err := p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("nav a[href='%s']").focus()`, hash))); err != nil {
			t.Fatal(err)
		}
		if err := p.press(kb.Enter); err != nil {
			t.Fatal(err)
		}
	}
	if still, err := run(p, chromedp.Evaluate[[]string](folded)); err != nil || len(still) > 0 {
		t.Errorf("still folded up: %v, %v", still, err)
	}
}
