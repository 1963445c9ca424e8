package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/replset"
)

// source answers as it is told.
type source func(context.Context, ID) (Record, error)

func (s source) Read(ctx context.Context, id ID) (Record, error) { return s(ctx, id) }

var discard = slog.New(slog.DiscardHandler)

func named(id ID) func(*http.Request) (ID, error) {
	return func(*http.Request) (ID, error) { return id, nil }
}

// serve sends one request through a guard and says whether it was let through.
func serve(g Guard, role string) (w *httptest.ResponseRecorder, through bool) {
	w = httptest.NewRecorder()
	g.Require(role)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { through = true })).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	return w, through
}

func TestWhoIsLetThrough(t *testing.T) {
	id := ID{5}
	holds := func(roles ...string) source {
		return func(context.Context, ID) (Record, error) {
			return Record{ID: id, Found: true, Revision: 9, Roles: roles}, nil
		}
	}
	fails := func(err error) source {
		// A careless source: an error beside a record that would allow.
		return func(context.Context, ID) (Record, error) {
			return Record{ID: id, Found: true, Revision: 9, Roles: []string{"admin"}}, err
		}
	}
	nobody := func(*http.Request) (ID, error) { return ID{}, errors.New("no token") }
	for name, c := range map[string]struct {
		guard    Guard
		role     string
		status   int
		decision Decision
		reason   Reason
	}{
		"the role is held":       {Guard{Source: holds("reader", "admin"), Subject: named(id)}, "admin", 200, Allowed, ""},
		"another role is held":   {Guard{Source: holds("administrator", "Admin", "admi"), Subject: named(id)}, "admin", 403, Denied, ""},
		"no role is held":        {Guard{Source: holds(), Subject: named(id)}, "admin", 403, Denied, ""},
		"the empty role":         {Guard{Source: holds("admin"), Subject: named(id)}, "", 403, Denied, ""},
		"no such person":         {Guard{Source: source(func(context.Context, ID) (Record, error) { return Record{ID: id}, nil }), Subject: named(id)}, "admin", 403, Denied, ""},
		"roles of nobody":        {Guard{Source: source(func(context.Context, ID) (Record, error) { return Record{Roles: []string{"admin"}}, nil }), Subject: named(id)}, "admin", 403, Denied, ""},
		"no identity":            {Guard{Source: holds("admin"), Subject: nobody}, "admin", 403, Denied, ""},
		"deadline":               {Guard{Source: fails(&Refusal{Deadline, context.DeadlineExceeded}), Subject: named(id)}, "admin", 503, Refused, Deadline},
		"not primary":            {Guard{Source: fails(&Refusal{NotPrimary, errors.New("x")}), Subject: named(id)}, "admin", 503, Refused, NotPrimary},
		"malformed":              {Guard{Source: fails(&Refusal{Malformed, errors.New("x")}), Subject: named(id)}, "admin", 503, Refused, Malformed},
		"an error of no kind":    {Guard{Source: fails(errors.New("x")), Subject: named(id)}, "admin", 503, Refused, Fault},
		"a guard without source": {Guard{Subject: named(id)}, "admin", 503, Refused, Fault},
		"a guard without names":  {Guard{Source: holds("admin")}, "admin", 503, Refused, Fault},
	} {
		var told []Event
		c.guard.Log = discard
		c.guard.Observe = func(_ context.Context, e Event) { told = append(told, e) }
		w, through := serve(c.guard, c.role)
		if w.Code != c.status || through != (c.status == 200) {
			t.Errorf("%s: status %d, let through %v", name, w.Code, through)
		}
		if after := w.Header().Get("Retry-After"); (after != "") != (c.status == 503) {
			t.Errorf("%s: Retry-After %q", name, after)
		}
		if c.status != 200 && (strings.Contains(w.Body.String(), "admin") || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("%s: the answer tells too much or may be cached: %q", name, w.Body)
		}
		if len(told) != 1 || told[0].Decision != c.decision || told[0].Reason != c.reason || told[0].Role != c.role {
			t.Errorf("%s: told %+v", name, told)
		}
	}
	var zero Event
	if zero.Decision != Refused {
		t.Error("the zero decision is not a refusal")
	}
}

func TestTheLogSaysWhatWasDecided(t *testing.T) {
	id := ID{5}
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	serve(Guard{Log: log, Subject: named(id), Source: source(func(context.Context, ID) (Record, error) {
		return Record{ID: id, Found: true, Revision: 12, Roles: []string{"admin"}}, nil
	})}, "admin")
	serve(Guard{Log: log, Subject: named(id), RetryAfter: 1500 * time.Millisecond, Source: source(func(context.Context, ID) (Record, error) {
		return Record{}, &Refusal{NoMajority, errors.New("two members are gone")}
	})}, "admin")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), &out)
	}
	for i, want := range []map[string]any{
		{"level": "INFO", "msg": "authority", "decision": "allowed", "role": "admin", "subject": id.String(), "revision": 12.0},
		{"level": "WARN", "msg": "authority", "decision": "refused", "role": "admin", "subject": id.String(), "revision": 0.0, "reason": "no-majority", "error": "authority: no-majority: two members are gone"},
	} {
		var line map[string]any
		must(t, json.Unmarshal([]byte(lines[i]), &line))
		if _, ok := line["latency"].(float64); !ok {
			t.Errorf("line %d has no latency: %s", i, lines[i])
		}
		for key, v := range want {
			if line[key] != v {
				t.Errorf("line %d: %s is %v, want %v", i, key, line[key], v)
			}
		}
	}
}

func TestRetryAfterIsWholeSecondsAndNeverZero(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "2", -time.Second: "2", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		if have := (Guard{RetryAfter: d}).retryAfter(); have != want {
			t.Errorf("%s becomes %q, want %q", d, have, want)
		}
	}
}

// TestARevocationShutsTheDoor takes the whole way: set, reader, middleware.
func TestARevocationShutsTheDoor(t *testing.T) {
	set := startSet(t, replset.Options{})
	coll := people(t, set.URI())
	w, id := writerOf(t, coll, Options{}), newID()
	rev := grant(t, w, id, "admin")
	r := readerOf(t, coll, Options{Deadline: after})
	for name, s := range map[string]Source{"alone": r, "shared": r.Shared()} {
		g := Guard{Source: s, Subject: named(id), Log: discard}
		if rec, through := serve(g, "admin"); !through {
			t.Fatalf("%s: %d with the role", name, rec.Code)
		}
		if o, err := w.Revoke(within(t, generous), id, "admin", rev); o != Applied {
			t.Fatalf("%v, %v", o, err)
		}
		if rec, through := serve(g, "admin"); through || rec.Code != 403 {
			t.Fatalf("%s: %d after the revocation", name, rec.Code)
		}
		if o, err := w.Grant(within(t, generous), id, "admin", rev+1); o != Applied {
			t.Fatalf("%v, %v", o, err)
		}
		rev += 2
	}
	p, err := set.AwaitPrimary(within(t, generous))
	must(t, err)
	must(t, set.Pause((p+1)%3))
	must(t, set.Pause((p+2)%3))
	if rec, through := serve(Guard{Source: r, Subject: named(id), Log: discard}, "admin"); through || rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Fatalf("%d without a majority", rec.Code)
	}
	must(t, set.Resume((p+1)%3))
	must(t, set.Resume((p+2)%3))
}

// BenchmarkRequire is what the middleware adds to a read: the decision, the log and
// the observer, around a source that costs nothing.
func BenchmarkRequire(b *testing.B) {
	id := ID{5}
	rec := Record{ID: id, Found: true, Revision: 12, Roles: []string{"reader", "admin"}}
	var out bytes.Buffer
	g := Guard{
		Source:  source(func(context.Context, ID) (Record, error) { return rec, nil }),
		Subject: named(id), Log: slog.New(slog.NewJSONHandler(&out, nil)), Observe: func(context.Context, Event) {},
	}
	h := g.Require("admin")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	req, w := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, req)
		out.Reset()
	}
}
