package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Options are how a run is carried out; none of them can change what it finds.
type Options struct {
	Out     string // run folder; "" names one from the protocol and the time
	Scratch string // "" is a folder in the run folder
	Lock    string // path of the machine-wide run lock; "" takes none
	Events  Events

	// Profiles has each trial of a Go function take CPU, mutex and block profiles,
	// which go to the folder ledger.ProfilesDir of the run. They cost time: the
	// lock should say that the run is exploratory.
	Profiles bool
}

// Events are what a run tells while it runs. Nil functions are left out.
type Events struct {
	Begin func(dir string, rounds int)
	Round func(Progress)
	Trial func(o *trial.Observation)
	Note  func(text string)
}

// Run executes a frozen plan into a new run folder and takes it to its verdict.
// On a cancelled context everything measured so far is kept and the error wraps
// context.Canceled; Resume goes on from there.
func Run(ctx context.Context, plan *Plan, lock *protocol.Lock, o Options) (_ *Outcome, err error) {
	if err := stillTrue(ctx, plan, lock); err != nil {
		return nil, err
	}
	if o.Out == "" {
		o.Out = freeFolder(filepath.Join("runs", plan.Protocol.Name+"-"+time.Now().Format("20060102-150405")))
	}
	// The folder is ours before anything is put into it.
	claim, err := ledger.NewClaim(o.Out)
	if err != nil {
		return nil, err
	}
	from, err := prepare(o, plan)
	if err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	env := host.Machine{}.Provenance(plan.Dir, from.Scratch)
	w, err := claim.Create(lock, plan.Protocol, &env, time.Now())
	if err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	return drive(ctx, plan, w, o, from.Scratch)
}

// freeFolder is the path, or the first of path-2, path-3, … that is not there:
// two runs may begin within a second.
func freeFolder(path string) string {
	free := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", path, n)
	}
}

// Resume goes on with an unfinished run: the same schedule, nothing measured
// twice. studies are searched for the one that the run was made with. It
// returns an error that wraps ledger.ErrSealed for a finished run.
func Resume(ctx context.Context, dir string, studies []*Study, o Options) (*Outcome, error) {
	w, err := ledger.Resume(dir, ToolVersion(), time.Now())
	if err != nil {
		return nil, err
	}
	run := w.Run()
	plan := &Plan{Protocol: run.Protocol, Source: run.Lock.Source}
	if run.Ended() {
		return drive(ctx, plan, w, o, "")
	}
	from, err := readOrigin(dir)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	plan.Dir = from.Dir
	for _, s := range studies {
		if s.Name == from.Study {
			plan.Study = s
		}
	}
	if from.Study != "" && plan.Study == nil {
		return nil, errors.Join(fmt.Errorf("%s was made by study %q, which this program does not have", dir, from.Study), w.Close())
	}
	if err := stillTrue(ctx, plan, run.Lock); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := checkScratch(from.Scratch, run.Protocol); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return drive(ctx, plan, w, o, from.Scratch)
}

// runner is one run under way.
type runner struct {
	plan    *Plan
	p       *protocol.Protocol
	w       *ledger.Writer
	exec    *trial.Executor
	events  Events
	machine host.Machine
	scratch string

	profiles string // folder; "" takes none

	fresh    map[string]bool // arms whose latest trial ran in this process
	lost     bool            // what earlier trials left in the scratch folder is gone
	done     map[slotKey]*trial.Observation
	marked   map[roundKey]bool
	judged   map[judgeKey]bool
	byCell   map[string][]*trial.Observation
	counters host.Counters
	from     int // first round of the open host window

	forecast forecast
}

type slotKey struct {
	cell  string
	round int
	arm   string
}

type roundKey struct {
	cell  string
	round int
}

type judgeKey struct {
	check, scope, cell string
	round              int
}

func drive(ctx context.Context, plan *Plan, w *ledger.Writer, o Options, scratch string) (_ *Outcome, err error) {
	defer func() { err = errors.Join(err, w.Close()) }()
	r := &runner{
		plan: plan, p: plan.Protocol, w: w, events: o.Events, scratch: scratch,
		machine: host.Machine{LockPath: o.Lock},
		done:    map[slotKey]*trial.Observation{}, marked: map[roundKey]bool{}, judged: map[judgeKey]bool{},
		byCell: map[string][]*trial.Observation{}, forecast: newForecast(plan.Protocol), fresh: map[string]bool{},
	}
	profiles := filepath.Join(w.Run().Dir, ledger.ProfilesDir)
	if _, err := os.Stat(profiles); err == nil || o.Profiles {
		r.profiles = profiles // a run that was begun with them goes on with them
	}
	if !w.Run().Ended() {
		release, holder, err := acquire(o.Lock)
		if err != nil {
			r.note("this run does not hold the machine: " + err.Error() + " " + holder)
		}
		defer release()
		if err := r.measure(ctx); err != nil {
			return nil, err
		}
	}
	return Conclude(w.Run())
}

func (r *runner) note(text string) {
	if r.events.Note != nil {
		r.events.Note(text)
	}
}

// measure carries the schedule out. It is a function of what the ledger already
// holds: what is recorded is skipped, so that a resumed run and an uninterrupted
// one walk the same path.
func (r *runner) measure(ctx context.Context) (err error) {
	revs := map[string]string{}
	for _, rc := range r.w.Run().Lock.Receipts {
		if rc.Rev != "" {
			revs[rc.Arm] = rc.Rev
		}
	}
	if _, err := os.Stat(filepath.Join(r.scratch, "trial")); err != nil {
		r.lost = true
	}
	r.exec, err = trial.NewExecutor(r.p, trial.Options{
		Scratch: r.scratch, Dir: r.plan.Dir, Study: r.plan.Study.name(), Funcs: r.plan.Study.funcs(), Revs: revs,
		Profiles: r.profiles,
	})
	if err != nil {
		return err
	}
	end := func(context.Context) error { return nil }
	defer func() {
		// Clean-up runs also after ^C, so it cannot use the cancelled context.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), protocol.DefaultTimeout)
		defer cancel()
		// The study's end comes first: what it started may work in the scratch folder.
		for _, closing := range []func() error{func() error { return end(clean) }, func() error { return r.exec.Close(clean, err == nil) }} {
			if cerr := closing(); cerr != nil {
				r.note(cerr.Error())
				if err == nil {
					err = r.remark(cerr.Error())
				}
			}
		}
		if err == nil {
			err = r.end()
		}
	}()
	for _, rec := range r.w.Run().Records {
		r.remember(rec)
	}
	schedule := trial.Schedule(r.p)
	if r.events.Begin != nil {
		r.events.Begin(r.w.Run().Dir, len(schedule))
	}
	begun, err := r.beginStudy(ctx)
	if begun != nil {
		end = begun
	}
	if err != nil {
		return r.stopped(ctx, err)
	}
	if err := r.hostBefore(); err != nil {
		return err
	}
	for i := range schedule {
		if err := r.round(ctx, schedule, i); err != nil {
			return r.stopped(ctx, err)
		}
	}
	return r.stopped(ctx, r.judgeScope(ctx, protocol.ScopeRun, protocol.Cell{}, 0, r.allObservations()))
}

// beginStudy starts what the study's functions have in common.
func (r *runner) beginStudy(ctx context.Context) (end func(context.Context) error, err error) {
	s := r.plan.Study
	if s == nil || s.Begin == nil {
		return nil, nil
	}
	scratch, err := filepath.Abs(filepath.Join(r.scratch, "study"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	var noted error
	end, err = s.Begin(ctx, &Session{
		Protocol: r.p, Settings: r.p.Told(), Scratch: scratch,
		Note: func(text string) { noted = errors.Join(noted, r.remark(text)) },
	})
	if err != nil {
		return nil, fmt.Errorf("study %s: %w", s.Name, err)
	}
	return end, noted
}

// remark keeps a remark about the run in its ledger.
func (r *runner) remark(text string) error {
	return r.w.Append(ledger.Record{Kind: ledger.KindNote, Note: &ledger.Note{Time: time.Now().UTC(), Text: text}})
}

// stopped notes an interrupt in the chain before passing the error on.
func (r *runner) stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		note := &ledger.Note{Time: time.Now().UTC(), Text: "interrupted"}
		return errors.Join(r.w.Append(ledger.Record{Kind: ledger.KindNote, Note: note}), context.Cause(ctx))
	}
	return err
}

func (r *runner) remember(rec ledger.Record) {
	switch {
	case rec.Trial != nil:
		o := rec.Trial
		r.done[slotKey{o.Cell, o.Round, o.Arm}] = o
		r.byCell[o.Cell] = append(r.byCell[o.Cell], o)
	case rec.Round != nil:
		r.marked[roundKey{rec.Round.Cell, rec.Round.Round}] = true
	case rec.Check != nil:
		j := rec.Check
		r.judged[judgeKey{j.Result.Name, j.Scope, j.Cell, j.Round}] = true
	}
}

func (r *runner) append(rec ledger.Record) error {
	if err := r.w.Append(rec); err != nil {
		return err
	}
	r.remember(rec)
	return nil
}

// round runs what is missing of one round, judges it and marks it.
func (r *runner) round(ctx context.Context, schedule []trial.Round, i int) error {
	rd := schedule[i]
	cell := r.cell(rd.Cell)
	last := rd.Round == cell.Warmup+cell.Rounds-1
	if !r.marked[roundKey{rd.Cell, rd.Round}] {
		start := time.Now()
		if err := r.ceiling(); err != nil {
			return err
		}
		var obs []*trial.Observation
		for _, slot := range rd.Slots {
			o := r.done[slotKey{slot.Cell, slot.Round, slot.Arm}]
			if o == nil {
				var err error
				if o, err = r.trial(ctx, slot, cell); err != nil {
					return err
				}
			}
			obs = append(obs, o)
		}
		if err := r.judgeScope(ctx, protocol.ScopeRound, cell, rd.Round, obs); err != nil {
			return err
		}
		if err := r.ceiling(); err != nil {
			return err
		}
		if err := r.hostWindow(rd, last); err != nil {
			return err
		}
		mark := ledger.RoundMark{Cell: rd.Cell, Round: rd.Round, Warmup: rd.Warmup}
		if err := r.w.EndRound(mark, last); err != nil {
			return err
		}
		r.marked[roundKey{rd.Cell, rd.Round}] = true
		r.forecast.took(rd.Cell, time.Since(start))
	}
	if last {
		if err := r.judgeScope(ctx, protocol.ScopeCell, cell, 0, r.byCell[cell.Name]); err != nil {
			return err
		}
	}
	if r.events.Round != nil {
		r.events.Round(Progress{
			Cell: cell.Name, Round: rd.Round + 1, Of: cell.Warmup + cell.Rounds, Warmup: rd.Warmup,
			Done: i + 1, Total: len(schedule), Left: r.left(schedule, i+1),
		})
	}
	return nil
}

func (r *runner) cell(name string) protocol.Cell {
	return r.forecast.cells[slices.IndexFunc(r.forecast.cells, func(c protocol.Cell) bool { return c.Name == name })]
}

func (r *runner) left(schedule []trial.Round, next int) time.Duration {
	if next == len(schedule) {
		return 0
	}
	return r.forecast.left(schedule[next].Cell, schedule[next].Round)
}

// trial runs one trial, judges it and records both in one record, so that a
// trial is never in the ledger without its checks.
func (r *runner) trial(ctx context.Context, slot trial.Slot, cell protocol.Cell) (*trial.Observation, error) {
	if err := r.exec.Setup(ctx, slot.Arm); err != nil {
		return nil, err
	}
	o, err := r.exec.Run(ctx, slot, cell)
	if err != nil {
		return nil, err
	}
	r.fresh[slot.Arm] = true
	results := r.judgeTrial(ctx, o, slot, cell)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o.Checks = results
	if r.events.Trial != nil {
		r.events.Trial(o)
	}
	return o, r.append(ledger.Record{Kind: ledger.KindTrial, Trial: o})
}

// ceiling ends the run before it fills the disk.
func (r *runner) ceiling() error {
	limit := int64(r.p.Design.ScratchGB) << 30
	if limit == 0 {
		return nil
	}
	n, err := r.exec.ScratchBytes()
	if err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	if n > limit {
		return fmt.Errorf("the scratch folder has %.1f GiB; the protocol allows %d: an arm leaves too much behind", float64(n)/(1<<30), r.p.Design.ScratchGB)
	}
	return nil
}

// end closes the last host window, looks at the machine once more and ends the
// chain.
func (r *runner) end() error {
	if short := hostWindow/2 - time.Since(r.counters.Time); short > 0 && len(r.p.Host) > 0 {
		// The kernel's clock needs 100 ms to say anything about the last rounds.
		time.Sleep(short)
	}
	now := r.snapshot()
	readings := append(host.Between(r.counters, now), r.machine.Static(standing(r.scratch))...) // the trials' folder is gone by now
	readings = slices.CompactFunc(sortByProbe(readings), func(a, b host.Reading) bool { return a.Probe == b.Probe })
	if err := r.hostRecord("after", "", 0, 0, readings, r.limitsOn(readings)); err != nil {
		return err
	}
	if err := r.append(ledger.Record{Kind: ledger.KindEnd, End: &ledger.End{Time: time.Now().UTC()}}); err != nil {
		return err
	}
	return r.w.Sync()
}
