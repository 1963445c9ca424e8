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
	"github.com/chromedp/cdproto/page"
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
	RuleLoad      = "load"      // nothing fails to load, and nothing goes elsewhere
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
	ctx  context.Context
	end  context.CancelFunc
	home *url.URL // the file, or the root of the server

	mu     sync.Mutex // guards what Chromium reports at any time
	urls   map[network.RequestID]string
	faults []Fault
}

//go:embed audit.js
var auditScript string

// OpenFile opens a file from disk with the network off, and waits until everything
// that it asks for has been loaded or has failed. That something failed is no error
// but a fault of Loading. The page must be closed.
func (b *Browser) OpenFile(path string, look Look) (*Page, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := &url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	return b.open(u, u, look)
}

// OpenServed opens a page of a server on 127.0.0.1, as OpenFile does a file. That
// server is all of the network that the page reaches, and whatever else it asks for is
// a fault of Loading.
func (b *Browser) OpenServed(address string, look Look) (*Page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.Hostname() != loopback || u.Port() == "" {
		return nil, fmt.Errorf("open %s: is no address http://%s:PORT/", address, loopback)
	}
	return b.open(u, &url.URL{Scheme: u.Scheme, Host: u.Host}, look)
}

func (b *Browser) open(at, home *url.URL, look Look) (*Page, error) {
	p := &Page{home: home, urls: map[network.RequestID]string{}}
	p.ctx, p.end = chromedp.NewContext(b.ctx, chromedp.WithListener(p.listen))
	late := time.AfterFunc(stepTime, p.end) // the tab lives as long as the context of the first Do, as in Start
	err := chromedp.Do(p.ctx)
	late.Stop()
	steps := []func() error{
		func() error { return call(p, network.Enable, network.EnableParams{}) },
		func() error { return call(p, log.Enable, cdp.Empty{}) },
		p.cutOff,
		func() error {
			return call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		},
		func() error { return p.Look(look) },
		func() error { // for every page that takes the place of this one too
			return call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "window.audit = " + auditScript})
		},
		func() error { return p.do(chromedp.Navigate(at.String())) },
	}
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("open %s: %w", at, err)
	}
	return p, nil
}

// cutOff takes the network away, but for the page's own server.
func (p *Page) cutOff() error {
	offline := &network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}
	if p.home.Scheme == "file" {
		return errors.Join(
			call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{offline}}),
			call(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}))
	}
	own := &network.Conditions{URLPattern: p.home.String() + "/*", DownloadThroughput: -1, UploadThroughput: -1}
	return call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{own, offline}})
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

// Until waits until a JavaScript expression is true in the page, or in one that has
// taken its place meanwhile.
func (p *Page) Until(expression string) error {
	ctx, cancel := context.WithTimeout(p.ctx, stepTime)
	defer cancel()
	script := fmt.Sprintf("new Promise(done => { const look = () => (%s) ? done(true) : setTimeout(look, 10); look(); })", expression)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
		var wrong *chromedp.ExceptionError
		if err == nil || errors.As(err, &wrong) {
			return err
		}
		// Another error is that the page went away while it was asked.
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", stepTime, expression, err)
		}
	}
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
		if !belongs(p.home, e.Request.URL) {
			p.fault(RuleLoad, e.Request.URL, elsewhere)
		}
	case *network.EventWebSocketCreated:
		p.fault(RuleLoad, e.URL, elsewhere)
	case *network.EventLoadingFailed:
		if e.Type == network.ResourceTypeEventSource && e.Canceled {
			return // the page has heard all that it wanted to
		}
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

const elsewhere = "is asked for elsewhere; a page must be whole by itself, or have everything from its own server"

// belongs says whether an address leads to what a page may ask for: what lies beside
// a file, or what the page's server has.
func belongs(home *url.URL, address string) bool {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return false
	case u.Scheme == "data" || u.Scheme == "about":
		return true
	}
	return u.Scheme == home.Scheme && u.Host == home.Host && u.User == nil
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
