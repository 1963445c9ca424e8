package browser

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// FirstScreen looks whether the first element that the selector finds shows the
// text and is seen whole before anybody scrolls.
func (p *Page) FirstScreen(selector, text string) ([]Fault, error) {
	args, err := json.Marshal([]string{selector, text})
	if err != nil {
		return nil, err
	}
	return p.audit(fmt.Sprintf("audit.first(...%s)", args))
}

// Overflow looks whether the page as a whole scrolls sideways at this width. A
// region that scrolls by itself may be as wide as it likes.
func (p *Page) Overflow() ([]Fault, error) { return p.audit("audit.overflow()") }

// Contrast looks at every text that is seen, in the colours that were computed,
// against what stands behind it.
func (p *Page) Contrast() ([]Fault, error) { return p.audit("audit.contrast()") }

// Structure looks at what those rely on who do not see the page: language, order
// of headings, heads of tables, names of pictures and regions. It looks at labels
// of pictures that lie on each other too.
func (p *Page) Structure() ([]Fault, error) { return p.audit("audit.structure()") }

// OpenAll opens everything that is folded up.
func (p *Page) OpenAll() error { return p.do(chromedp.Evaluate[chromedp.Void]("audit.openAll()")) }

func (p *Page) audit(script string) ([]Fault, error) {
	faults, err := run(p, chromedp.Evaluate[[]Fault](script))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", script, err)
	}
	return faults, nil
}

// mostStops bounds the presses of Tab: a page that never ends its round is none
// that a keyboard gets through.
const mostStops = 5_000

var errNoEnd = errors.New("the round of the Tab key does not end")

// Walk goes through the page with Tab from its top to its end and opens with
// Enter whatever is folded up. It looks whether everything was reached that can
// be operated or that scrolls, and whether the focus was seen on each.
func (p *Page) Walk() ([]Fault, error) {
	if err := p.do(chromedp.Evaluate[chromedp.Void]("audit.begin()")); err != nil {
		return nil, err
	}
	for range mostStops {
		if err := p.press(kb.Tab); err != nil {
			return nil, err
		}
		step, err := run(p, chromedp.Evaluate[stop]("audit.step()"))
		if err != nil {
			return nil, err
		}
		if step.End {
			return p.audit("audit.end()")
		}
		if step.Open {
			if err := p.press(kb.Enter); err != nil {
				return nil, err
			}
		}
	}
	return nil, errNoEnd
}

// stop is where the Tab key led.
type stop struct {
	End  bool `json:"end"`  // the round is over
	Open bool `json:"open"` // what has the focus is folded up, and Enter should open it
}

// press presses a key.
func (p *Page) press(key string) error { return p.do(chromedp.KeyEvent(key)) }
