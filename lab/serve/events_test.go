package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/ledger"
)

func TestARunUnderWayIsFollowedToItsReport(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, filepath.Join(dir, "live"))
	s := serving(t, dir)
	server := online(t, s)
	page := shows(t, s, "/runs/live", "0 of 10 rounds", liveQuestion, "No figure is shown before the end", "Run under way, begun 2026-03-04 05:06 UTC")
	next, _ := listen(t, server, streamOf(t, page), "")
	l.round()
	e := next()
	for ; !strings.Contains(e.html, ">1 of 10 rounds<"); e = next() {
		if e.name != "part" || e.id != "progress" {
			t.Fatalf("%+v", e)
		}
	}
	for range 4 {
		l.round()
	}
	// Rounds take four seconds each, and the fifth has begun no other.
	for !strings.Contains(e.html, "5 of 10 rounds") {
		e = next()
	}
	text := plainText(e.html)
	for _, want := range []string{"about 20s left", "Cell all", "Round in this cell 6 of 10", "Failed trials 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("says %q, lacks %q", text, want)
		}
	}
	for l.next < 10 {
		l.round()
	}
	for !strings.Contains(e.html, "all 10 rounds are done, and it is being judged") {
		e = next()
	}
	l.end()
	for e.name != "reload" {
		if e = next(); strings.Contains(e.html, "987") {
			t.Errorf("a figure before the end: %s", e.html)
		}
	}
	shows(t, s, "/runs/live", liveQuestion, "speed")
	until(t, "the list to know", func() bool { return s.of(t, "live").state == sound })
}

func TestNoFigureOfARunUnderWay(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, filepath.Join(dir, "live"))
	for range 5 {
		l.round()
	}
	s := settled(t, dir)
	for _, target := range []string{"/", "/runs/live"} {
		// The server's own mark is random and may hold these digits.
		body := strings.ReplaceAll(shows(t, s, target, "5 of 10 rounds"), s.boot, "")
		if strings.Contains(body, "987") || strings.Contains(body, "INCONCLUSIVE") {
			t.Errorf("%s: %s", target, plainText(body))
		}
	}
	shows(t, s, "/studies/speed", "No run of this study has come to its end yet; 1 run under way.")
	if status, _ := get(t, s, "/compare?a=live&b=live2"); status != http.StatusNotFound {
		t.Errorf("compared: %d", status)
	}
}

func TestTheListIsToldOfWhatChanges(t *testing.T) {
	dir := runs(t)
	l := begin(t, filepath.Join(dir, "live"))
	s := settled(t, dir)
	server := online(t, s)
	next, leave := listen(t, server, streamOf(t, shows(t, s, "/")), "")
	l.round()
	row := s.of(t, "live").id
	e := next()
	for ; e.id != row || !strings.Contains(e.html, "1 of 10 rounds"); e = next() {
		if e.name != "part" {
			t.Fatalf("%+v", e)
		}
	}
	last := e.last
	leave()
	until(t, "the stream to end", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.streams == 0
	})
	// Whoever comes back hears what he has missed, and nothing twice.
	l.round()
	next, leave = listen(t, server, "/events?seen=old", last)
	for e = next(); e.id != row; e = next() {
	}
	if !strings.Contains(e.html, "2 of 10 rounds") {
		t.Errorf("after coming back: %s", plainText(e.html))
	}
	leave()
	// A row that is new makes another page.
	next, _ = listen(t, server, streamOf(t, shows(t, s, "/")), "")
	copied(t, filepath.Join(dir, "first"), filepath.Join(dir, "newest"))
	for e = next(); e.name != "reload"; e = next() {
	}
	// And so does another server.
	next, _ = listen(t, server, "/events?seen=0123456789abcdef-999999", "")
	if e = next(); e.name != "reload" {
		t.Errorf("%+v", e)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	dir := t.TempDir()
	begin(t, filepath.Join(dir, "live"))
	s := serving(t, dir)
	server := online(t, s)
	path := streamOf(t, shows(t, s, "/runs/live"))
	var leave func()
	for range mostStreams {
		_, leave = listen(t, server, path, "")
	}
	resp, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %s", resp.Status)
	}
	leave()
	until(t, "room", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.streams < mostStreams
	})
	listen(t, server, path, "")
	if w := request(s, "GET", "/events/none", "localhost"); w.Code != http.StatusNotFound {
		t.Errorf("a run that is not there: %d", w.Code)
	}
}

// Verifying would take processor time from what is measured.
func TestWhileARunIsUnderWayOnlyWhatIsAskedForIsRead(t *testing.T) {
	dir := runs(t)
	l := begin(t, filepath.Join(dir, "live"))
	s := idle(t, dir)
	s.read(t)
	body := shows(t, s, "/", "6 runs, 1 under way, 5 to be verified", "first not verified yet", "no folder is verified unasked")
	if strings.Contains(body, "PROCEED") {
		t.Error("a verdict of what was not verified")
	}
	s.wait = 0
	shows(t, s, "/runs/first", "Verifying…")
	s.read(t)
	shows(t, s, "/runs/first", "GO PROCEED")
	shows(t, s, "/", "first ✓ GO PROCEED", "second not verified yet")
	// A study asks for all that may belong to it.
	shows(t, s, "/studies/speed", "4 runs of the directory are being verified", "1 run of this study under way")
	s.read(t)
	shows(t, s, "/studies/speed", "below/third 3", "1 run of this study under way")

	l.end()
	copied(t, filepath.Join(dir, "first"), filepath.Join(dir, "another"))
	s.read(t)
	shows(t, s, "/", "another ✓ GO PROCEED")
}

// A resume may cut off records that were read already.
func TestAFollowerBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "live")
	l := begin(t, at)
	for range 3 {
		l.round()
	}
	f := &follow{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	says := func(want string) {
		t.Helper()
		f.update(root, "live")
		if got := f.said; got.rounds() != want {
			t.Errorf("says %q, want %q", got.rounds(), want)
		}
	}
	says("3 of 10 rounds")
	chain := slurp(t, filepath.Join(at, ledger.ObservationsFile))
	lines := strings.SplitAfter(string(chain), "\n")
	// The third round is gone, and what follows is longer.
	cut := strings.Join(lines[:7], "")
	write(t, filepath.Join(at, ledger.ObservationsFile), []byte(cut))
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Resume(at, "test", l.from)
	if err != nil {
		t.Fatal(err)
	}
	l.w, l.next = w, 2
	says("3 of 10 rounds") // the chain is shorter than what was read of it: nothing new yet
	for range 3 {
		l.round()
	}
	f.update(root, "live")
	if f.said.fault == "" || f.dead {
		t.Errorf("goes on as if nothing had happened: %s", f.said.rounds())
	}
	says("5 of 10 rounds")

	// One that is damaged from its start is not tried for ever.
	flip(t, filepath.Join(at, ledger.ObservationsFile))
	f = &follow{}
	for range 3 {
		f.update(root, "live")
		if !f.dead || !strings.Contains(f.said.rounds(), "observations.jsonl line") {
			t.Errorf("says %q of a damaged run", f.said.rounds())
		}
	}

	if err := os.Remove(filepath.Join(at, ledger.LockFile)); err != nil {
		t.Fatal(err)
	}
	f = &follow{}
	says("about to begin")
}
