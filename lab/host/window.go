package host

import "time"

// A share of fewer than ten jiffies would be the rounding of the clock.
const shortest = 10 * jiffy

// Between is what happened from a to b: the rates foreign_cpu, psi_cpu,
// psi_io, psi_memory and steal over the window, and load_per_cpu,
// memory_available and swap_used at its end, in the order of protocol.Probes.
// In a window shorter than 100 ms foreign_cpu and steal are unavailable.
//
// The load and the PSI figures have the run's own share in them; foreign_cpu
// is the only one that has not. Where CPU time is handed to a host below
// (steal), foreign_cpu does not count it.
func Between(a, b Counters) []Reading {
	return []Reading{
		load(b),
		foreign(a, b),
		stall(psiCPU, a, b, a.PSI.CPU, b.PSI.CPU, a.Has.PSICPU && b.Has.PSICPU),
		stall(psiIO, a, b, a.PSI.IO, b.PSI.IO, a.Has.PSIIO && b.Has.PSIIO),
		stall(psiMemory, a, b, a.PSI.Memory, b.PSI.Memory, a.Has.PSIMemory && b.Has.PSIMemory),
		stolen(a, b),
		memory(b),
		swap(b),
	}
}

func load(c Counters) Reading {
	if !c.Has.Load || !c.Has.CPUs {
		return loadPerCPU.unavailable("no load average or no count of CPUs")
	}
	return loadPerCPU.is(c.Load1/float64(c.CPUs), "")
}

func memory(c Counters) Reading {
	if !c.Has.Memory {
		return memoryAvailable.unavailable("no MemAvailable, or no telling what the memory cgroup leaves")
	}
	return memoryAvailable.is(gib(c.MemAvailable), "")
}

func swap(c Counters) Reading {
	if !c.Has.Swap {
		return swapUsed.unavailable("no SwapTotal or SwapFree")
	}
	return swapUsed.is(gib(c.SwapUsed), "")
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

// jiffies says why nothing can be said of the CPU time in a window, or "".
func jiffies(a, b Counters) string {
	switch window := b.Time.Sub(a.Time); {
	case !a.Has.CPU || !b.Has.CPU:
		return "no CPU time in /proc/stat"
	case window < shortest:
		return "window of " + window.String() + " is too short for a clock of 10 ms; it takes 100 ms"
	case b.Total <= a.Total || b.Busy < a.Busy:
		return "the CPU time did not advance"
	}
	return ""
}

func foreign(a, b Counters) Reading {
	if why := jiffies(a, b); why != "" {
		return foreignCPU.unavailable(why)
	}
	if !a.Has.OwnCPU || !b.Has.OwnCPU {
		return foreignCPU.unavailable("the CPU time of the run's own processes is not known")
	}
	total := time.Duration(b.Total-a.Total) * jiffy
	busy := time.Duration(b.Busy-a.Busy) * jiffy
	own := b.OwnCPU - a.OwnCPU
	// Time that a process brings along when it joins or leaves the tree would
	// hide foreign load, or pass for it. The slack is for rounding: each
	// process of the tree is rounded on its own.
	if slack := total/20 + 10*jiffy; own < 0 || own > total+slack {
		return foreignCPU.unavailable("a process joined or left the run's own tree")
	}
	return foreignCPU.is(float64(max(busy-own, 0))/float64(total), "")
}

func stolen(a, b Counters) Reading {
	if why := jiffies(a, b); why != "" {
		return steal.unavailable(why)
	}
	if !a.Has.Steal || !b.Has.Steal || b.Steal < a.Steal {
		return steal.unavailable("no stolen time in /proc/stat")
	}
	return steal.is(100*float64(b.Steal-a.Steal)/float64(b.Total-a.Total), "")
}

func stall(p probe, a, b Counters, from, to uint64, has bool) Reading {
	window := b.Time.Sub(a.Time)
	switch {
	case !has:
		return p.unavailable("no PSI in the kernel")
	case window <= 0 || to < from:
		return p.unavailable("the clock did not advance")
	}
	// The counter is read a little after the clock.
	return p.is(min(100*float64(to-from)/(window.Seconds()*1e6), 100), "")
}
