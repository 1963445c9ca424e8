package host

import (
	"bytes"
	"math"
	"time"
)

// Counters is a cheap snapshot of the machine, taken around every round. What
// it counts is cumulative since boot. A figure means something only where Has
// says so; the zero Counters has nothing.
type Counters struct {
	Time time.Time `json:"time"`
	// Busy, Total and Steal are jiffies of 10 ms, summed over all CPUs. Busy
	// has neither idle, iowait nor stolen time; Total has all of them. Time in
	// guests counts once.
	Busy  uint64 `json:"busy"`
	Total uint64 `json:"total"`
	Steal uint64 `json:"steal"`
	// CPUs is the number of CPUs that are online.
	CPUs int `json:"cpus"`
	// OwnCPU is the CPU time of the run's own process tree, see
	// Machine.OwnCPU.
	OwnCPU time.Duration `json:"own_cpu_ns"`
	PSI    PSI           `json:"psi_us"`
	// Load1 is the load average of one minute. It is no sum.
	Load1 float64 `json:"load1"`
	// MemAvailable is in bytes: what the kernel thinks can be had without
	// swapping, or what a memory cgroup leaves of it where that is less.
	MemAvailable uint64 `json:"mem_available"`
	// SwapUsed is in bytes.
	SwapUsed uint64 `json:"swap_used"`
	Has      Has    `json:"has"`
}

// PSI is the time in µs since boot during which some task waited for a
// resource.
type PSI struct {
	CPU    uint64 `json:"cpu"`
	IO     uint64 `json:"io"`
	Memory uint64 `json:"memory"`
}

// Has says which figures of Counters were read; the rest are 0 and mean
// nothing.
type Has struct {
	CPU       bool `json:"cpu"` // Busy and Total
	Steal     bool `json:"steal"`
	CPUs      bool `json:"cpus"`
	OwnCPU    bool `json:"own_cpu"`
	PSICPU    bool `json:"psi_cpu"`
	PSIIO     bool `json:"psi_io"`
	PSIMemory bool `json:"psi_memory"`
	Load      bool `json:"load"`
	Memory    bool `json:"memory"`
	Swap      bool `json:"swap"`
}

// Linux reports in hundredths of a second on every architecture that Go has,
// whatever the kernel's own tick is.
const jiffy = 10 * time.Millisecond

// Counters takes a snapshot. own is the cumulative CPU time of the run's own
// process tree, from OwnCPU; a negative one is unavailable.
func (m Machine) Counters(own time.Duration) Counters {
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	buf := *room
	c := Counters{Time: time.Now()}
	if own >= 0 {
		c.OwnCPU, c.Has.OwnCPU = own, true
	}
	if b, err := m.reread("/proc/stat", buf); err == nil {
		c.cpu(b, len(b) == len(buf))
	}
	c.PSI.CPU, c.Has.PSICPU = m.stalled("cpu", buf)
	c.PSI.IO, c.Has.PSIIO = m.stalled("io", buf)
	c.PSI.Memory, c.Has.PSIMemory = m.stalled("memory", buf)
	if b, err := m.reread("/proc/loadavg", buf); err == nil {
		first, _ := nextField(b)
		if v, ok := parseFloat(string(first)); ok {
			c.Load1, c.Has.Load = v, true
		}
	}
	if b, err := m.reread("/proc/meminfo", buf); err == nil {
		c.memory(b)
	}
	if c.Has.Memory {
		c.MemAvailable, c.Has.Memory = m.withinCgroup(c.MemAvailable, buf)
	}
	return c
}

// cpu reads /proc/stat. A file that was cut off may have more CPUs than were
// seen.
func (c *Counters) cpu(b []byte, cut bool) {
	line, b := nextLine(b)
	name, rest := nextField(line)
	if string(name) != "cpu" {
		return
	}
	const idle, iowait, stolen, guest = 3, 4, 7, 8
	var v [guest]uint64
	n := 0
	for ; n < guest; n++ {
		var f []byte
		if f, rest = nextField(rest); len(f) == 0 {
			break
		}
		x, ok := parseUint(f)
		if !ok || x > math.MaxUint64>>8 {
			return
		}
		v[n] = x
	}
	if n <= idle {
		return
	}
	for i, x := range v {
		c.Total += x
		if i != idle && i != iowait && i != stolen {
			c.Busy += x
		}
	}
	// Some sandboxes serve a file of zeros.
	c.Has.CPU = c.Total > 0
	if c.Has.Steal = c.Has.CPU && n > stolen; c.Has.Steal {
		c.Steal = v[stolen]
	}
	for len(b) > 3 && bytes.HasPrefix(b, []byte("cpu")) && b[3] >= '0' && b[3] <= '9' {
		c.CPUs++
		_, b = nextLine(b)
	}
	c.Has.CPUs = c.CPUs > 0 && !(cut && len(b) == 0)
}

func (c *Counters) memory(b []byte) {
	var total, free uint64
	var hasTotal, hasFree bool
	for len(b) > 0 && !(c.Has.Memory && hasTotal && hasFree) {
		var line []byte
		line, b = nextLine(b)
		key, rest := nextField(line)
		value, _ := nextField(rest)
		v, ok := parseUint(value)
		if !ok || v > math.MaxUint64>>10 {
			continue
		}
		switch v *= 1024; string(key) {
		case "MemAvailable:":
			c.MemAvailable, c.Has.Memory = v, true
		case "SwapTotal:":
			total, hasTotal = v, true
		case "SwapFree:":
			free, hasFree = v, true
		}
	}
	if hasTotal && hasFree && free <= total {
		c.SwapUsed, c.Has.Swap = total-free, true
	}
}

func (m Machine) stalled(resource string, buf []byte) (µs uint64, ok bool) {
	// The buffer is shared, so only what is parsed may leave this function.
	b, err := m.reread("/proc/pressure/"+resource, buf)
	if err != nil {
		return 0, false
	}
	v, ok := some(b, "total=")
	if !ok {
		return 0, false
	}
	return parseUint(v)
}

// some is a value of the line of /proc/pressure for when some task waited.
func some(b []byte, key string) (value []byte, ok bool) {
	line, _ := nextLine(b)
	name, rest := nextField(line)
	for string(name) == "some" && len(rest) > 0 {
		var f []byte
		if f, rest = nextField(rest); bytes.HasPrefix(f, []byte(key)) {
			return f[len(key):], true
		}
	}
	return nil, false
}
