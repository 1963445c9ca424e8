package flow

import (
	"os"
	"slices"
	"time"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// hostWindow is the shortest stretch over which the machine is looked at. A
// round that takes longer has a window of its own; shorter ones share one,
// because the kernel counts CPU time in steps of 10 ms.
const hostWindow = 200 * time.Millisecond

func acquire(path string) (release func(), holder string, err error) {
	if path == "" {
		return func() {}, "", nil
	}
	return host.AcquireRunLock(path)
}

func (r *runner) snapshot() host.Counters {
	return r.machine.Counters(r.machine.OwnCPU(os.Getpid()))
}

func (r *runner) hostBefore() error {
	readings := r.machine.Static(r.scratch)
	if len(r.p.Host) > 0 {
		readings = r.machine.Probe(r.scratch)
	}
	if err := r.hostRecord("before", "", 0, 0, readings, r.p.Host); err != nil {
		return err
	}
	r.counters, r.from = r.snapshot(), -1
	return nil
}

// hostWindow closes the open stretch if it is long enough, or if the run ends.
func (r *runner) hostWindow(rd trial.Round, last bool) error {
	if r.from < 0 {
		r.from = rd.Round
	}
	if time.Since(r.counters.Time) < hostWindow {
		if last {
			// The next cell's rounds are numbered from 0 again.
			r.from = -1
		}
		return nil
	}
	now := r.snapshot()
	readings := host.Between(r.counters, now)
	err := r.hostRecord("during", rd.Cell, r.from, rd.Round, readings, r.limitsOn(readings))
	r.counters, r.from = now, -1
	return err
}

// limitsOn are the limits on what was read: a window says nothing of the
// governor.
func (r *runner) limitsOn(readings []host.Reading) []protocol.Limit {
	var out []protocol.Limit
	for _, l := range r.p.Host {
		if slices.ContainsFunc(readings, func(rd host.Reading) bool { return rd.Probe == l.Probe }) {
			out = append(out, l)
		}
	}
	return out
}

func (r *runner) hostRecord(when, cell string, from, to int, readings []host.Reading, limits []protocol.Limit) error {
	return r.append(ledger.Record{Kind: ledger.KindHost, Host: &ledger.HostWindow{
		When: when, Time: time.Now().UTC(), Cell: cell, From: from, To: to,
		Readings: host.Mark(readings, limits), Breaches: host.Judge(readings, limits, when),
	}})
}

func sortByProbe(readings []host.Reading) []host.Reading {
	slices.SortStableFunc(readings, func(a, b host.Reading) int {
		return slices.Index(protocol.Probes, a.Probe) - slices.Index(protocol.Probes, b.Probe)
	})
	return readings
}
