package analysis

import (
	"slices"
	"sort"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

func (r *Results) summariseHost(run *ledger.Run, p *protocol.Protocol) {
	sums := map[string]*HostSummary{}
	add := func(b host.Breach) {
		// An action that this version does not know counts as block.
		action := host.Worst([]host.Breach{b})
		i := slices.IndexFunc(r.Host.Breaches, func(x HostBreach) bool { return x.Probe == b.Limit.Probe && x.Action == action })
		if i < 0 {
			i = len(r.Host.Breaches)
			r.Host.Breaches = append(r.Host.Breaches, HostBreach{Probe: b.Limit.Probe, Action: action, First: b.String()})
		}
		r.Host.Breaches[i].Times++
		r.Host.Worst = worseAction(r.Host.Worst, action)
	}
	for _, rec := range run.Records {
		if rec.Host == nil {
			continue
		}
		for _, rd := range rec.Host.Readings {
			s := sums[rd.Probe]
			if s == nil {
				s = &HostSummary{Probe: rd.Probe, Unit: rd.Unit, Min: nan, Max: nan}
				sums[rd.Probe] = s
			}
			if !rd.Available() {
				s.Unavailable++
				if s.Detail == "" {
					s.Detail = rd.Detail
				}
				continue
			}
			if s.Readings == 0 || rd.Value < float64(s.Min) {
				s.Min = Number(rd.Value)
			}
			if s.Readings == 0 || rd.Value > float64(s.Max) {
				s.Max = Number(rd.Value)
			}
			s.Readings++
		}
		for _, b := range rec.Host.Breaches {
			add(b)
		}
	}
	for _, name := range protocol.Probes {
		if s := sums[name]; s != nil {
			r.Host.Probes = append(r.Host.Probes, *s)
		}
	}
	// A limit that no reading was ever taken for has not been kept.
	for _, l := range p.Host {
		if sums[l.Probe] == nil && run.Ended() {
			for _, b := range host.Judge(nil, []protocol.Limit{l}, "run") {
				add(b)
			}
		}
	}
	sort.SliceStable(r.Host.Breaches, func(i, j int) bool {
		return worseAction(r.Host.Breaches[j].Action, r.Host.Breaches[i].Action) != r.Host.Breaches[j].Action
	})
}
