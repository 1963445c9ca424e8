package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/serve"
	"github.com/assaylab/assay/lab/trial"
)

// roundsOfLookups is how many rounds the study has: four cells, ten rounds and a warm-up.
const roundsOfLookups = 44

// archive is a directory with runs of every kind, in the order in which they began.
func archive(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	// Samples that no page shows are missing in a recording, so it does not verify.
	recorded := filepath.Join(dir, "recorded")
	if err := errors.Join(os.Mkdir(recorded, 0o755), unpack(recordings[0].path(), recorded), os.MkdirAll(filepath.Join(dir, "odd", ledger.LockFile), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		path  string
		study *flow.Study
		until int
	}{
		{"before spring", lookupStudy("lookups", "one_by_one", "by_halves"), 0},
		{"forgetful", lookupStudy("lookups", "one_by_one", "forgetful"), 0},
		{"stopped", lookupStudy("lookups", "one_by_one", "by_halves"), 9},
		{"in spring", lookupStudy("lookups", "one_by_one", "by_halves"), 0},
		{"archive/" + strings.Repeat("a-folder-that-somebody-gave-a-long-name-", 4), lookupStudy("lookups_with_a_name_that_nobody_would_like_to_read_in_a_table", "one_by_one", "by_halves"), 0},
		{"today", lookupStudy("lookups", "by_halves", "one_by_one"), 0},
	} {
		if err := carryOut(t.Context(), filepath.Join(dir, r.path), r.study, r.until); err != nil {
			t.Fatalf("%s: %v", r.path, err)
		}
	}
	return dir
}

// served has assay serve show a directory.
func served(t testing.TB, dir string) (address string) {
	t.Helper()
	s, err := serve.New("assay", dir)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.Serve(ctx, ln, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// underWay begins a run whose trials wait: each takes one from let, or goes on when it
// is closed. The run ends with the test at the latest.
func underWay(t testing.TB, dir string) (let chan struct{}) {
	t.Helper()
	let = make(chan struct{})
	study := lookupStudy("lookups", "one_by_one", "by_halves")
	for name, f := range study.Arms {
		study.Arms[name] = func(ctx context.Context, t *trial.T) error {
			select {
			case <-let:
				return f(ctx, t)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- carryOut(ctx, dir, study, 0) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return let
}

// rounds lets so many rounds of two trials go on.
func rounds(t testing.TB, let chan<- struct{}, n int) {
	t.Helper()
	for range 2 * n {
		select {
		case let <- struct{}{}:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// openMade opens a page once it no longer says that it is being made.
func openMade(b *Browser, address string, look Look) (*Page, error) {
	p, err := b.OpenServed(address, look)
	if err != nil {
		return nil, err
	}
	if err := p.Until(`document.querySelector("meta[http-equiv=refresh]") === null`); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// contains is an expression that is true when an element of the page shows a text.
func contains(selector, text string) string {
	return fmt.Sprintf(`(document.querySelector(%s)?.innerText ?? "").includes(%s)`, strconv.Quote(selector), strconv.Quote(text))
}

// rowOf finds the row of a run in the list.
func rowOf(run string) string {
	return fmt.Sprintf(`tr:has(> th > a[href="/runs/%s"])`, run)
}

// Whoever keeps runs looks at them on the pages of assay serve as at one report from
// disk, and nothing that he sees comes from elsewhere.
func TestServedPagesInABrowser(t *testing.T) {
	b := start(t)
	dir := archive(t)
	address := served(t, dir)
	list, err := b.OpenServed(address+"/", wide)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	// Nothing is verified unasked while a run is under way, so that comes first.
	if err := list.Until(`document.querySelectorAll("tbody .state").length >= 8 && !(document.body?.innerText ?? "not verified yet").includes("not verified yet")`); err != nil {
		t.Fatal(err)
	}
	let := underWay(t, filepath.Join(dir, "now"))
	rounds(t, let, 5)
	if err := list.Until(contains(rowOf("now"), fmt.Sprintf("5 of %d rounds", roundsOfLookups))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		glances    []glance
	}{
		{"list", "/", []glance{
			{"#studies tbody tr:nth-child(1) .state", "NO-GO"},
			{"#studies tbody tr:nth-child(2) .state", "GO"},
			{rowOf("now") + " .state", "under way"},
			{rowOf("today") + " .state", "NO-GO"},
		}},
		{"study", "/studies/lookups", []glance{{"h1", "May keys be looked up another way?"}}},
		{"run", "/runs/today", []glance{{".verdict .word", "REGRESSION"}}},
		{"sides", "/compare?a=before%20spring&b=in%20spring", []glance{{"header dl", "GO"}, {"#content h2", "Outcomes"}}},
		{"sides-that-differ", "/compare?a=forgetful&b=today", []glance{{"header dl", "ABORT"}, {"header dl", "REGRESSION"}}},
		{"under-way", "/runs/now", []glance{{"#progress .word", "5 of"}}},
		{"changed", "/runs/recorded", []glance{{"h1", "is not what was recorded"}, {"pre", "assay verify"}}},
		{"unread", "/runs/odd", []glance{{"h1", "cannot be shown"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lookAt(t, "served-"+c.name, func(size Look) (*Page, error) { return openMade(b, address+c.path, size) }, c.glances...)
		})
	}
	t.Run("from page to page", func(t *testing.T) {
		t.Parallel()
		goThrough(t, b, address)
	})
}

// goThrough goes from the list to a study, and from there to two of its runs side by
// side, by keyboard alone.
func goThrough(t *testing.T, b *Browser, address string) {
	p, err := openMade(b, address+"/", narrow)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, step := range []struct{ press, then string }{
		{`a[href="/studies/lookups"]`, contains("h2", "From run to run")},
		{`form button`, contains("h1", "May keys be looked up another way?") + ` && location.pathname === "/compare"`},
		{`a[href="/runs/today"]`, contains(".verdict .word", "REGRESSION")},
		{`nav a[href="/"]`, contains("h1", "Runs")},
	} {
		focus := fmt.Sprintf(`document.querySelector(%s).focus()`, strconv.Quote(step.press))
		if err := p.do(chromedp.Evaluate[chromedp.Void](focus)); err != nil {
			t.Fatalf("%s: %v", step.press, err)
		}
		if err := p.press(kb.Enter); err != nil {
			t.Fatal(err)
		}
		if err := p.Until(step.then); err != nil {
			t.Fatal(err)
		}
	}
	if faults, err := p.Loading(); err != nil || len(faults) > 0 {
		t.Errorf("on the way: %v, %v", faults, err)
	}
}

// mark marks the page that is open now; another that takes its place has no mark.
func mark(p *Page) error { return p.Until("window.marked = true") }

// told waits until something is true of a page, which must still be the one that was
// marked.
func told(p *Page, what string) error {
	if err := p.Until(what); err != nil {
		return err
	}
	same, err := run(p, chromedp.Evaluate[bool]("window.marked === true"))
	if err == nil && !same {
		err = errors.New("the page was loaded again")
	}
	return err
}

// A run under way is followed as it goes on, without a reload, and ends in its report.
func TestARunIsFollowedInABrowser(t *testing.T) {
	b := start(t)
	dir := t.TempDir()
	address := served(t, dir)
	list, err := b.OpenServed(address+"/", narrow)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	let := underWay(t, filepath.Join(dir, "live"))
	done := func(n int) string { return fmt.Sprintf("%d of %d rounds", n, roundsOfLookups) }
	row := rowOf("live")
	if err := list.Until(contains(row, done(0))); err != nil {
		t.Fatal(err)
	}
	page, err := b.OpenServed(address+"/runs/live", narrow)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := errors.Join(mark(list), mark(page)); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := errors.Join(told(list, contains(row, done(n))), told(page, contains("#progress", done(n)))); err != nil {
			t.Fatalf("after %d rounds: %v", n, err)
		}
		rounds(t, let, 1)
	}
	photograph(t, page, "followed-run")
	photograph(t, list, "followed-list")
	close(let)
	// The report takes the place of the page; the list goes on as it is.
	if err := page.Until(contains(".verdict .word", "PROCEED")); err != nil {
		t.Fatal(err)
	}
	if err := told(list, contains(row, "PROCEED")+" && "+contains("#studies", "lookups")); err != nil {
		t.Fatal(err)
	}
	photograph(t, page, "followed-run-ended")
	photograph(t, list, "followed-list-ended")
	faults, err := page.FirstScreen(".verdict .word", "PROCEED")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Page{list, page} {
		more, err := p.Loading()
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, more...)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// spoilt serves what another server serves, with something wrong: the pages are changed,
// and the stream of events may be another.
func spoilt(t testing.TB, address string, header func(http.Header), body func(string) string, stream http.HandlerFunc) string {
	t.Helper()
	get := func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, address+r.URL.RequestURI(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway) // the tab was closed
			return
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		maps.Copy(w.Header(), resp.Header)
		w.Header().Del("Content-Length")
		header(w.Header())
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write([]byte(body(string(page))))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", get)
	mux.HandleFunc("/events", stream)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// Each of these is a server whose pages must be rejected.
func TestServedPagesThatMustBeRejected(t *testing.T) {
	b := start(t)
	dir := t.TempDir()
	if err := carryOut(t.Context(), filepath.Join(dir, "today"), lookupStudy("lookups", "one_by_one", "by_halves"), 0); err != nil {
		t.Fatal(err)
	}
	address := served(t, dir)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	verified, err := b.OpenServed(address+"/", narrow)
	if err != nil {
		t.Fatal(err)
	}
	defer verified.Close()
	if err := verified.Until(contains("#studies .state", "GO")); err != nil {
		t.Fatal(err)
	}
	open := func(h http.Header) { h.Del("Content-Security-Policy") }
	strict := func(http.Header) {}
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	insert := func(text string) func(string) string {
		return func(page string) string { return strings.Replace(page, "<header>", text+"<header>", 1) }
	}
	same := func(page string) string { return page }
	twins := []struct {
		name   string
		header func(http.Header)
		body   func(string) string
		stream http.HandlerFunc
		rule   string
	}{
		{"a picture from another server of this machine", open, insert(`<img alt="" src="` + other.URL + `/a.png">`), silent, RuleLoad},
		{"a picture that the policy forbids", strict, insert(`<img alt="" src="` + other.URL + `/a.png">`), silent, RuleConsole},
		{"a picture that the server does not have", open, insert(`<img alt="" src="/a.png">`), silent, RuleLoad},
		{"a style sheet of which the policy knows nothing", strict, func(page string) string { return strings.Replace(page, "<style>", "<style>h1 { color: red }", 1) }, silent, RuleConsole},
		{"no stream", strict, same, http.NotFound, RuleLoad},
		{"a stream that is none", strict, same, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }, RuleConsole},
		{"a stream from another server", open, func(page string) string {
			return strings.Replace(page, `data-live="`, `data-live="`+other.URL, 1)
		}, silent, RuleLoad},
		{"verdicts below the fold", open, insert(`<div style="height: 800px"></div>`), silent, RuleFirst},
		{"verdicts beside a narrow screen", open, func(page string) string {
			return strings.ReplaceAll(page, `<td class="l text">`, `<td style="padding-left: 390px">`)
		}, silent, RuleFirst},
	}
	for _, c := range twins {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := b.OpenServed(spoilt(t, address, c.header, c.body, c.stream)+"/", narrow)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := p.Until(contains("#studies .state", "GO")); err != nil {
				t.Fatal(err)
			}
			// What a script asks for may fail after the page was loaded.
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for end := time.After(stepTime); ; {
				faults, err := p.FirstScreen("#studies .state", "GO")
				more, lerr := p.Loading()
				if err := errors.Join(err, lerr); err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(append(faults, more...), func(f Fault) bool { return f.Rule == c.rule }) {
					return
				}
				select {
				case <-look.C:
				case <-end:
					t.Fatalf("no fault of rule %s; found: %v", c.rule, append(faults, more...))
				}
			}
		})
	}
	t.Run("none of these", func(t *testing.T) {
		t.Parallel()
		p, err := b.OpenServed(spoilt(t, address, strict, same, silent)+"/", narrow)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Until(contains("#studies .state", "GO")); err != nil {
			t.Fatal(err)
		}
		first, err := p.FirstScreen("#studies .state", "GO")
		faults, lerr := p.Loading()
		if err := errors.Join(err, lerr); err != nil || len(first)+len(faults) > 0 {
			t.Errorf("%v %v %v", first, faults, err)
		}
	})
}

// A page that is loaded again and again shows what is new as well, but is not told of it.
func TestAReloadIsNotFollowing(t *testing.T) {
	b := start(t)
	dir := t.TempDir()
	let := underWay(t, filepath.Join(dir, "live"))
	reloading := func(page string) string {
		head, _, _ := strings.Cut(page, "<script>")
		return strings.Replace(head, "<title>", `<meta http-equiv="refresh" content="1"><title>`, 1)
	}
	p, err := b.OpenServed(spoilt(t, served(t, dir), func(http.Header) {}, reloading, http.NotFound)+"/", wide)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Until(contains("tbody", "0 of")); err != nil {
		t.Fatal(err)
	}
	if err := mark(p); err != nil {
		t.Fatal(err)
	}
	rounds(t, let, 1)
	if err := told(p, contains("tbody", "1 of")); err == nil {
		t.Error("passes for a page that is told")
	}
}
