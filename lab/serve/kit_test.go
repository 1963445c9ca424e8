package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// longest is how long an event may take on a busy machine.
const longest = time.Minute

// asked is a protocol whose figures come from a file beside it, so that its runs
// can differ while it stays the same.
const asked = `
assay: 1
name: speed
question: May new <b>replace</b> old?
arms:
  - {name: old, command: [sh, arm.sh, "1000"]}
  - {name: new, command: [sh, arm.sh, "1000", shift]}
design: {rounds: 4, warmup: 1, seed: 1}
metrics:
  - {name: ops, unit: ops/s, better: higher, source: json}
checks:
  - {name: sound, scope: trial, reported: true}
primary: {metric: ops, alpha: 0.2}
decision: {preset: four-branch}
`

// script is arm.sh: a figure that wanders a little from round to round, and
// whether anything went wrong.
const armScript = `n=$1
if [ -n "$2" ]; then n=$((n + $(cat $2))); fi
echo "{\"ops\": $((n + (n + 5 * ASSAY_ROUND) % 7))}"
echo "{\"check\": \"sound\", \"status\": \"$(cat status)\", \"operations\": 5}"
`

// secret stands in runs that are outside of what is served.
const secret = "a question from elsewhere"

// made is a directory with runs of every kind, made once by the real flow.
//
//	runs/first, runs/second   GO
//	runs/below/third          NO-GO
//	runs/aborted              NO-GO, figures withheld
//	runs/other                another study
//	secret/run                not served
var made = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "serve-test-")
	if err != nil {
		return "", err
	}
	for _, r := range []struct{ out, text, shift, status string }{
		{"runs/first", asked, "200", "pass"},
		{"runs/second", asked, "150", "pass"},
		{"runs/below/third", asked, "-200", "pass"},
		{"runs/aborted", asked, "200", "fail"},
		{"runs/other", strings.NewReplacer("name: speed", "name: other", "<b>replace</b>", "join").Replace(asked), "100", "pass"},
		{"secret/run", strings.Replace(asked, "May new <b>replace</b> old?", secret, 1), "200", "pass"},
	} {
		if err := carryOut(dir, r.out, r.text, r.shift, r.status); err != nil {
			return dir, fmt.Errorf("%s: %w", r.out, err)
		}
	}
	return dir, nil
})

func carryOut(dir, out, text, shift, status string) error {
	at, err := os.MkdirTemp(dir, "plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(at)
	for name, text := range map[string]string{"exp.yaml": text, "arm.sh": armScript, "shift": shift, "status": status} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	plan, err := flow.ReadFile(filepath.Join(at, "exp.yaml"), nil)
	if err != nil {
		return err
	}
	lock, err := flow.Freeze(context.Background(), plan, "")
	if err != nil {
		return err
	}
	_, err = flow.Run(context.Background(), plan, lock, flow.Options{Out: filepath.Join(dir, out)})
	return err
}

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	// Nothing here depends on a disk.
	dir, err := os.MkdirTemp("/dev/shm", "serve-test-")
	if err != nil {
		dir, err = os.MkdirTemp("", "serve-test-")
	}
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	m.Run()
}

// runs is a copy of the runs that are served, with what is beside them.
func runs(t testing.TB) (dir string) {
	t.Helper()
	from, err := made()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "runs")
}

// serving is a server whose clock is fast, and that waits for what it is asked.
func serving(t testing.TB, dir string) *Server {
	t.Helper()
	s := idle(t, dir)
	s.begin(t)
	return s
}

// begin has the reader begin.
func (s *Server) begin(t testing.TB) {
	go s.work()
	t.Cleanup(func() { s.Close() })
}

// idle is a server whose reader has yet to begin.
func idle(t testing.TB, dir string) *Server {
	t.Helper()
	s, err := open("assay", dir)
	if err != nil {
		t.Fatal(err)
	}
	s.tick, s.wait = time.Millisecond, longest
	t.Cleanup(func() { s.stop(); s.root.Close() })
	return s
}

// settled is a server that has read everything there is to read.
func settled(t testing.TB, dir string) *Server {
	t.Helper()
	s := idle(t, dir)
	s.read(t)
	s.begin(t)
	return s
}

// read does the reader's work now.
func (s *Server) read(t testing.TB) {
	t.Helper()
	s.again(t)
	for do := s.next(); do != nil; do = s.next() {
		do()
	}
}

// again scans the directory now.
func (s *Server) again(t testing.TB) {
	t.Helper()
	s.scanning.Lock()
	s.scanned = time.Time{}
	s.scanning.Unlock()
	if err := s.refresh(); err != nil {
		t.Fatal(err)
	}
}

// of is what is known of a run.
func (s *Server) of(t testing.TB, key string) entry {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[key]
	if e == nil {
		t.Fatalf("there is no run %q", key)
	}
	return *e
}

// get asks for a page as a browser on this machine does.
func get(t testing.TB, s *Server, target string) (status int, body string) {
	t.Helper()
	w := request(s, http.MethodGet, target, "127.0.0.1:1")
	return w.Code, w.Body.String()
}

func request(s *Server, method, target, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// shows fails where a page is not there or lacks one of the texts.
func shows(t testing.TB, s *Server, target string, texts ...string) string {
	t.Helper()
	status, body := get(t, s, target)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", target, status, plainText(body))
	}
	for _, text := range texts {
		if !strings.Contains(plainText(body), text) {
			t.Errorf("%s does not say %q: %s", target, text, plainText(body))
		}
	}
	return body
}

var (
	unseen = regexp.MustCompile(`(?s)<(style|script|title|desc)[ >].*?</(style|script|title|desc)>`)
	tag    = regexp.MustCompile(`<[^>]*>`)
	blank  = regexp.MustCompile(`\s+`)
)

// plainText is what a page says.
func plainText(page string) string {
	return strings.TrimSpace(blank.ReplaceAllString(html.UnescapeString(tag.ReplaceAllString(unseen.ReplaceAllString(page, ""), " ")), " "))
}

// until waits for something to become true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	end := time.After(longest)
	for !ok() {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("waited %s for %s", longest, what)
		}
	}
}

// live is a run under way, written by the real ledger.
type live struct {
	t    testing.TB
	w    *ledger.Writer
	p    *protocol.Protocol
	next int // round
	from time.Time
}

const liveQuestion = "How far is it?"

func begin(t testing.TB, dir string) *live {
	t.Helper()
	text := strings.NewReplacer("May new <b>replace</b> old?", liveQuestion, "rounds: 4", "rounds: 9").Replace(asked)
	p, faults := protocol.Parse("exp.yaml", []byte(text), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	l := &live{t: t, p: p, from: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	lock, err := protocol.Freeze(p, protocol.Evidence{Tool: "v0.1.0", Now: l.from, Source: "exp.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if l.w, err = ledger.Create(dir, lock, p, &host.Provenance{OS: "linux"}, l.from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.w.Close() })
	return l
}

// figure stands in the records of a run under way.
const figure = 987654321

// round runs a round of two trials of two seconds each.
func (l *live) round() {
	l.t.Helper()
	rounds := trial.Schedule(l.p)
	rd := rounds[l.next]
	for i, slot := range rd.Slots {
		o := &trial.Observation{
			Cell: slot.Cell, Round: slot.Round, Warmup: slot.Warmup, Slot: slot.Slot, Arm: slot.Arm, Seed: slot.Seed,
			Start: l.from.Add(time.Duration(2*(2*l.next+i)) * time.Second), Status: trial.StatusOK, Values: map[string]float64{"ops": figure},
		}
		if l.next == 2 && i == 0 {
			o.Status, o.Values = trial.StatusFailed, nil
		}
		l.append(ledger.Record{Kind: ledger.KindTrial, Trial: o})
	}
	if err := l.w.EndRound(ledger.RoundMark{Cell: rd.Cell, Round: rd.Round, Warmup: rd.Warmup}, false); err != nil {
		l.t.Fatal(err)
	}
	l.next++
}

func (l *live) append(rec ledger.Record) {
	l.t.Helper()
	if err := l.w.Append(rec); err != nil {
		l.t.Fatal(err)
	}
}

// end takes the run to its verdict.
func (l *live) end() {
	l.t.Helper()
	l.append(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{Time: l.from.Add(time.Hour)}})
	if err := l.w.Close(); err != nil {
		l.t.Fatal(err)
	}
	run, err := ledger.Open(l.w.Run().Dir)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := flow.Conclude(run); err != nil {
		l.t.Fatal(err)
	}
}

// online puts a server on a port. It ends before the server is closed and after
// all that listen.
func online(t testing.TB, s *Server) *httptest.Server {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server
}

// event is one that a stream has sent.
type event struct {
	name string
	id   string // of the element
	html string
	last string // Last-Event-ID
}

// listen opens a stream as a browser does.
func listen(t testing.TB, server *httptest.Server, path, last string) (next func() event, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s, %s: %s", path, resp.Status, kind, b)
	}
	leave = func() {
		cancel()
		resp.Body.Close()
	}
	t.Cleanup(leave)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() event {
		t.Helper()
		var e event
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				e.name = value
			case "id":
				e.last = value
			case "data":
				var data struct{ ID, HTML string }
				if err := json.Unmarshal([]byte(value), &data); err != nil {
					t.Fatal(err)
				}
				e.id, e.html = data.ID, data.HTML
			case "":
				if e.name != "" {
					return e
				}
			}
		}
		t.Fatalf("%s: the stream ended: %v", path, lines.Err())
		return e
	}, leave
}

// streamOf is where a page has its events from.
func streamOf(t testing.TB, page string) string {
	t.Helper()
	m := regexp.MustCompile(`<body data-live="([^"]*)">`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no stream: %.300s", page)
	}
	return html.UnescapeString(m[1])
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func slurp(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func copied(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
