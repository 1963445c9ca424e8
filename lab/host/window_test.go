package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/protocol"
)

// after is one second later on two CPUs: 200 jiffies, of which 60 busy and 10
// stolen.
func after(a Counters) Counters {
	b := a
	b.Time = a.Time.Add(time.Second)
	b.Total, b.Busy, b.Steal = a.Total+200, a.Busy+60, a.Steal+10
	b.OwnCPU += 400 * time.Millisecond
	b.PSI.CPU, b.PSI.IO = a.PSI.CPU+250_000, a.PSI.IO+2_000_000
	return b
}

func start(t *testing.T) Counters { return tree(t, sound).Counters(0) }

func pick(t *testing.T, rs []Reading, probe string) Reading {
	t.Helper()
	i := slices.IndexFunc(rs, func(r Reading) bool { return r.Probe == probe })
	if i < 0 {
		t.Fatalf("no reading of %s", probe)
	}
	return rs[i]
}

func TestBetween(t *testing.T) {
	a := start(t)
	rs := Between(a, after(a))
	for probe, v := range map[string]float64{
		"load_per_cpu": 0.75, "foreign_cpu": 0.1, "psi_cpu": 25, "psi_io": 100, "psi_memory": 0,
		"steal": 5, "memory_available": 4, "swap_used": 1,
	} {
		wantValue(t, pick(t, rs, probe), v)
	}
	at := -1
	for _, r := range rs {
		i := slices.Index(protocol.Probes, r.Probe)
		if i <= at {
			t.Errorf("%s is out of the order of the protocol", r.Probe)
		}
		at = i
	}
}

func TestBetweenNothing(t *testing.T) {
	rs := Between(Counters{}, Counters{})
	if len(rs) != 8 {
		t.Error(len(rs))
	}
	for _, r := range rs {
		wantUnavailable(t, r)
	}
}

func TestBetweenRefuses(t *testing.T) {
	cpu, psi := []string{"foreign_cpu", "steal"}, []string{"psi_cpu", "psi_io", "psi_memory"}
	all := append(slices.Clone(cpu), psi...)
	cases := []struct {
		name   string
		change func(a, b *Counters)
		probes []string
	}{
		{"short window", func(a, b *Counters) { b.Time = a.Time.Add(99 * time.Millisecond) }, cpu},
		{"no window", func(a, b *Counters) { b.Time = a.Time }, all},
		{"window backwards", func(a, b *Counters) { *a, *b = *b, *a }, cpu},
		{"no CPU at the start", func(a, b *Counters) { a.Has.CPU = false }, cpu},
		{"no CPU at the end", func(a, b *Counters) { b.Has.CPU = false }, cpu},
		{"jiffies stand still", func(a, b *Counters) { b.Total, b.Busy = a.Total, a.Busy }, cpu},
		{"busy backwards", func(a, b *Counters) { b.Busy = a.Busy - 1 }, cpu},
		{"steal backwards", func(a, b *Counters) { b.Steal = a.Steal - 1 }, []string{"steal"}},
		{"no steal", func(a, b *Counters) { b.Has.Steal = false }, []string{"steal"}},
		{"own unknown at the start", func(a, b *Counters) { a.Has.OwnCPU = false }, []string{"foreign_cpu"}},
		{"own unknown at the end", func(a, b *Counters) { b.Has.OwnCPU = false }, []string{"foreign_cpu"}},
		{"own backwards", func(a, b *Counters) { a.OwnCPU = b.OwnCPU + 1 }, []string{"foreign_cpu"}},
		{"own beyond the machine", func(a, b *Counters) { b.OwnCPU += 10 * time.Second }, []string{"foreign_cpu"}},
		{"PSI backwards", func(a, b *Counters) { b.PSI = PSI{} }, psi},
		{"PSI gone", func(a, b *Counters) { b.Has.PSICPU, b.Has.PSIIO, b.Has.PSIMemory = false, false, false }, psi},
		{"no load", func(a, b *Counters) { b.Has.Load = false }, []string{"load_per_cpu"}},
		{"no count of CPUs", func(a, b *Counters) { b.Has.CPUs = false }, []string{"load_per_cpu"}},
		{"no memory", func(a, b *Counters) { b.Has.Memory = false }, []string{"memory_available"}},
		{"no swap", func(a, b *Counters) { b.Has.Swap = false }, []string{"swap_used"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			b := after(a)
			c.change(&a, &b)
			rs := Between(a, b)
			for _, p := range c.probes {
				wantUnavailable(t, pick(t, rs, p))
			}
		})
	}
}

func TestShortWindowSaysSo(t *testing.T) {
	a := start(t)
	b := after(a)
	b.Time = a.Time.Add(5 * time.Millisecond)
	if r := pick(t, Between(a, b), "foreign_cpu"); !strings.Contains(r.Detail, "5ms") || !strings.Contains(r.Detail, "100 ms") {
		t.Error(r.Detail)
	}
	if r := pick(t, Between(a, b), "psi_memory"); !r.Available() {
		t.Error("PSI counts in µs, so a short window is long enough:", r)
	}
}

func TestOwnMayExceedBusyByRounding(t *testing.T) {
	a := start(t)
	b := after(a)
	b.OwnCPU = a.OwnCPU + 650*time.Millisecond
	wantValue(t, pick(t, Between(a, b), "foreign_cpu"), 0)
}
