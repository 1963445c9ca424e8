package authority

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// Decision is what became of a request. The zero Decision is Refused.
type Decision int

// The decisions.
const (
	Refused Decision = iota // authority could not be established: 503
	Denied                  // it could, and the person does not have the role: 403
	Allowed
)

func (d Decision) String() string {
	switch d {
	case Denied:
		return "denied"
	case Allowed:
		return "allowed"
	}
	return "refused"
}

// Event tells of one decision.
type Event struct {
	Decision Decision
	Reason   Reason // of a refusal; "" otherwise
	Role     string // that was required
	Subject  ID     // zero where the request names nobody
	Revision int64  // of the record that decided; 0 where there was none
	Latency  time.Duration
	Err      error // of a refusal, or why the request names nobody
}

// Guard makes middleware that lets requests through by role. Source and Subject must
// be there: without them every request is refused.
type Guard struct {
	// Source is a Reader or a SharedReader.
	Source Source
	// Subject says whose request it is, from what authentication left in it. An error
	// denies the request.
	Subject func(*http.Request) (ID, error)
	// Log gets one record per decision; nil is slog.Default().
	Log *slog.Logger
	// Observe, if not nil, is told of each decision before the request goes on. It must
	// not block. See packages prom and otel.
	Observe func(context.Context, Event)
	// RetryAfter is what a refusal tells the client to wait, in whole seconds; 0 is 2 s.
	RetryAfter time.Duration
}

const defaultRetryAfter = 2 * time.Second

var errIncomplete = errors.New("authority: Guard without Source or Subject")

// Require lets a request through if its person has the role at a moment between the
// request's arrival here and the call of the next handler. It answers 403 where the
// person does not, and 503 with Retry-After where that cannot be established. What
// the next handler does after a later revocation is not guarded.
func (g Guard) Require(role string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			e := g.decide(req, role)
			g.tell(req.Context(), e)
			switch e.Decision {
			case Allowed:
				next.ServeHTTP(w, req)
			case Denied:
				answer(w, http.StatusForbidden)
			default:
				w.Header().Set("Retry-After", g.retryAfter())
				answer(w, http.StatusServiceUnavailable)
			}
		})
	}
}

func (g Guard) decide(req *http.Request, role string) Event {
	e := Event{Role: role}
	if g.Source == nil || g.Subject == nil {
		e.Reason, e.Err = Fault, errIncomplete
		return e
	}
	id, err := g.Subject(req)
	if err != nil {
		e.Decision, e.Err = Denied, err
		return e
	}
	e.Subject = id
	start := time.Now()
	rec, err := g.Source.Read(req.Context(), id)
	e.Latency = time.Since(start)
	switch {
	case err != nil:
		e.Reason, e.Err = ReasonOf(err), err
		return e
	case rec.Found && rec.Has(role):
		e.Decision = Allowed
	default:
		e.Decision = Denied
	}
	e.Revision = rec.Revision
	return e
}

func (g Guard) tell(ctx context.Context, e Event) {
	log, level := g.Log, slog.LevelInfo
	if log == nil {
		log = slog.Default()
	}
	if e.Decision == Refused {
		level = slog.LevelWarn
	}
	if log.Enabled(ctx, level) {
		attrs := []slog.Attr{
			slog.String("decision", e.Decision.String()), slog.String("role", e.Role), slog.String("subject", e.Subject.String()),
			slog.Int64("revision", e.Revision), slog.Duration("latency", e.Latency),
		}
		if e.Reason != "" {
			attrs = append(attrs, slog.String("reason", string(e.Reason)))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(ctx, level, "authority", attrs...)
	}
	if g.Observe != nil {
		g.Observe(ctx, e)
	}
}

func (g Guard) retryAfter() string {
	d := g.RetryAfter
	if d <= 0 {
		d = defaultRetryAfter
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// answer says no more than the status: what is known about a person is nobody else's.
func answer(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}
