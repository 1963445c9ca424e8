package host

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestCounters(t *testing.T) {
	c := tree(t, sound).Counters(7)
	want := Counters{
		Time: c.Time, Busy: 1330, Total: 6660, Steal: 30, CPUs: 2, OwnCPU: 7,
		PSI: PSI{1000, 2000, 3000}, Load1: 1.5, MemAvailable: 4 << 30, SwapUsed: 1 << 30,
		Has: Has{true, true, true, true, true, true, true, true, true, true},
	}
	if c != want {
		t.Errorf("have %+v\nwant %+v", c, want)
	}
	b, err := json.Marshal(c)
	var back Counters
	if err != nil || json.Unmarshal(b, &back) != nil || back.Has != c.Has || back.PSI != c.PSI {
		t.Errorf("%s %v", b, err)
	}
}

func TestCountersOfNothing(t *testing.T) {
	c := tree(t).Counters(-1)
	if c.Has != (Has{}) || !reflect.DeepEqual(c, Counters{Time: c.Time}) {
		t.Errorf("have %+v", c)
	}
}

func TestCountersRefuse(t *testing.T) {
	cases := []struct {
		name, file, content string
		has                 func(Has) bool
	}{
		{"empty stat", "proc/stat", "", func(h Has) bool { return h.CPU || h.Steal || h.CPUs }},
		{"garbage stat", "proc/stat", "\x00\xff\x00garbage\n", func(h Has) bool { return h.CPU || h.Steal || h.CPUs }},
		{"words for numbers", "proc/stat", "cpu 1 2 3 four 5 6 7 8\ncpu0 1\n", func(h Has) bool { return h.CPU || h.Steal }},
		{"negative", "proc/stat", "cpu 1 2 3 -4 5 6 7 8\n", func(h Has) bool { return h.CPU }},
		{"overflow", "proc/stat", "cpu 1 2 3 18446744073709551616 5 6 7 8\n", func(h Has) bool { return h.CPU }},
		{"sum overflows", "proc/stat", "cpu 18446744073709551615 18446744073709551615 3 4 5 6 7 8\n", func(h Has) bool { return h.CPU }},
		{"too few fields", "proc/stat", "cpu 1 2 3\n", func(h Has) bool { return h.CPU || h.Steal }},
		{"no steal", "proc/stat", "cpu 1 2 3 4 5 6 7\n", func(h Has) bool { return h.Steal }},
		{"zeros", "proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n", func(h Has) bool { return h.CPU || h.Steal }},
		{"no CPUs", "proc/stat", "cpu 1 2 3 4 5 6 7 8\nintr 1\n", func(h Has) bool { return h.CPUs }},
		{"no PSI total", "proc/pressure/cpu", "some avg10=0.00\n", func(h Has) bool { return h.PSICPU }},
		{"only full", "proc/pressure/io", "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", func(h Has) bool { return h.PSIIO }},
		{"garbage PSI", "proc/pressure/memory", "some total=x\n", func(h Has) bool { return h.PSIMemory }},
		{"NaN load", "proc/loadavg", "NaN 1 1\n", func(h Has) bool { return h.Load }},
		{"endless load", "proc/loadavg", "+Inf 1 1\n", func(h Has) bool { return h.Load }},
		{"negative load", "proc/loadavg", "-1 1 1\n", func(h Has) bool { return h.Load }},
		{"empty load", "proc/loadavg", "", func(h Has) bool { return h.Load }},
		{"no MemAvailable", "proc/meminfo", "MemFree: 5 kB\nSwapTotal: 0 kB\n", func(h Has) bool { return h.Memory || h.Swap }},
		{"memory overflows", "proc/meminfo", "MemAvailable: 18446744073709551615 kB\n", func(h Has) bool { return h.Memory }},
		{"more swap free than there is", "proc/meminfo", "SwapTotal: 1 kB\nSwapFree: 2 kB\n", func(h Has) bool { return h.Swap }},
		{"no SwapFree", "proc/meminfo", "SwapTotal: 1 kB\n", func(h Has) bool { return h.Swap }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if h := tree(t, sound, map[string]string{c.file: c.content}).Counters(0).Has; c.has(h) {
				t.Errorf("accepted: %+v", h)
			}
		})
	}
}

func TestCPUsOfACutFile(t *testing.T) {
	var c Counters
	c.cpu([]byte("cpu 1 2 3 4\ncpu0 1\ncpu1 1"), true)
	if c.Has.CPUs {
		t.Error("a file that was cut off may have more CPUs")
	}
}

func FuzzCounters(f *testing.F) {
	f.Add([]byte(sound["proc/stat"]), []byte(sound["proc/meminfo"]), []byte(sound["proc/pressure/io"]))
	f.Fuzz(func(t *testing.T, stat, meminfo, psi []byte) {
		var c Counters
		c.cpu(stat, false)
		c.memory(meminfo)
		some(psi, "total=")
		if c.Busy+c.Steal > c.Total {
			t.Errorf("busy %d + steal %d of %d", c.Busy, c.Steal, c.Total)
		}
	})
}

func BenchmarkCounters(b *testing.B) {
	for b.Loop() {
		(Machine{}).Counters(0)
	}
}
