package host

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// Probe reads everything once, in the order of protocol.Probes. It takes about
// 200 ms, the window for foreign_cpu and steal; what this process and its
// children use in it is not foreign. The PSI figures are the kernel's average
// over ten seconds. scratch must exist.
func (m Machine) Probe(scratch string) []Reading {
	m.findMemoryLimits()
	pid := os.Getpid()
	a := m.Counters(m.OwnCPU(pid))
	if a.Has.CPU {
		time.Sleep(2 * shortest)
	}
	b := m.Counters(m.OwnCPU(pid))
	return m.all(scratch, foreign(a, b), stolen(a, b), b)
}

// Static reads what needs no window, at once: Probe without foreign_cpu and
// steal.
func (m Machine) Static(scratch string) []Reading {
	m.findMemoryLimits()
	all := m.all(scratch, Reading{}, Reading{}, m.Counters(-1))
	return slices.DeleteFunc(all, func(r Reading) bool { return r.Probe == "" })
}

func (m Machine) all(scratch string, foreign, stolen Reading, c Counters) []Reading {
	free, tmpfs := m.disk(scratch)
	return []Reading{
		load(c),
		foreign,
		m.pressure(psiCPU, "cpu"),
		m.pressure(psiIO, "io"),
		m.pressure(psiMemory, "memory"),
		stolen,
		m.governor(),
		m.turbo(),
		m.allowance(c),
		memory(c),
		swap(c),
		free,
		tmpfs,
		m.otherRun(),
		m.thermal(),
	}
}

func (m Machine) pressure(p probe, resource string) Reading {
	b, err := m.whole("/proc/pressure/" + resource)
	if err != nil {
		return p.unavailable("no PSI in the kernel")
	}
	s, _ := some(b, "avg10=")
	v, ok := parseFloat(string(s))
	if !ok || v > 100 {
		return p.unavailable("unreadable PSI")
	}
	return p.is(v, "")
}

func (m Machine) allowance(c Counters) Reading {
	cpus, limited, version, err := m.quota()
	switch {
	case err != nil:
		return cgroupQuota.unavailable(err.Error())
	case !c.Has.CPUs:
		return cgroupQuota.unavailable("no count of CPUs")
	case !limited:
		return cgroupQuota.is(float64(c.CPUs), "unlimited")
	}
	// A quota beyond the machine allows no more than the machine.
	return cgroupQuota.is(min(cpus, float64(c.CPUs)), fmt.Sprintf("quota of %.4g CPUs, cgroup v%d", cpus, version))
}

func (m Machine) otherRun() Reading {
	if m.LockPath == "" {
		return otherRun.unavailable("no run lock is given")
	}
	held, holder, err := otherHolds(m.LockPath)
	if err != nil {
		return otherRun.unavailable(err.Error())
	}
	return otherRun.is(flag(held), holder)
}
