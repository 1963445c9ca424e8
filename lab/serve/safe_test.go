package serve

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

// raw sends a request line as it is: a client library would tidy it up.
func raw(t *testing.T, server *httptest.Server, line, host string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(longest)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, host)
	method, _, _ := strings.Cut(line, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return resp, string(body)
}

func TestNoNameLeadsOut(t *testing.T) {
	dir := runs(t)
	for name, to := range map[string]string{"link": "../secret/run", "links": "../secret", "absolute": filepath.Join(filepath.Dir(dir), "secret", "run"), "inside": "first"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := settled(t, dir)
	server := online(t, s)
	outside := filepath.Join(filepath.Dir(dir), "secret", "run")
	for _, name := range []string{
		"../secret/run", "..%2fsecret%2frun", "..%2Fsecret/run", "%2e%2e/secret/run", "%2e%2e%2fsecret%2frun", "below/../../secret/run", "below%2f..%2f..%2fsecret%2frun",
		"first/../../secret/run", "..%5csecret%5crun", "..\\secret\\run", "....//secret/run", "%252e%252e%252fsecret%252frun", "%c0%ae%c0%ae/secret/run",
		outside, strings.ReplaceAll(outside, "/", "%2f"), "/" + outside, "file://" + outside,
		"first%00", "%00", "first%2f..%2f..%2fsecret%2frun%00", "first/lock.json", "first/report.html", "first%2flock.json", "first/", "/first", ".", "%2e", "..", "below", "",
		"link", "links/run", "absolute", "inside", "below/third/../third", "FIRST",
	} {
		for _, prefix := range []string{"/runs/", "/studies/", "/events/"} {
			resp, body := raw(t, server, "GET "+prefix+name, "127.0.0.1")
			switch {
			case strings.Contains(body, secret) || strings.Contains(body, "assay_lock"):
				t.Errorf("%s%s shows what is not served: %d", prefix, name, resp.StatusCode)
			case resp.StatusCode >= 300 && resp.StatusCode < 400:
				// The path as it should have been written, on this server.
				if to := resp.Header.Get("Location"); !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
					t.Errorf("%s%s leads to %s", prefix, name, to)
				}
			case resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest:
				t.Errorf("%s%s: %d: %s", prefix, name, resp.StatusCode, plainText(body))
			}
		}
		for _, query := range []string{"a=" + name + "&b=first", "a=first&b=" + name} {
			if resp, body := raw(t, server, "GET /compare?"+query, "127.0.0.1"); resp.StatusCode < 400 || strings.Contains(body, secret) {
				t.Errorf("/compare?%s: %d", query, resp.StatusCode)
			}
		}
	}
	shows(t, s, "/", "4 symbolic link(s) not followed: absolute, inside, link, links")
	if resp, body := raw(t, server, "GET /runs/first", "127.0.0.1"); resp.StatusCode != http.StatusOK || !strings.Contains(body, "PROCEED") {
		t.Errorf("what is served is not shown: %d", resp.StatusCode)
	}
}

func TestAnotherHostIsRefused(t *testing.T) {
	s := settled(t, runs(t))
	server := online(t, s)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LocalHost:1": 200, "127.0.0.1": 200, "127.0.0.1:65535": 200, "127.1.2.3:80": 200, "[::1]": 200, "[::1]:9": 200,
		"evil.example": 403, "evil.example:80": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "evil.example#localhost": 403,
		"10.0.0.1": 403, "0.0.0.0": 403, "0.0.0.0:80": 403, "[::]": 403, "192.168.1.1:80": 403, "localhost:": 403, "localhost.": 403, "2130706433": 403, "0x7f000001": 403,
		"127.1": 403, "": 403, "user@localhost": 403, "[::1%25lo]": 403, "[fe80::1]": 403,
	} {
		for _, path := range []string{"/", "/runs/first", "/events?seen=x"} {
			resp, body := raw(t, server, "GET "+path, host)
			if refused := resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusBadRequest; refused != (want != 200) {
				t.Errorf("Host %q, %s: %d, want %d", host, path, resp.StatusCode, want)
			} else if refused && strings.Contains(body, "first") {
				t.Errorf("Host %q, %s: refused, and something is shown: %s", host, path, body)
			}
		}
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	s := settled(t, runs(t))
	for _, c := range []struct {
		site, dest string
		want       int
	}{
		{"", "", 200}, {"none", "document", 200}, {"same-origin", "empty", 200}, {"same-origin", "document", 200},
		{"cross-site", "document", 200}, {"same-site", "document", 200},
		{"cross-site", "image", 403}, {"cross-site", "iframe", 403}, {"cross-site", "empty", 403}, {"same-site", "script", 403}, {"cross-site", "", 403}, {"odd", "", 403},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = "localhost"
		r.Header.Set("Sec-Fetch-Site", c.site)
		r.Header.Set("Sec-Fetch-Dest", c.dest)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}

func TestOnlyReading(t *testing.T) {
	s := settled(t, runs(t))
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		w := request(s, method, "/", "localhost")
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, allowed are %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	server := online(t, s)
	for _, path := range []string{"/", "/runs/first", "/studies/speed", "/runs/none", "/events?seen=x"} {
		head, body := raw(t, server, "HEAD "+path, "localhost")
		if body != "" || head.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("HEAD %s: %q, %v", path, body, head.Header)
		}
	}
}

func TestEveryAnswerIsFenced(t *testing.T) {
	s := settled(t, runs(t))
	for target, host := range map[string]string{
		"/": "localhost", "/runs/first": "localhost", "/runs/none": "localhost", "/none": "localhost", "/compare": "localhost", "/events/none": "localhost", "/studies/none": "evil.example", "/runs//first": "localhost",
	} {
		h := request(s, "GET", target, host).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", target, name, got)
			}
		}
	}
}

// A folder that is damaged or was made to do harm costs its own row, and shows
// neither verdict nor figure.
func TestHostileFolders(t *testing.T) {
	change := func(file string, change func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			write(t, path, change(slurp(t, path)))
		}
	}
	instead := func(file string, put func(path string) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := put(path); errors.Is(err, syscall.EPERM) {
				t.Skip("not allowed here")
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o644) }
	link := func(path string) error {
		return os.Symlink(filepath.Join("..", "..", "secret", "run", filepath.Base(path)), path)
	}
	device := func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o644, 1<<8|5) } // /dev/zero
	socket := func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0) }
	huge := func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40))
	}
	for _, c := range []struct {
		what  string
		make  func(t *testing.T, dir string)
		state state
		says  string
	}{
		{"a lock that is no JSON", change(ledger.LockFile, func([]byte) []byte { return []byte("<b>not JSON") }), broken, "lock.json: lock does not match its digest"},
		{"no lock", instead(ledger.LockFile, func(string) error { return nil }), broken, "lock.json: is missing"},
		{"a lock that is a link", instead(ledger.LockFile, link), unread, "lock.json is a symbolic link"},
		{"a lock that is a folder", instead(ledger.LockFile, func(path string) error { return os.Mkdir(path, 0o755) }), unread, "lock.json is a folder"},
		{"a chain that is a pipe", instead(ledger.ObservationsFile, pipe), unread, "observations.jsonl is a pipe"},
		{"samples that are a pipe", instead(ledger.SamplesFile, pipe), unread, "samples.bin is a pipe"},
		{"a chain that is a device", instead(ledger.ObservationsFile, device), unread, "observations.jsonl is a device"},
		{"a seal that is a socket", instead(ledger.SealFile, socket), unread, "seal.json is a socket"},
		{"a page that is a link", instead(ledger.ReportFile, link), unread, "report.html is a symbolic link"},
		{"a chain of a terabyte", instead(ledger.ObservationsFile, huge), unread, "observations.jsonl has 1099511627776 bytes"},
		{"samples of a terabyte", instead(ledger.SamplesFile, huge), unread, "samples.bin has 1099511627776 bytes"},
		{"a verdict of a terabyte", instead(ledger.VerdictFile, huge), unread, "verdict.json has 1099511627776 bytes"},
		{"a flipped bit", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, ledger.ObservationsFile)) }, broken, "observations.jsonl line"},
		{"another verdict", change(ledger.VerdictFile, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("PROCEED"), []byte("PERFECT")) }), broken, "verdict.json: was changed"},
		{"a line less", change(ledger.ObservationsFile, func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }), broken, "observations.jsonl"},
		{"no seal", instead(ledger.SealFile, func(string) error { return nil }), broken, "seal.json: is missing"},
		{"a page that says something else", change(ledger.ReportFile, func(b []byte) []byte { return append(b, "<script>alert(1)</script>"...) }), broken, "report.html: is not the page that the run gives"},
		{"a chain that is empty", func(t *testing.T, dir string) {
			for _, name := range []string{ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(dir, ledger.ObservationsFile), nil)
		}, unread, "not a run folder: it has no record"},
		{"sixty million lines", instead(ledger.ObservationsFile, func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("\n"), 60<<20), 0o644)
		}), unread, "observations.jsonl holds more"},
		{"more values than fit into memory", func(t *testing.T, dir string) { bloat(t, dir) }, unread, "observations.jsonl holds more than this server reads"},
	} {
		t.Run(c.what, func(t *testing.T) {
			all := runs(t)
			dir := filepath.Join(all, "first")
			c.make(t, dir)
			s := settled(t, all)
			if e := s.of(t, "first"); e.state != c.state || e.summary != nil {
				t.Errorf("state %d, want %d: %v", e.state, c.state, e.problems)
			}
			body := shows(t, s, "/runs/first", c.says)
			for _, bad := range []string{"PROCEED", "PERFECT", "<svg", "<script>alert", secret} {
				if strings.Contains(body, bad) {
					t.Errorf("its page has %q: %s", bad, plainText(body))
				}
			}
			list := shows(t, s, "/", c.says, "second ✓ GO PROCEED", "below/third ✕ NO-GO")
			if strings.Contains(plainText(list), "first ✓") || strings.Contains(plainText(list), "first ✕ NO-GO") {
				t.Errorf("the list has a verdict of it: %s", plainText(list))
			}
			if strings.Contains(shows(t, s, "/studies/speed"), ">first<") {
				t.Error("the trend has it")
			}
			if status, body := get(t, s, "/compare?a=first&b=second"); status != http.StatusConflict {
				t.Errorf("it is compared: %d, %s", status, plainText(body))
			}
		})
	}
}

// bloat makes the chain of an unsealed run hold a record that is right in all its
// hashes and has a value in every second byte.
func bloat(t *testing.T, dir string) {
	for _, name := range []string{ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, ledger.ObservationsFile)
	chain := slurp(t, path)
	first := chain[:bytes.IndexByte(chain, '\n')+1]
	sum := first[len(first)-67 : len(first)-3]
	line := append([]byte(`{"prev":"`), sum...)
	line = append(line, `","seq":1,"kind":"host","host":{"readings":[`...)
	line = append(append(line, bytes.Repeat([]byte("0,"), 5_000_000)...), `0]}`...)
	digest := sha256.Sum256(line)
	line = append(line, fmt.Sprintf(`,"sum":"%s"}`+"\n", hex.EncodeToString(digest[:]))...)
	write(t, path, append(first, line...))
}

func TestHostileNames(t *testing.T) {
	dir := runs(t)
	names := []string{
		`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `a&b?c#d`, "new\nline", "turned\u202e", "not\xffUTF-8", "%2e%2e", "javascript:alert(1)", "{{.}}", " ", "-", "ünï", strings.Repeat("n", 255),
	}
	for _, name := range names {
		copied(t, filepath.Join(dir, "first"), filepath.Join(dir, name))
	}
	s := settled(t, dir)
	pages := map[string]string{"/": shows(t, s, "/", fmt.Sprintf("%d runs", 5+len(names))), "/studies/speed": shows(t, s, "/studies/speed")}
	for _, name := range names {
		pages[name] = shows(t, s, runURL(name), "GO PROCEED")
		if strings.ContainsAny(runURL(name), "<>\"\n #") {
			t.Errorf("%q has the address %s", name, runURL(name))
		}
	}
	links := regexp.MustCompile(`href="(/runs/[^"]*)"`).FindAllStringSubmatch(pages["/"], -1)
	for _, l := range links {
		shows(t, s, html.UnescapeString(l[1]))
	}
	if len(links) != 5+len(names) {
		t.Errorf("the list leads to %d runs", len(links))
	}
	for what, body := range pages {
		for _, bad := range []string{"<img", "<script>alert", "\u202e", "\xff", "onerror=alert(1)>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%q has %q", what, bad)
			}
		}
	}
}

// A run may be sound and its texts still mean harm.
func TestHostileTexts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	hostile := strings.NewReplacer("May new <b>replace</b> old?", `"</title><script>alert(1)</script><img src=x onerror=alert(2)> \u202e {{.}}"`).Replace(asked)
	for _, out := range []string{"runs/one", "runs/two"} {
		if err := carryOut(filepath.Dir(dir), out, hostile, "200", "pass"); err != nil {
			t.Fatal(err)
		}
	}
	s := settled(t, dir)
	for _, target := range []string{"/", "/runs/one", "/studies/speed", "/compare?a=one&b=two"} {
		body := shows(t, s, target)
		for _, bad := range []string{"<script>alert", "<img", "\u202e"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", target, bad)
			}
		}
	}
}

func TestWhatChangedIsNoLongerBelieved(t *testing.T) {
	dir := runs(t)
	s := idle(t, dir)
	s.read(t)
	s.makeRun("first")
	s.makeComparison("first", "second")
	shows(t, s, "/runs/first", "GO PROCEED")
	shows(t, s, "/compare?a=first&b=second", "Outcomes")
	path := filepath.Join(dir, "first", ledger.VerdictFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// As much as can be made to look the same.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("{"), 3)
	if err := errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	s.again(t)
	s.wait = 0
	shows(t, s, "/", "first not verified yet")
	for _, target := range []string{"/runs/first", "/compare?a=first&b=second"} {
		if body := shows(t, s, target, "Verifying…"); strings.Contains(body, "PROCEED") {
			t.Errorf("%s is shown as before", target)
		}
	}
	s.read(t)
	shows(t, s, "/", "first ✕ DOES NOT VERIFY verdict.json: was changed")
	shows(t, s, "/runs/first", "This run folder does not verify")
}

func TestWhatChangesWhileItIsReadIsNotBelieved(t *testing.T) {
	dir := runs(t)
	s := idle(t, dir)
	s.verify = func(files fs.FS, name string) (*flow.Outcome, []ledger.Problem, error) {
		o, problems, err := flow.Inspect(files, name)
		if name == "first" {
			flip(t, filepath.Join(dir, name, ledger.ResultsFile))
		}
		return o, problems, err
	}
	do := s.verifying("first")
	do()
	if e := s.of(t, "first"); e.state == sound || e.summary != nil {
		t.Errorf("state %d", e.state)
	}
	s.again(t)
	if e := s.of(t, "first"); e.state != waiting {
		t.Errorf("state %d, and it should be read again", e.state)
	}
	s.verify = flow.Inspect
	do()
	if e := s.of(t, "first"); e.state != broken {
		t.Errorf("state %d: %v", e.state, e.problems)
	}
}

func TestAPanicCostsOneRow(t *testing.T) {
	s := idle(t, runs(t))
	s.verify = func(files fs.FS, name string) (*flow.Outcome, []ledger.Problem, error) {
		if name == "first" {
			panic("as if a folder had found a defect")
		}
		return flow.Inspect(files, name)
	}
	s.read(t)
	shows(t, s, "/", "first ! CANNOT BE READ internal error: as if a folder had found a defect", "second ✓ GO PROCEED")
}

func TestAFolderOpensPlainFilesOfItsOwn(t *testing.T) {
	dir := runs(t)
	root, err := os.OpenRoot(filepath.Join(dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := folder{root: root}
	for _, name := range prints {
		if _, err := fs.ReadFile(f, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"scratch", "../first/lock.json", "origin.json", "/etc/passwd", ".", ""} {
		if _, err := f.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := f.ReadLink(ledger.LockFile); err == nil {
		t.Error("links are read")
	}
	// Not even a link to a file beside it is followed.
	link := filepath.Join(dir, "first", ledger.SamplesFile)
	if err := errors.Join(os.Remove(link), os.Symlink(ledger.LockFile, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(ledger.SamplesFile); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("a link: %v", err)
	}
	// A file that grows while it is read ends where its bound does.
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(100); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]bound{"bytes": {bytes: 99}, "parts": {bytes: 1000, parts: 1}} {
		content := strings.Repeat("x", 100)
		if what == "parts" {
			content = `[0,{"a":[]}]`
		}
		write(t, file.Name(), []byte(content))
		for how, r := range map[string]io.Reader{
			"in order":     &boundedFile{file: file, bound: b},
			"at any place": io.NewSectionReader(&boundedFile{file: file, bound: b}, 0, 1000),
		} {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); !errors.Is(err, errTooMuch) {
				t.Errorf("%s, %s: %d bytes, %v", what, how, n, err)
			}
		}
	}
}

func TestNoLinkIsFollowedOnTheWay(t *testing.T) {
	dir := runs(t)
	if err := os.Symlink("first", filepath.Join(dir, "inside")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]bool{".": true, "first": true, "below/third": true, "inside": false, "first/lock.json": false, "none": false, "../secret": false, "below/../first": false, "/": false, "": false} {
		d, err := descend(root, path)
		if (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
		if err == nil {
			d.Close()
		}
	}
}

func TestTheScanHasBounds(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a/b/c/run", "a/b/c/d/run", "a/b/c/d/e/run", ".hidden/run", "run", "run/scratch/run", "z"} {
		write(t, filepath.Join(dir, path, "any"), nil)
		if strings.HasSuffix(path, "run") {
			write(t, filepath.Join(dir, path, ledger.LockFile), nil)
		}
	}
	write(t, filepath.Join(dir, "chain", ledger.ObservationsFile), nil)
	write(t, filepath.Join(dir, "seal", ledger.SealFile), nil)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	paths := func(l listing) map[string]bool {
		all := map[string]bool{}
		for _, r := range l.runs {
			all[r.path] = true
		}
		return all
	}
	l, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := paths(l); len(got) != 4 || !got["run"] || !got["a/b/c/run"] || !got["chain"] || !got["seal"] {
		t.Errorf("found %v", got)
	}
	if len(l.left) != 1 || !strings.Contains(l.left[0], "a/b/c/d/e") && !strings.Contains(l.left[0], "a/b/c/d/run") {
		t.Errorf("left out: %q", l.left)
	}
	for what, s := range map[string]*scanner{"too many run folders": {entries: 1000, room: 2}, "too many names": {entries: 6, room: 100}} {
		l, err := s.scan(root)
		if err != nil || len(l.runs) > 2 || !strings.Contains(strings.Join(l.left, "; "), what) {
			t.Errorf("%s: %d runs, %q, %v", what, len(l.runs), l.left, err)
		}
	}
}

func TestAPlanOfTooManyFiguresIsNotJudged(t *testing.T) {
	dir := runs(t)
	var metrics strings.Builder
	for i := range 200 {
		fmt.Fprintf(&metrics, "  - {name: m%d, source: json, better: higher}\n", i)
	}
	many := strings.NewReplacer("checks:", metrics.String()+"checks:", "rounds: 4", "rounds: 30000").Replace(asked)
	p, faults := protocol.Parse("exp.yaml", []byte(many), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	lock, err := protocol.Freeze(p, protocol.Evidence{Tool: "t"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "first", ledger.LockFile), lock.Bytes())
	s := settled(t, dir)
	if e := s.of(t, "first"); e.state != unread {
		t.Errorf("state %d", e.state)
	}
	shows(t, s, "/runs/first", "has a plan of more figures than this server computes; assay report shows it")
}

func TestNotEveryProblemIsTold(t *testing.T) {
	dir := runs(t)
	path := filepath.Join(dir, "first", ledger.ObservationsFile)
	write(t, path, append(slurp(t, path), bytes.Repeat([]byte("x\n"), 1000)...))
	s := settled(t, dir)
	if e := s.of(t, "first"); len(e.problems) != mostProblems+1 || !strings.HasPrefix(e.problems[mostProblems], "and ") {
		t.Errorf("%d problems, the last %q", len(e.problems), e.problems[len(e.problems)-1])
	}
}

// Protocols that ReadLock lets through may still be strange.
func TestALockThatFitsItsDigestIsNotBelieved(t *testing.T) {
	dir := runs(t)
	p, faults := protocol.Parse("exp.yaml", []byte(asked), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for i, strange := range []func(){
		func() { p.Name = "../<script>" },
		func() { p.Arms[0].Name, p.Design.Rounds = "", -5 },
		func() { p.Primary.Metric = "none" },
		func() { p.Metrics = nil },
	} {
		strange()
		lock, err := protocol.Freeze(p, protocol.Evidence{Tool: "t", Exploratory: "strange"})
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, fmt.Sprintf("strange%d", i))
		copied(t, filepath.Join(dir, "first"), at)
		write(t, filepath.Join(at, ledger.LockFile), lock.Bytes())
		// Also as a run that somebody holds.
		at += "-held"
		copied(t, filepath.Join(dir, "first"), at)
		write(t, filepath.Join(at, ledger.LockFile), lock.Bytes())
		if err := os.Remove(filepath.Join(at, ledger.VerdictFile)); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(at, ledger.ObservationsFile))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
	}
	s := idle(t, dir)
	for _, e := range s.order {
		e.asked = true
	}
	s.read(t)
	for _, e := range s.order {
		if strings.HasPrefix(e.path, "strange") && (e.state == sound || e.state == waiting) {
			t.Errorf("%s: state %d", e.path, e.state)
		}
		if e.state == running && e.progress.fault == "" {
			t.Errorf("%s: %+v", e.path, e.progress)
		}
	}
	shows(t, s, "/", "how far it is cannot be told")
}
