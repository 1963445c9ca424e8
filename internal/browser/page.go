package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Look is how a page is looked at.
type Look struct {
	Width, Height int  // of the window, in CSS pixels
	Dark          bool // what the system prefers
}

func (l Look) String() string {
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%dx%d %s", l.Width, l.Height, scheme)
}

// Fault is something that is wrong with a page.
type Fault struct {
	Rule  string `json:"rule"`  // one of the Rule constants
	Where string `json:"where"` // the element, or the address
	What  string `json:"what"`
}

func (f Fault) String() string { return f.Rule + ": " + f.Where + ": " + f.What }

// The rules.
const (
	RuleLoad      = "load"      // nothing fails to load, and nothing comes from elsewhere
	RuleConsole   = "console"   // nothing is complained about
	RuleFirst     = "first"     // what matters is on the first screen
	RuleOverflow  = "overflow"  // the page as a whole does not scroll sideways
	RuleKeyboard  = "keyboard"  // Tab and Enter reach everything
	RuleFocus     = "focus"     // one sees where the keyboard is
	RuleContrast  = "contrast"  // text can be read: WCAG 2 AA
	RuleStructure = "structure" // language, headings, heads of tables, names of pictures
	RuleOverlap   = "overlap"   // no label of a picture lies on another
)

// Page is one page in a tab of its own. It is not for concurrent use.
type Page struct {
	ctx context.Context
	end context.CancelFunc

	mu     sync.Mutex // guards what Chromium reports at any time
	urls   map[network.RequestID]string
	faults []Fault
}

//go:embed audit.js
var auditScript string

// OpenFile opens a file from disk, and waits until everything that it asks for
// has been loaded or has failed. That something failed is no error but a fault
// of Loading. The page must be closed.
func (b *Browser) OpenFile(path string, look Look) (*Page, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := &Page{urls: map[network.RequestID]string{}}
	p.ctx, p.end = chromedp.NewContext(b.ctx, chromedp.WithListener(p.listen))
	late := time.AfterFunc(stepTime, p.end) // the tab lives as long as the context of the first Do, as in Start
	err = chromedp.Do(p.ctx)
	late.Stop()
	offline := &network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}
	steps := []func() error{
		func() error { return call(p, network.Enable, network.EnableParams{}) },
		func() error { return call(p, log.Enable, cdp.Empty{}) },
		func() error {
			return call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{offline}})
		},
		func() error {
			return call(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true, DownloadThroughput: -1, UploadThroughput: -1})
		},
		func() error {
			return call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		},
		func() error { return p.Look(look) },
		func() error {
			return p.do(chromedp.Navigate((&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()))
		},
		func() error { return p.do(chromedp.Evaluate[chromedp.Void]("window.audit = " + auditScript)) },
	}
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return p, nil
}

// Close closes the tab.
func (p *Page) Close() { p.end() }

// run carries an action out within a deadline.
func run[T any](p *Page, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, stepTime)
	defer cancel()
	return chromedp.Run(ctx, action)
}

func (p *Page) do(action chromedp.Action[chromedp.Void]) error {
	_, err := run(p, action)
	return err
}

// call gives Chromium a command within a deadline.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) error {
	ctx, cancel := context.WithTimeout(p.ctx, stepTime)
	defer cancel()
	_, err := chromedp.Call(ctx, command, params)
	return err
}

// Look changes how the page is looked at, and goes back to its top.
func (p *Page) Look(l Look) error {
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	return errors.Join(
		call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(l.Width), Height: int64(l.Height), DeviceScaleFactor: 1}),
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}),
		p.Scroll(0),
	)
}

// Scroll shows the page from that many pixels below its top, or its end, and waits
// until it has been painted.
func (p *Page) Scroll(y int) error {
	const painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
	return p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("scrollTo(0, %d); %s", y, painted), chromedp.EvalAwaitPromise))
}

// Height is how high the page is, in CSS pixels.
func (p *Page) Height() (int, error) {
	return run(p, chromedp.Evaluate[int]("document.documentElement.scrollHeight"))
}

// Screenshot is what is seen, as PNG.
func (p *Page) Screenshot() ([]byte, error) { return run(p, chromedp.CaptureScreenshot()) }

// listen keeps what Chromium reports. Chromium calls it in the order of events.
func (p *Page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.urls[e.RequestID] = e.Request.URL
		if !local(e.Request.URL) {
			p.fault(RuleLoad, e.Request.URL, "comes from elsewhere; a page must be whole by itself")
		}
	case *network.EventWebSocketCreated:
		p.fault(RuleLoad, e.URL, "comes from elsewhere; a page must be whole by itself")
	case *network.EventLoadingFailed:
		p.fault(RuleLoad, p.urls[e.RequestID], strings.TrimSpace("was not loaded: "+e.ErrorText+" "+string(e.BlockedReason)))
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			p.fault(RuleLoad, e.Response.URL, fmt.Sprintf("was not loaded: status %d", e.Response.Status))
		}
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		p.fault(RuleConsole, e.ExceptionDetails.URL, what)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var said []string
			for _, a := range e.Args {
				said = append(said, string(a.Value)+a.Description)
			}
			p.fault(RuleConsole, "a script", strings.Join(said, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.fault(RuleConsole, e.Entry.URL, e.Entry.Text)
		}
	}
}

func (p *Page) fault(rule, where, what string) {
	p.faults = append(p.faults, Fault{rule, where, what})
}

// local says whether an address leads to the page itself or to what lies beside
// it.
func local(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "file" && u.Host == "" || u.Scheme == "data" || u.Scheme == "about")
}

// Loading is everything that was wrong so far with what the page asked for.
func (p *Page) Loading() ([]Fault, error) {
	// What was reported before this call is answered has been listened to.
	if _, err := run(p, chromedp.Evaluate[bool]("true")); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults), nil
}
