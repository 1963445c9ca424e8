// Package browser opens pages in a real browser, headless Chromium with the
// network off, and says what is wrong with them: what did not load, what is not
// on the first screen, what a keyboard does not reach, what cannot be read. A page
// is a file, or has a server on this machine to itself.
//
// It is a kit for tests. It knows nothing of what a page is about: the tests of
// this package bring the reports of runs, and the pages of assay serve.
//
// # How a page is judged
//
// Chromium itself says what was loaded and what failed. Everything else is
// looked at by a script (audit.js) in the page as it was laid out, in the
// colours that were computed, with real presses of the Tab key. What cannot be
// judged, such as text above a picture, is a fault and no pass.
//
// Rejected: reading the page's source for such faults, as the tests of lab/report
// do. It is quicker and stays; but whether a verdict is on the first screen is
// known only after layout, and which colour stands behind a word only after the
// cascade.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// ErrMissing is returned where no Chromium is installed.
var ErrMissing = errors.New("no Chromium is installed; on Debian: apt-get install chromium")

// programs are the names that Chromium and its relatives go by.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// loopback is where pages may have a server.
const loopback = "127.0.0.1"

const (
	startTime = time.Minute      // for Chromium to come up, on a busy machine too
	stepTime  = 90 * time.Second // for a page to load, or for one look at it
)

// Browser is one headless Chromium. It dies with the context that it was
// started with.
type Browser struct {
	ctx context.Context
	end []context.CancelFunc
}

// Start starts a Chromium with an empty profile. It returns an error that wraps
// ErrMissing where there is none. The browser must be closed.
func Start(ctx context.Context) (*Browser, error) {
	path := ""
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, fmt.Errorf("looked for %v: %w", programs, ErrMissing)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(startTime),
		chromedp.Flag("headless", "new"),
		chromedp.NoSandbox, // root cannot have one, nor can many containers; the pages are ours and reach nobody
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE "+loopback), // no name leads anywhere
	)
	for _, flag := range []string{"disable-gpu", "disable-quic", "disable-component-update"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	b := &Browser{}
	alloc, end := chromedp.NewExecAllocator(ctx, options...)
	b.end = append(b.end, end)
	tab, end := chromedp.NewContext(alloc)
	b.ctx, b.end = tab, append(b.end, end)
	// The first Do starts the process, which lives as long as the context that
	// Do is given; so the deadline cannot be put on that one.
	late := time.AfterFunc(startTime, b.Close)
	err := chromedp.Do(tab)
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser and waits until its process is gone and its profile
// removed.
func (b *Browser) Close() {
	for i := len(b.end) - 1; i >= 0; i-- {
		b.end[i]()
	}
}
