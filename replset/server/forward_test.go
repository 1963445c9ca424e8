package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/wire"
)

// mergeOn runs a $merge of the collection that stuck has.
func mergeOn(t *testing.T, s *Server, more ...bson.E) bson.M {
	t.Helper()
	cmd := append(bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.M{"$merge": "out"}}}, {Key: "cursor", Value: bson.M{}}}, more...)
	body := mustDoc(t, append(cmd, bson.E{Key: "$readPreference", Value: bson.M{"mode": "secondary"}}, bson.E{Key: "$db", Value: "db"}))
	out, _, _ := s.dispatch(&conn{ctx: s.ctx}, &wire.Request{Body: body, Database: "db"})
	var m bson.M
	if err := bson.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// secondary is a server that has member 1 for its primary.
func secondary(t *testing.T, ask func(ctx context.Context, member int, question []byte) ([]byte, error)) *Server {
	t.Helper()
	s, _ := stuck(t)
	t.Cleanup(s.Close)
	s.m.Hosts, s.m.Ask = []string{"h:1", "h:2", "h:3"}, ask
	s.SetRole(Role{Term: 3, Primary: 1})
	return s
}

// An open fate is told as one: whatever became of the question.
func TestAPrimaryThatIsLostWhileItWrites(t *testing.T) {
	until := func(end func(s *Server)) func(*Server, context.Context) ([]byte, error) {
		return func(s *Server, ctx context.Context) ([]byte, error) {
			end(s)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}
	for name, c := range map[string]struct {
		code int32
		ask  func(*Server, context.Context) ([]byte, error)
	}{
		"another member leads":       {189, until(func(s *Server) { s.SetRole(Role{Term: 4, Primary: 2}) })},
		"the same leads again":       {189, until(func(s *Server) { s.SetRole(Role{Term: 5, Primary: 1}) })},
		"nobody leads in a new term": {189, until(func(s *Server) { s.SetRole(Role{Term: 4, Primary: -1}) })},
		"it is silent":               {6, func(*Server, context.Context) ([]byte, error) { return nil, ErrSilent }},
		"this member leads":          {189, until(func(s *Server) { s.SetRole(Role{Term: 4, Primary: 0}) })},
		"the client's time is over":  {50, until(func(*Server) {})},
		"the answer is nonsense":     {1, func(*Server, context.Context) ([]byte, error) { return []byte("nonsense"), nil }},
	} {
		t.Run(name, func(t *testing.T) {
			var s *Server
			s = secondary(t, func(ctx context.Context, member int, _ []byte) ([]byte, error) {
				if member != 1 {
					t.Errorf("member %d was asked", member)
				}
				return c.ask(s, ctx)
			})
			if got := mergeOn(t, s, bson.E{Key: "maxTimeMS", Value: 500}); got["code"] != c.code {
				t.Errorf("it gave %v, want code %d", got, c.code)
			}
		})
	}
	// That no primary is known for a moment is no reason: the question may be answered yet.
	var s *Server
	s = secondary(t, func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
		s.SetRole(Role{Term: 3, Primary: -1})
		s.SetRole(Role{Term: 3, Primary: 1})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
			return mustDoc(t, bson.M{"ok": 1}), nil
		}
	})
	if got := mergeOn(t, s); got["ok"] != 1.0 {
		t.Errorf("it gave %v", got)
	}
}

// What comes late, from a member that is wrong, or broken is refused, and nothing is
// proposed.
func TestAQuestionThatIsRefused(t *testing.T) {
	s, begun := stuck(t)
	defer s.Close()
	s.SetRole(Role{Term: 7, Primary: 0, Writable: true})
	good := bson.D{
		{Key: "forwarded", Value: 1}, {Key: "$db", Value: "db"}, {Key: "term", Value: int64(7)}, {Key: "stage", Value: bson.M{"$merge": "c"}},
		{Key: "documents", Value: bson.A{bson.M{"_id": 1, "v": 2}}},
	}
	with := func(key string, v any) []byte {
		var d bson.D
		for _, e := range good {
			if e.Key == key {
				e.Value = v
			}
			if e.Value != nil {
				d = append(d, e)
			}
		}
		return mustDoc(t, d)
	}
	for name, c := range map[string]struct {
		code     int
		question []byte
	}{
		"of an earlier term": {10107, with("term", int64(6))},
		"of a later term":    {10107, with("term", int64(8))},
		"without a term":     {10107, with("term", nil)},
		"no stage":           {14, with("stage", nil)},
		"a reading stage":    {1, with("stage", bson.M{"$match": bson.M{}})},
		"an unknown stage":   {40324, with("stage", bson.M{"$no": 1})},
		"no documents":       {40414, with("documents", nil)},
		"odd documents":      {40414, with("documents", bson.A{1})},
		"no database":        {73, with("$db", nil)},
		"half of one":        {1, with("", nil)[:40]},
		"nothing":            {1, nil},
		"an unknown field":   {40415, mustDoc(t, append(good[:len(good):len(good)], bson.E{Key: "how", Value: 1}))},
	} {
		var got bson.M
		if err := bson.Unmarshal(s.Answer(t.Context(), c.question), &got); err != nil {
			t.Fatal(err)
		}
		if n, _ := got["code"].(int32); int(n) != c.code {
			t.Errorf("%s: it gave %v, want code %d", name, got, c.code)
		}
	}
	if n := begun.Load(); n != 0 {
		t.Errorf("%d entries were proposed", n)
	}
	s.SetRole(Role{Term: 7, Primary: 1})
	if got := document(s.Answer(t.Context(), with("", nil))); !strings.Contains(got.String(), "10107") {
		t.Errorf("a secondary wrote: %v", got)
	}
}

// The primary gives up what nobody waits for any more.
func TestAQuestionEndsWithItsContext(t *testing.T) {
	s, _ := stuck(t)
	defer s.Close()
	h := s.latches.holder()
	defer h.release()
	doc := mustDoc(t, bson.M{"_id": 1, "v": 2})
	if err := h.acquire(t.Context(), docLatch(1, documentKey(doc)), false); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan document, 1)
	go func() {
		done <- s.Answer(ctx, mustDoc(t, bson.D{
			{Key: "forwarded", Value: 1}, {Key: "$db", Value: "db"}, {Key: "term", Value: int64(1)}, {Key: "stage", Value: bson.M{"$merge": "c"}}, {Key: "documents", Value: bson.A{doc}},
		}))
	}()
	waiting := func() bool {
		s.latches.mu.Lock()
		defer s.latches.mu.Unlock()
		return lenQueue(s.latches.held[docLatch(1, documentKey(doc))]) > 0
	}
	deadline := time.After(20 * time.Second)
	for !waiting() {
		select {
		case got := <-done:
			t.Fatalf("it did not wait: %v", got)
		case <-deadline:
			t.Fatal("nobody waits for the document")
		case <-time.After(time.Millisecond):
		}
	}
	leave()
	if got := <-done; value.Truth(value.Lookup(got, "ok")) || waiting() {
		t.Errorf("it gave %v", got)
	}
}

// A question must say all that a stage depends on: what the primary makes of it are the
// variables that the secondary has.
func TestAQuestionCarriesTheVariables(t *testing.T) {
	sys := query.System{Now: time.UnixMilli(1_700_000_000_123).UTC(), Rand: randFloat}
	sys.ClusterTime.T, sys.ClusterTime.I = 7, 8
	vars, err := query.NewVars(mustDoc(t, bson.D{{Key: "a", Value: bson.M{"$rand": bson.M{}}}, {Key: "b", Value: bson.M{"$literal": "$x"}}, {Key: "c", Value: "$$REMOVE"}, {Key: "d", Value: bson.M{"$literal": bson.M{"$add": bson.A{1}}}}}), sys)
	if err != nil {
		t.Fatal(err)
	}
	again, err := query.NewVars(vars.Let(), sys)
	if err != nil {
		t.Fatal(err)
	}
	stages := mustDoc(t, bson.M{"p": bson.A{bson.M{"$set": bson.M{"a": "$$a", "b": "$$b", "c": "$$c", "d": "$$d"}}}})
	var got []string
	for _, vs := range []*query.Vars{vars, again} {
		p, err := query.ParsePipeline(value.Lookup(stages, "p"), query.PipelineOptions{Vars: vs})
		if err != nil {
			t.Fatal(err)
		}
		docs, err := query.ReadAll(p.Run(query.FromSlice([]document{emptyDoc}), nil).Next)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, docs[0].String())
	}
	if got[0] != got[1] || !strings.Contains(got[0], `"b": "$x"`) {
		t.Errorf("here %s, there %s", got[0], got[1])
	}
}

func TestAForeignErrorIsPassedOn(t *testing.T) {
	in := &Error{Code: codeDuplicateKey, Message: "twice", Extra: newDoc().AppendDocument("keyValue", emptyDoc).Build()}
	k := &call{s: &Server{}, out: newDoc()}
	b := newDoc().AppendDouble("ok", 0)
	in.append(b)
	err := k.take(b.Build())
	var e *Error
	if !errors.As(err, &e) || e.Code != in.Code || e.Message != in.Message || string(e.Extra) != string(in.Extra) {
		t.Errorf("%+v became %+v", in, err)
	}
}
