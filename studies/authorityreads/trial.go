package authorityreads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/internal/peak"
	"github.com/assaylab/assay/lab/check"
)

// latency measures reads without a fault, beside light writes.
func (e *experiment) latency(ctx context.Context) error {
	s, err := e.run.shared(ctx, e.plan, e.plan.elections(e.scenario))
	if err != nil {
		return err
	}
	o, err := e.observe(ctx, s, e.plan.settle+e.plan.measure, func(context.Context, time.Time) (time.Duration, error) { return 0, nil })
	if err != nil {
		return err
	}
	var measured []read
	for _, r := range o.reads {
		if r.start >= e.plan.settle {
			measured = append(measured, r)
		}
	}
	e.report(s, o, measured, e.plan.measure)
	e.Record("failed", float64(failoverOf(measured, 0).failed))
	e.Report(supported(measured))
	return nil
}

// throughFault reads before, during and after a fault of a fresh set.
func (e *experiment) throughFault(ctx context.Context) error {
	if err := e.run.release(); err != nil {
		return err
	}
	s, err := e.run.fresh(ctx, e.plan, e.plan.elections(e.scenario))
	if err != nil {
		return err
	}
	defer e.tearDown(s)
	until := e.plan.before + e.plan.after
	fired := false
	o, err := e.observe(ctx, s, until, func(ctx context.Context, origin time.Time) (time.Duration, error) {
		if err := wait(ctx, e.plan.before-time.Since(origin)); err != nil {
			return 0, err
		}
		at := time.Since(origin)
		if err := e.strike(ctx, s); err != nil {
			return at, fmt.Errorf("fault %s: %w", e.scenario.fault, err)
		}
		fired = true
		return at, nil
	})
	if err != nil {
		return err
	}
	e.report(s, o, o.reads, until)
	f := failoverOf(o.reads, o.fault)
	e.Record("failed", float64(f.failed))
	e.Record("longest_ms", ms(f.longest))
	e.Record("denied_window_s", f.denied.Seconds())
	e.Record("stalled_s", f.stalled.Seconds())
	if f.first >= 0 {
		e.Record("first_success_s", f.first.Seconds())
	}
	answered, refused := perSecond(o.reads, until)
	e.Samples("answered_per_second", answered)
	e.Samples("refused_per_second", refused)
	e.Note("%s at %.2f s: %d reads, refused %s, longest %.0f ms, denied until +%.2f s, first success +%.2f s, no success for %.2f s; answered per second %v, refused per second %v",
		e.scenario.name, o.fault.Seconds(), len(o.reads), reasons(o.reads), ms(f.longest), f.denied.Seconds(), f.first.Seconds(), f.stalled.Seconds(), answered, refused)
	if e.arm.strong {
		e.Report(recovered(o.reads, o.fault, until, e.scenario.fault, fired))
	}
	return nil
}

// strike makes the fault happen.
func (e *experiment) strike(ctx context.Context, s *set) error {
	if e.scenario.fault == faultStepDown {
		return s.stepDown(ctx)
	}
	if s.embedded == nil {
		return errors.New("cannot be done to a set that is not ours")
	}
	p, err := s.embedded.AwaitPrimary(ctx)
	if err != nil {
		return err
	}
	switch e.scenario.fault {
	case faultKill:
		return s.embedded.Kill(p)
	case faultPartition:
		return s.embedded.Isolate(p)
	case faultNoMajority:
		others := []int{(p + 1) % members, (p + 2) % members}
		for _, i := range others {
			if err := s.embedded.Pause(i); err != nil {
				return err
			}
		}
		if err := wait(ctx, e.plan.outage); err != nil {
			return err
		}
		for _, i := range others {
			if err := s.embedded.Resume(i); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("no fault %q", e.scenario.fault)
}

// members is how many a set has.
const members = 3

// observed is what a trial saw.
type observed struct {
	reads  []read
	writes []write
	hangs  int
	lag    time.Duration
	lost   int
	fault  time.Duration
}

// observe runs the arm's readers beside writers on a healthy set, and meanwhile does
// what is to be done to it.
func (e *experiment) observe(ctx context.Context, s *set, until time.Duration, meanwhile func(context.Context, time.Time) (time.Duration, error)) (*observed, error) {
	writing, err := connect(s.uri, nil)
	if err != nil {
		return nil, err
	}
	defer disconnect(writing)
	prepare, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	hot, err := s.seed(prepare, peopleOf(writing), e.plan)
	if err != nil {
		return nil, err
	}
	sources, clients, err := e.readers(s.uri)
	if err != nil {
		return nil, err
	}
	defer disconnect(clients...)
	t, err := e.toggler(writing, hot)
	if err != nil {
		return nil, err
	}
	for _, src := range sources { // connections are there before time counts
		if _, err := src.Read(prepare, hot[0]); err != nil {
			return nil, fmt.Errorf("the set does not answer before the load: %w", err)
		}
	}
	l := &load{
		sources: sources, inFlight: e.scenario.inFlight, hot: hot, readHot: len(hot), cold: e.plan.people,
		deadline: e.plan.deadline, seed: e.Seed, until: until, origin: time.Now(),
	}
	if e.scenario.hotOnly > 0 {
		l.readHot, l.hotOnly = e.scenario.hotOnly, true
		t.hot = hot[:e.scenario.hotOnly]
	}
	t.origin = l.origin
	debug.FreeOSMemory()
	// So that what judging an earlier trial took is not the client's. Where the kernel
	// refuses, the peak is that of the whole run so far.
	_ = peak.Reset()
	o := &observed{}
	var beside sync.WaitGroup
	toggling, stop := context.WithCancel(ctx)
	beside.Go(func() { t.run(toggling) })
	var failed error
	beside.Go(func() { o.fault, failed = meanwhile(ctx, l.origin) })
	e.Begin()
	err = l.run(ctx)
	e.End()
	stop()
	beside.Wait()
	o.reads, o.writes, o.hangs, o.lost = l.all(), t.writes, int(l.hangs.Load()), t.lost
	o.lag = time.Duration(l.lag.Load())
	return o, errors.Join(err, failed)
}

func (e *experiment) toggler(client *mongo.Client, hot []authority.ID) (*toggler, error) {
	w, err := authority.NewWriter(peopleOf(client), e.plan.shape())
	if err != nil {
		return nil, err
	}
	r, err := authority.NewReader(peopleOf(client), e.plan.shape())
	if err != nil {
		return nil, err
	}
	return &toggler{writer: w, reader: r, hot: hot, every: e.plan.writeEvery}, nil
}

// report records what every trial with a load has in common. Latency and throughput
// are of the reads given; correctness is of all.
func (e *experiment) report(s *set, o *observed, measured []read, span time.Duration) {
	answered, refused, late := make([]int64, 0, len(measured)), 0, 0
	for _, r := range measured {
		if r.failed() {
			refused++
		} else {
			answered = append(answered, int64(r.end-r.start))
		}
		if r.end-r.start > e.plan.deadline+tolerance {
			late++
		}
	}
	e.Samples("read", answered)
	e.Record("reads", float64(len(o.reads)))
	e.Record("throughput", float64(len(answered))/span.Seconds())
	e.Record("hangs", float64(o.hangs))
	e.Record("over_deadline", float64(late))
	e.Record("machine_lag_ms", ms(o.lag))
	var changes []int64
	for _, w := range o.writes {
		if w.outcome == authority.Applied {
			changes = append(changes, int64(w.end-w.start))
		}
	}
	e.Samples("write", changes)
	e.Record("writes", float64(len(changes)))
	e.memory(s)

	h := history{people: e.plan.hot, reads: o.reads, writes: o.writes}
	stale := h.stale()
	e.Record("bound_reads", float64(stale.Kinds["bound"]))
	e.Record("wrong", flag(stale.Verdict == check.Fail))
	if !e.arm.strong {
		if stale.Verdict != check.Pass {
			e.Note("of the control, told and not judged: %s, %s %v", stale.Verdict, stale.Message, stale.Examples)
		}
		return
	}
	e.Report(stale)
	e.Report(h.linearizable(e.Seed))
	within := bounded(o.reads, o.hangs, e.plan.deadline)
	if within.Verdict == check.Fail {
		within.Message += fmt.Sprintf("; timers of the machine itself came up to %.0f ms late", ms(o.lag))
	}
	e.Report(within)
	if o.lost > 0 {
		e.Note("%d people were left alone because the outcome of a change stayed open", o.lost)
	}
}

// memory records the most that members and client have held.
func (e *experiment) memory(s *set) {
	if s.embedded != nil {
		var most int64
		for _, b := range s.embedded.PeakMemory() {
			most = max(most, b)
		}
		e.Record("member_peak_mib", float64(most)/(1<<20))
	}
	client, _ := peak.Of(os.Getpid()) // 0 where the system does not say
	e.Record("client_peak_mib", float64(client)/(1<<20))
}

// tearDown ends a trial's own set, and reports whether anything is left of it. A set
// that is to be kept takes the place of the one that was kept before.
func (e *experiment) tearDown(s *set) {
	res := check.Result{Name: checkTornDown, Verdict: check.Pass, Operations: 1}
	if e.plan.keep && s.embedded != nil {
		s, e.run.kept = e.run.kept, s
		res.Message = "left running, as was asked"
	}
	if err := s.close(); err != nil {
		res.Verdict, res.Message = check.Fail, err.Error()
	}
	e.Report(res)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
