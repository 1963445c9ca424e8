package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// cgroups are the folders of this process's cgroup and all above it that can
// be seen, innermost first.
type cgroups struct {
	version int
	dirs    []string
}

// cgroup finds the folders in which a controller's limits stand. A limit holds
// for everything below it, so all of them count.
func (m Machine) cgroup(controller string) (g cgroups, err error) {
	b, err := m.whole("/proc/self/cgroup")
	if err != nil {
		return g, err
	}
	var at string
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case slices.Contains(strings.Split(f[1], ","), controller):
			g.version, at = 1, f[2]
		case f[0] == "0" && f[1] == "" && g.version == 0:
			g.version, at = 2, f[2]
		}
	}
	if g.version == 0 || !strings.HasPrefix(at, "/") {
		return g, fmt.Errorf("no cgroup of %s in /proc/self/cgroup", controller)
	}
	mounts, err := m.mounts()
	if err != nil {
		return g, err
	}
	i := slices.IndexFunc(mounts, func(x mount) bool {
		if g.version == 2 {
			return x.fs == "cgroup2"
		}
		return x.fs == "cgroup" && slices.Contains(x.super, controller)
	})
	if i < 0 {
		return g, fmt.Errorf("cgroup of %s is not mounted", controller)
	}
	top := mounts[i]
	rel, below := strings.CutPrefix(at, strings.TrimSuffix(top.root, "/"))
	if !below || rel != "" && rel[0] != '/' || slices.Contains(strings.Split(at, "/"), "..") {
		return g, errors.New("the cgroup is outside what is mounted")
	}
	for rel = path.Clean("/" + rel); ; rel = path.Dir(rel) {
		g.dirs = append(g.dirs, strings.TrimSuffix(top.point+rel, "/"))
		if rel == "/" {
			break
		}
	}
	if !m.exists(g.dirs[0] + "/cgroup.procs") {
		return g, errors.New("the cgroup has no folder")
	}
	return g, nil
}

// quota is how many CPUs' worth of time the cgroup may use; limited is false
// where no quota is set.
func (m Machine) quota() (cpus float64, limited bool, version int, err error) {
	g, err := m.cgroup("cpu")
	if err != nil {
		return 0, false, 0, err
	}
	for _, dir := range g.dirs {
		var max, period string
		if g.version == 2 {
			var line string
			line, err = m.text(dir + "/cpu.max")
			max, period, _ = strings.Cut(line, " ")
		} else if max, err = m.text(dir + "/cpu.cfs_quota_us"); err == nil {
			period, err = m.text(dir + "/cpu.cfs_period_us")
		}
		// Neither the topmost folder nor one without the controller has the
		// file, and neither sets a limit.
		if errors.Is(err, fs.ErrNotExist) && max == "" {
			continue
		}
		if err != nil {
			return 0, false, 0, err
		}
		if max == "max" || g.version == 1 && max == "-1" {
			continue
		}
		q, okQ := parseUint([]byte(max))
		p, okP := parseUint([]byte(period))
		if !okQ || !okP || q == 0 || p == 0 {
			return 0, false, 0, errors.New("unreadable CPU quota of the cgroup")
		}
		if c := float64(q) / float64(p); !limited || c < cpus {
			cpus, limited = c, true
		}
	}
	return cpus, limited, g.version, nil
}

// memoryLimit is a cgroup that bounds memory.
type memoryLimit struct {
	dir     string
	version int
}

// A snapshot has no time to look for the cgroup, and a process seldom changes
// it, so each root is looked at once. Probe looks again.
var memoryLimits sync.Map // root to []memoryLimit

func (m Machine) findMemoryLimits() []memoryLimit {
	var found []memoryLimit
	// Where the cgroup cannot be seen there may be a limit all the same, as
	// there may be one above a namespace; neither can be known from inside.
	if g, err := m.cgroup("memory"); err == nil {
		for _, dir := range g.dirs {
			l := memoryLimit{dir, g.version}
			v, err := m.text(dir + "/" + l.file("memory.max", "memory.limit_in_bytes"))
			n, ok := parseUint([]byte(v))
			// Version 1 writes a large number for none.
			none := v == "max" || ok && n >= 1<<60 || errors.Is(err, fs.ErrNotExist)
			if !none {
				found = append(found, l)
			}
		}
	}
	memoryLimits.Store(m.Root, found)
	return found
}

func (l memoryLimit) file(v2, v1 string) string {
	if l.version == 2 {
		return v2
	}
	return v1
}

// withinCgroup is what is left of available bytes inside the memory cgroup.
// Inactive file pages count as free, since the kernel drops them before it
// kills.
func (m Machine) withinCgroup(available uint64, buf []byte) (uint64, bool) {
	limits, ok := memoryLimits.Load(m.Root)
	if !ok {
		limits = m.findMemoryLimits()
	}
	for _, l := range limits.([]memoryLimit) {
		most, unlimited, ok1 := m.number(l.dir+"/"+l.file("memory.max", "memory.limit_in_bytes"), buf)
		if unlimited {
			continue
		}
		used, _, ok2 := m.number(l.dir+"/"+l.file("memory.current", "memory.usage_in_bytes"), buf)
		b, err := m.read(l.dir+"/memory.stat", buf)
		cache, ok3 := keyed(b, l.file("inactive_file", "total_inactive_file"))
		if !ok1 || !ok2 || err != nil || !ok3 {
			return 0, false
		}
		used -= min(used, cache)
		available = min(available, most-min(most, used))
	}
	return available, true
}

func (m Machine) number(p string, buf []byte) (n uint64, unlimited, ok bool) {
	b, err := m.read(p, buf)
	if err != nil {
		return 0, false, false
	}
	b = bytes.TrimSpace(b)
	if string(b) == "max" {
		return 0, true, true
	}
	n, ok = parseUint(b)
	return n, false, ok
}
