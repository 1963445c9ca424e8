package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/ledger"
)

func TestTheListHasEveryVerdict(t *testing.T) {
	s := settled(t, runs(t))
	body := shows(t, s, "/", "5 runs, 2 studies.", "first ✓ GO PROCEED speed", "second ✓ GO PROCEED speed", "below/third ✕ NO-GO REGRESSION speed", "aborted ✕ NO-GO ABORT speed", "other ✓ GO PROCEED other")
	for _, want := range []string{`href="/runs/below/third"`, `href="/studies/speed"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the list lacks %s", want)
		}
	}
	if strings.Contains(body, secret) {
		t.Error("the list has a run from elsewhere")
	}
}

func TestARunIsItsReport(t *testing.T) {
	dir := runs(t)
	s := serving(t, dir)
	body := shows(t, s, "/runs/below/third", "NO-GO REGRESSION", "All runs speed below/third", "Primary comparison", "Provenance")
	// But for the way back it is the page in the folder.
	page := string(slurp(t, filepath.Join(dir, "below", "third", ledger.ReportFile)))
	trail := regexp.MustCompile(`(?s)<nav class="trail".*?</nav>\n`)
	if !trail.MatchString(body) || trail.ReplaceAllString(body, "") != page {
		t.Error("the report of a run is not the one that its folder has")
	}
	if strings.Contains(body, "<script") {
		t.Error("a report has a script")
	}
}

func TestAStudyIsATrend(t *testing.T) {
	s := settled(t, runs(t))
	body := shows(t, s, "/studies/speed", "May new <b>replace</b> old?", "Change of ops", "first 1 ✓ GO PROCEED +", "second 2 ✓ GO", "below/third 3 ✕ NO-GO REGRESSION -", "aborted 4 ✕ NO-GO ABORT –", "Two runs side by side")
	for _, want := range []string{"<svg", "run 3: NO-GO, -", "run 4: NO-GO, no figure", `<form action="/compare" method="get">`, `<option value="below/third" selected>`} {
		if !strings.Contains(body, want) {
			t.Errorf("the trend lacks %s", want)
		}
	}
	if strings.Contains(body, ">other<") {
		t.Error("the trend has a run of another study")
	}
	if one := shows(t, s, "/studies/other", "other 1 ✓ GO", "no trend to draw yet"); strings.Contains(one, "<form") {
		t.Error("one run can be compared with itself")
	}
	if status, _ := get(t, s, "/studies/nothing"); status != http.StatusNotFound {
		t.Errorf("a study that is not there: %d", status)
	}
}

func TestTwoRunsSideBySide(t *testing.T) {
	s := serving(t, runs(t))
	shows(t, s, "/compare?a=first&b=below%2Fthird", "Run 1 first ✓ GO PROCEED Run 2 below/third ✕ NO-GO REGRESSION", "Outcomes", "What differs", "the outcome differs: PROCEED, REGRESSION", "ops of new changes sign", "max/min")
	shows(t, s, "/compare?a=first&b=aborted", "figures withheld")
	shows(t, s, "/compare?a=first&b=other", "not runs of one protocol")
	for target, want := range map[string]int{
		"/compare":                       http.StatusBadRequest,
		"/compare?a=first":               http.StatusBadRequest,
		"/compare?a=first&b=first":       http.StatusBadRequest,
		"/compare?a=first&b=nowhere":     http.StatusNotFound,
		"/compare?a=../secret/run&b=../": http.StatusNotFound,
	} {
		if status, body := get(t, s, target); status != want || strings.Contains(body, "Outcomes") {
			t.Errorf("%s: %d, want %d", target, status, want)
		}
	}
}

func TestAComparisonIsOfSoundRuns(t *testing.T) {
	dir := runs(t)
	flip(t, filepath.Join(dir, "second", ledger.ObservationsFile))
	s := serving(t, dir)
	// What is not known yet is found out, and shown only then.
	if _, body := get(t, s, "/compare?a=first&b=second"); strings.Contains(body, "Outcomes") {
		t.Error("a run that does not verify is compared")
	}
	if status, body := get(t, s, "/compare?a=first&b=second"); status != http.StatusConflict || !strings.Contains(body, "second has no figures") {
		t.Errorf("status %d: %s", status, plainText(body))
	}
}

func TestTheDirectoryMayBeARunItself(t *testing.T) {
	s := settled(t, filepath.Join(runs(t), "first"))
	shows(t, s, "/", "1 run, 1 study.", "first ✓ GO")
	shows(t, s, "/runs/first", "GO PROCEED")
}

func TestAnEmptyDirectory(t *testing.T) {
	shows(t, settled(t, t.TempDir()), "/", "0 runs.", "There is no run folder here yet.")
}

func TestWhatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	for dir, want := range map[string]string{file: "is a file", file + "s": "there is no directory"} {
		if s, err := New("assay", dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", dir, s, err)
		}
	}
	dir := t.TempDir()
	s := serving(t, filepath.Join(dir, "."))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	// What stands there now is another directory.
	copied(t, filepath.Join(runs(t), "first"), filepath.Join(dir, "first"))
	until(t, "the next scan", func() bool { return s.refresh() != nil })
	if status, body := get(t, s, "/"); status != http.StatusInternalServerError || strings.Contains(body, ">first<") {
		t.Errorf("status %d: %s", status, plainText(body))
	}
}

// pagesOf are one page of each kind.
func pagesOf(t *testing.T) map[string]string {
	dir := runs(t)
	flip(t, filepath.Join(dir, "other", ledger.ObservationsFile))
	write(t, filepath.Join(dir, "odd", ledger.LockFile), []byte("{"))
	l := begin(t, filepath.Join(dir, "live"))
	l.round()
	s := serving(t, dir)
	all := map[string]string{}
	for _, target := range []string{
		"/", "/runs/first", "/runs/live", "/runs/other", "/runs/odd", "/runs/none", "/none", "/studies/speed", "/compare?a=first&b=second", "/compare",
	} {
		_, all[target] = get(t, s, target)
	}
	return all
}

func TestEveryPageIsAllowedByItsPolicyAlone(t *testing.T) {
	element := regexp.MustCompile(`(?s)<(style|script)>(.*?)</`)
	forbidden := regexp.MustCompile(`(?i)<script[^>]|<style[^>]| style="| on[a-z]+=|javascript:|<iframe|<object|<embed|<base|src=|https?://`)
	for target, body := range pagesOf(t) {
		n := 0
		for _, m := range element.FindAllStringSubmatch(body, -1) {
			n++
			sum := sha256.Sum256([]byte(m[2]))
			if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, m[1]+"-src") || !strings.Contains(policy, want) {
				t.Errorf("%s: the policy does not allow its %s", target, m[1])
			}
		}
		if n == 0 {
			t.Errorf("%s has no style", target)
		}
		rest := strings.ReplaceAll(element.ReplaceAllString(body, "</"), "http://www.w3.org/2000/svg", "")
		if bad := forbidden.FindString(rest); bad != "" {
			t.Errorf("%s has %q", target, bad)
		}
		for _, want := range []string{"<!DOCTYPE html>", `<html lang="en">`, `name="viewport"`, `class="skip" href="#content"`, `id="content"`, "<h1"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", target, want)
			}
		}
		for _, bad := range []string{"ZgotmplZ", "%!", "<no value>", "NaN"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %s", target, bad)
			}
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestWithoutScriptAPageComesAgain(t *testing.T) {
	dir := runs(t)
	begin(t, filepath.Join(dir, "live")).round()
	s := settled(t, dir)
	const again = `<noscript><meta http-equiv="refresh"`
	for target, want := range map[string]bool{"/": true, "/runs/live": true, "/runs/first": false, "/compare": false} {
		body := ""
		if _, body = get(t, s, target); strings.Contains(body, again) != want {
			t.Errorf("%s comes again by itself: %v", target, !want)
		}
	}
	if body := shows(t, s, "/runs/live", "1 of 10 rounds", "Reload this page"); !strings.Contains(body, `<progress max="10" value="1"`) {
		t.Error("no bar")
	}
}

func TestAPageThatTakesLongSaysSo(t *testing.T) {
	s := idle(t, runs(t))
	s.wait = 0
	for _, target := range []string{"/runs/first", "/compare?a=first&b=second", "/studies/speed"} {
		if body := shows(t, s, target, "Verifying…"); !strings.Contains(body, `<meta http-equiv="refresh" content="2">`) || strings.Contains(body, "PROCEED") {
			t.Errorf("%s: %s", target, plainText(body))
		}
	}
	if n := len(s.jobs); n != 2 {
		t.Errorf("%d jobs, want one per page", n)
	}
	shows(t, s, "/runs/first", "Verifying…")
	if n := len(s.jobs); n != 2 {
		t.Errorf("%d jobs after the page was asked for again", n)
	}
	s.read(t)
	shows(t, s, "/runs/first", "GO PROCEED")
	shows(t, s, "/compare?a=first&b=second", "Outcomes")
	shows(t, s, "/studies/speed", "below/third 3")
}

func TestWhatIsAskedForIsBounded(t *testing.T) {
	dir := runs(t)
	for i := range 2 * mostJobs {
		copied(t, filepath.Join(dir, "first"), filepath.Join(dir, fmt.Sprint("run", i)))
	}
	s := idle(t, dir)
	s.wait = 0
	for i := range 2 * mostJobs {
		shows(t, s, fmt.Sprint("/runs/run", i), "Verifying…")
	}
	if n := len(s.jobs); n != mostJobs {
		t.Errorf("%d jobs wait", n)
	}
	s.read(t)
	shows(t, s, "/runs/run0", "GO PROCEED")
}

func TestTheShelfIsBounded(t *testing.T) {
	s := idle(t, t.TempDir())
	page := bytes.Repeat([]byte("x"), shelfBytes/4)
	for i := range 10 {
		s.keep(runPlace(fmt.Sprint(i), fingerprint{}), page)
		s.keep(runPlace(fmt.Sprint(i), fingerprint{}), page)
	}
	if n := len(s.shelf.pages); n != 4 || len(s.shelf.order) != 4 || s.shelf.bytes != shelfBytes {
		t.Errorf("%d pages of %d bytes", n, s.shelf.bytes)
	}
	if s.shelf.pages[runPlace("9", fingerprint{})] == nil {
		t.Error("the last page is gone")
	}
}

// flip turns a bit in the middle of a file.
func flip(t testing.TB, path string) {
	t.Helper()
	b := slurp(t, path)
	b[len(b)/2] ^= 1
	write(t, path, b)
}
