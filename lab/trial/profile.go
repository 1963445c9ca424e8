package trial

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Profile is one profile of a trial of a Go function, taken over its first
// region between Begin and End. A function that calls neither has none.
type Profile struct {
	Kind  string         `json:"kind"` // cpu, mutex or block
	File  string         `json:"file"` // in the folder of profiles, for go tool pprof
	Total float64        `json:"total_s"`
	Top   []ProfileEntry `json:"top,omitempty"`
}

// ProfileEntry is how much of a profile one function has: processor time, or
// for mutex and block the time that others waited for it or that it waited.
// What the runtime and its locks use is its first caller's outside of them.
type ProfileEntry struct {
	Function string  `json:"function"`
	Seconds  float64 `json:"s"`
}

// profileTop is how many functions a profile's summary names.
const profileTop = 8

// blockRate has the runtime sample what blocks for a shorter time, in nanoseconds.
const blockRate = 10_000

// profiler takes the profiles of one trial.
type profiler struct {
	Stem string `json:"stem"` // path of the files without their endings

	cpu  *os.File
	done bool
	err  error
}

func (p *profiler) path(kind string) string { return p.Stem + "." + kind + ".pb.gz" }

// begin starts with the first timed region.
func (p *profiler) begin() {
	if p == nil || p.done || p.cpu != nil || p.err != nil {
		return
	}
	if p.cpu, p.err = os.Create(p.path("cpu")); p.err != nil {
		return
	}
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(blockRate)
	p.err = pprof.StartCPUProfile(p.cpu)
}

func (p *profiler) end() {
	if p == nil || p.done || p.cpu == nil {
		return
	}
	p.done = true
	pprof.StopCPUProfile()
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	p.err = errors.Join(p.err, p.cpu.Close())
	for _, kind := range []string{"mutex", "block"} {
		f, err := os.Create(p.path(kind))
		if err == nil {
			err = errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
		}
		p.err = errors.Join(p.err, err)
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9.=,_-]`)

// newProfiler names the profiles of a trial.
func newProfiler(dir string, slot Slot) *profiler {
	cell := notInName.ReplaceAllString(slot.Cell, "_")
	if len(cell) > 120 {
		h := fnv.New64a()
		h.Write([]byte(slot.Cell))
		cell = fmt.Sprintf("%s-%x", cell[:100], h.Sum64())
	}
	phase := ""
	if slot.Warmup {
		phase = "warmup-"
	}
	return &profiler{Stem: filepath.Join(dir, fmt.Sprintf("%s.%sround%d.%s", cell, phase, slot.Round, slot.Arm))}
}

// read summarises what the trial has written. A profile that is not there or
// cannot be read is a remark: the trial's figures stand without it.
func (p *profiler) read() (all []Profile, notes []string) {
	for _, kind := range []string{"cpu", "mutex", "block"} {
		one, err := summarise(p.path(kind), kind)
		if err != nil {
			notes = append(notes, fmt.Sprintf("no %s profile: %v", kind, err))
			continue
		}
		all = append(all, one)
	}
	return all, notes
}

func summarise(path, kind string) (Profile, error) {
	out := Profile{Kind: kind, File: filepath.Base(path)}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	prof, err := profile.Parse(f)
	if err != nil {
		return out, err
	}
	at := slices.IndexFunc(prof.SampleType, func(t *profile.ValueType) bool { return t.Unit == "nanoseconds" })
	if at < 0 {
		return out, errors.New("it has no values in nanoseconds")
	}
	by := map[string]int64{}
	total := int64(0)
	for _, s := range prof.Sample {
		total += s.Value[at]
		by[owner(s)] += s.Value[at]
	}
	out.Total = float64(total) / 1e9
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	for _, name := range names[:min(len(names), profileTop)] {
		out.Top = append(out.Top, ProfileEntry{name, float64(by[name]) / 1e9})
	}
	return out, nil
}

// owner is the function that a sample is put down to: the innermost one that is
// not of the runtime, of its locks or of the system's door; else the outermost.
func owner(s *profile.Sample) string {
	name := "unknown"
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function == nil {
				continue
			}
			if name = line.Function.Name; !machinery(name) {
				return name
			}
		}
	}
	return name
}

func machinery(name string) bool {
	for _, p := range []string{"runtime.", "runtime/", "sync.", "sync/", "internal/", "syscall.", "golang.org/x/sys/"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
