package authorityreads

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/lab/check"
)

const at = time.Millisecond

// changes are acknowledged writes of one person, one after the other.
func changes(times ...int) (out []write) {
	for i := 0; i+1 < len(times); i += 2 {
		out = append(out, write{start: time.Duration(times[i]) * at, end: time.Duration(times[i+1]) * at, revision: int64(i/2 + 2), outcome: authority.Applied})
	}
	return out
}

func seen(start, end int, revision int32) read {
	return read{start: time.Duration(start) * at, end: time.Duration(end) * at, revision: revision}
}

func TestWhatHistoriesMustNotShow(t *testing.T) {
	maybe := changes(10, 20)
	maybe[0].outcome = authority.Unknown
	torn := seen(30, 31, 2)
	torn.torn = true
	refused := seen(30, 99, 0)
	refused.reason = authority.Deadline
	for name, c := range map[string]struct {
		h            history
		stale, order check.Verdict
	}{
		"a sound history":               {history{1, []read{seen(1, 2, 1), seen(12, 18, 1), seen(13, 19, 2), seen(21, 22, 2)}, changes(10, 20)}, check.Pass, check.Pass},
		"a revoked role":                {history{1, []read{seen(21, 22, 1)}, changes(10, 20)}, check.Fail, check.Fail},
		"two revisions behind":          {history{1, []read{seen(45, 46, 1)}, changes(10, 20, 30, 40)}, check.Fail, check.Fail},
		"a revision of nobody":          {history{1, []read{seen(21, 22, 7)}, changes(10, 20)}, check.Fail, check.Fail},
		"the future":                    {history{1, []read{seen(1, 2, 2), seen(21, 22, 2)}, changes(10, 20)}, check.Fail, check.Fail},
		"nobody there":                  {history{1, []read{seen(21, 22, 0)}, changes(10, 20)}, check.Fail, check.Fail},
		"back behind an earlier read":   {history{1, []read{seen(11, 12, 2), seen(13, 14, 1), seen(21, 22, 2)}, changes(10, 20)}, check.Pass, check.Fail},
		"back, with an open outcome":    {history{1, []read{seen(30, 31, 2), seen(32, 33, 1)}, append(maybe, changes()...)}, check.Unknown, check.Fail},
		"half of a record":              {history{1, []read{torn}, changes(10, 20)}, check.Fail, check.Pass},
		"nothing was changed":           {history{1, []read{seen(21, 22, 1)}, nil}, check.Unknown, check.Pass},
		"nothing was read":              {history{1, nil, changes(10, 20)}, check.Unknown, check.Unknown},
		"all was refused":               {history{1, []read{refused}, changes(10, 20)}, check.Unknown, check.Unknown},
		"an open outcome, then read":    {history{1, []read{seen(30, 31, 1), seen(32, 33, 2)}, maybe}, check.Unknown, check.Pass},
		"an open outcome and a success": {history{2, []read{seen(30, 31, 1), seen(32, 33, 2)}, append(maybe, write{start: 1, end: 2, person: 1, revision: 2, outcome: authority.Applied})}, check.Pass, check.Pass},
	} {
		if r := c.h.stale(); r.Verdict != c.stale {
			t.Errorf("%s: stale is %s, want %s: %s %v", name, r.Verdict, c.stale, r.Message, r.Examples)
		}
		if r := c.h.linearizable(1); r.Verdict != c.order {
			t.Errorf("%s: linearizable is %s, want %s: %s %v", name, r.Verdict, c.order, r.Message, r.Examples)
		}
	}
}

// TestThinningHidesNothing: a read that goes back is found among more reads than can
// be searched.
func TestThinningHidesNothing(t *testing.T) {
	h := history{people: 1, writes: changes(10, 20_000)}
	for i := range 30_000 {
		h.reads = append(h.reads, seen(11+i/10, 500+i/10, 2))
	}
	if r := h.linearizable(1); r.Verdict != check.Pass {
		t.Fatalf("%s %s", r.Verdict, r.Message)
	}
	h.reads = append(h.reads, seen(10_000, 10_001, 1))
	if r := h.linearizable(1); r.Verdict != check.Fail {
		t.Fatalf("%s %s", r.Verdict, r.Message)
	}
}

func TestDeadlinesAndRefusals(t *testing.T) {
	const deadline = time.Second
	good := read{end: deadline + tolerance, reason: authority.Deadline}
	if r := bounded([]read{good}, 0, deadline); r.Verdict != check.Pass {
		t.Errorf("a refusal in time is %s", r.Verdict)
	}
	late := good
	late.end++
	if r := bounded([]read{good, late}, 0, deadline); r.Verdict != check.Fail {
		t.Errorf("a read that ends late is %s", r.Verdict)
	}
	if r := bounded([]read{good}, 1, deadline); r.Verdict != check.Fail {
		t.Errorf("a hang is %s", r.Verdict)
	}
	if r := supported([]read{seen(1, 2, 1), good}); r.Verdict != check.Fail {
		t.Errorf("a refusal without a fault is %s", r.Verdict)
	}
}

func TestRecoveryIsSeen(t *testing.T) {
	fault, end := 10*time.Second, 50*time.Second
	ok := func(s int) read {
		return read{start: time.Duration(s) * time.Second, end: time.Duration(s)*time.Second + at}
	}
	no := func(s int) read { r := ok(s); r.reason = authority.Deadline; return r }
	for name, c := range map[string]struct {
		reads []read
		fired bool
		want  check.Verdict
	}{
		"it comes back":      {[]read{ok(5), no(12), ok(30), ok(45)}, true, check.Pass},
		"it never does":      {[]read{ok(5), no(12), no(45)}, true, check.Fail},
		"it goes again":      {[]read{ok(5), ok(41), no(45), ok(46)}, true, check.Fail},
		"nobody reads":       {[]read{ok(5)}, true, check.Fail},
		"there was no fault": {[]read{ok(5), ok(45)}, false, check.Unknown},
	} {
		if r := recovered(c.reads, fault, end, "kill", c.fired); r.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %s", name, r.Verdict, c.want, r.Message)
		}
	}
	f := failoverOf([]read{ok(5), no(12), ok(11), no(14), ok(20), ok(22)}, fault)
	if f.failed != 2 || f.denied != 4*time.Second+at || f.first != 10*time.Second+at || f.stalled != 9*time.Second {
		t.Errorf("%+v", f)
	}
	if f := failoverOf([]read{no(12)}, fault); f.first >= 0 {
		t.Errorf("a success that never came: %+v", f)
	}
	answered, refused := perSecond([]read{ok(0), ok(1), no(1), ok(3)}, 3*time.Second)
	if len(answered) != 3 || answered[0] != 1 || answered[1] != 1 || answered[2] != 0 || refused[1] != 1 {
		t.Errorf("%v %v", answered, refused)
	}
}

func TestTwoPrimariesAreJudged(t *testing.T) {
	old := authority.Record{Found: true, Revision: 1, Roles: []string{role}}
	for name, c := range map[string]struct {
		d    dual
		want check.Verdict
	}{
		"refused by the deadline":    {dual{before: true, revoked: 2, err: &authority.Refusal{Reason: authority.Deadline, Err: context.DeadlineExceeded}}, check.Pass},
		"refused by the server":      {dual{before: true, revoked: 2, err: &authority.Refusal{Reason: authority.NotPrimary, Err: errors.New("x")}}, check.Pass},
		"the old role":               {dual{before: true, revoked: 2, record: old}, check.Fail},
		"the old role, inconclusive": {dual{revoked: 2, record: old}, check.Fail},
		"inconclusive":               {dual{revoked: 2, err: &authority.Refusal{Reason: authority.Deadline, Err: context.DeadlineExceeded}}, check.Unknown},
		"a probe that is broken":     {dual{before: true, revoked: 2, err: &authority.Refusal{Reason: authority.Unreachable, Err: errors.New("x")}}, check.Unknown},
		"an error of no kind":        {dual{before: true, revoked: 2, err: errors.New("x")}, check.Unknown},
		"not cut off":                {dual{before: true, revoked: 2, record: authority.Record{Found: true, Revision: 2}}, check.Unknown},
	} {
		if r := c.d.judge(); r.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %s", name, r.Verdict, c.want, r.Message)
		}
	}
}
