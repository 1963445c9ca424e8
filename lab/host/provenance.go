package host

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Provenance is the machine and the build that figures were taken on. It names
// neither host, user nor folder. A field that could not be read is absent and
// named in Unavailable.
type Provenance struct {
	OS           string `json:"os"`
	Distribution string `json:"distribution,omitempty"`
	Kernel       string `json:"kernel,omitempty"`
	Arch         string `json:"arch"`

	CPUModel string `json:"cpu_model,omitempty"`
	CPUs     int    `json:"cpus,omitempty"` // online
	// CPUsAllowed are the CPUs that this process may run on, as a list such as
	// 0-3,8.
	CPUsAllowed string `json:"cpus_allowed,omitempty"`
	// MHz is what the first CPU ran at when it was asked; MaxMHz is its
	// highest.
	MHz         float64 `json:"mhz,omitempty"`
	MaxMHz      float64 `json:"max_mhz,omitempty"`
	MemoryBytes uint64  `json:"memory_bytes,omitempty"`
	Governor    string  `json:"governor,omitempty"`
	Turbo       string  `json:"turbo,omitempty"` // on or off
	SMT         string  `json:"smt,omitempty"`   // in the kernel's words
	ASLR        string  `json:"aslr,omitempty"`  // off, partial or full
	THP         string  `json:"thp,omitempty"`   // always, madvise or never
	// Hypervisor is present or absent, as the CPU's flags say.
	Hypervisor string `json:"hypervisor,omitempty"`

	// Container is its kind, or "none detected".
	Container     string `json:"container,omitempty"`
	CgroupVersion int    `json:"cgroup_version,omitempty"`
	// CgroupQuota is in CPUs, or "unlimited".
	CgroupQuota string `json:"cgroup_quota,omitempty"`

	ScratchFS string `json:"scratch_fs,omitempty"`
	// ScratchDevice is "remote" where it would name another host, and "folder"
	// where it would name one.
	ScratchDevice  string   `json:"scratch_device,omitempty"`
	ScratchOptions []string `json:"scratch_options,omitempty"`
	// ScratchDisk is what the kernel says of the device itself: rotational,
	// write cache and scheduler.
	ScratchDisk string `json:"scratch_disk,omitempty"`

	GoVersion   string   `json:"go_version"`
	GOMAXPROCS  int      `json:"gomaxprocs"`
	ToolVersion string   `json:"tool_version,omitempty"`
	ToolSHA256  string   `json:"tool_sha256,omitempty"`
	ToolBuild   []string `json:"tool_build,omitempty"` // settings that change what runs
	Git         GitState `json:"git"`

	// Unavailable are the JSON names of what could not be read, in the order
	// above.
	Unavailable []string `json:"unavailable,omitempty"`
}

// Provenance describes the machine, this program, the source in dir and the
// file system of scratch, which must exist.
func (m Machine) Provenance(dir, scratch string) Provenance {
	p := Provenance{OS: runtime.GOOS, Arch: runtime.GOARCH, GoVersion: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0)}
	text := func(name string, to *string, value string) {
		if *to = value; value == "" {
			p.Unavailable = append(p.Unavailable, name)
		}
	}
	file := func(path string) string {
		s, _ := m.text(path)
		return s
	}
	number := func(name string, known bool) {
		if !known {
			p.Unavailable = append(p.Unavailable, name)
		}
	}

	text("distribution", &p.Distribution, osRelease(file("/etc/os-release")))
	text("kernel", &p.Kernel, file("/proc/sys/kernel/osrelease"))

	cpu := firstCPU(file("/proc/cpuinfo"))
	text("cpu_model", &p.CPUModel, cpu.model())
	cpus, _ := m.online()
	p.CPUs = len(cpus)
	number("cpus", p.CPUs > 0)
	text("cpus_allowed", &p.CPUsAllowed, colon(file("/proc/self/status"))["Cpus_allowed_list"])
	p.MHz, _ = parseFloat(cpu["cpu MHz"])
	number("mhz", p.MHz > 0)
	khz, _ := parseFloat(file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
	p.MaxMHz = khz / 1000
	number("max_mhz", p.MaxMHz > 0)
	kib, ok := keyed([]byte(file("/proc/meminfo")), "MemTotal:")
	if ok && kib < 1<<50 {
		p.MemoryBytes = kib * 1024
	}
	number("memory_bytes", p.MemoryBytes > 0)
	governors, _ := m.governors()
	text("governor", &p.Governor, strings.Join(governors, ", "))
	text("turbo", &p.Turbo, onOff(m.turbo()))
	text("smt", &p.SMT, file("/sys/devices/system/cpu/smt/control"))
	text("aslr", &p.ASLR, map[string]string{"0": "off", "1": "partial", "2": "full"}[file("/proc/sys/kernel/randomize_va_space")])
	text("thp", &p.THP, bracketed(file("/sys/kernel/mm/transparent_hugepage/enabled")))
	text("hypervisor", &p.Hypervisor, cpu.hypervisor())

	text("container", &p.Container, m.container())
	quota, limited, version, err := m.quota()
	p.CgroupVersion = version
	number("cgroup_version", err == nil)
	switch {
	case err != nil:
		text("cgroup_quota", &p.CgroupQuota, "")
	case limited:
		p.CgroupQuota = strconv.FormatFloat(quota, 'g', 6, 64)
	default:
		p.CgroupQuota = "unlimited"
	}

	at, err := m.scratchMount(scratch)
	text("scratch_fs", &p.ScratchFS, at.fs)
	text("scratch_device", &p.ScratchDevice, at.publicSource())
	p.ScratchOptions = at.publicOptions()
	number("scratch_options", err == nil)
	text("scratch_disk", &p.ScratchDisk, m.block(at.device))

	if info, ok := debug.ReadBuildInfo(); ok {
		p.ToolVersion, p.ToolBuild = info.Main.Version, settings(info)
	}
	number("tool_version", p.ToolVersion != "")
	hash, _ := ToolSHA256()
	text("tool_sha256", &p.ToolSHA256, hash)
	p.Git = Git(dir)
	number("git", p.Git.State == OK)
	return p
}

func onOff(r Reading) string {
	switch {
	case !r.Available():
		return ""
	case r.Value == 1:
		return "on"
	}
	return "off"
}

// colon reads lines of a key, a colon and a value, up to the first empty one.
func colon(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			break
		}
		if k, v, ok := strings.Cut(line, ":"); ok {
			all[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return all
}

type cpuInfo map[string]string

func firstCPU(cpuinfo string) cpuInfo { return cpuInfo(colon(cpuinfo)) }

// model falls back on numbers, which is all that ARM gives.
func (c cpuInfo) model() string {
	if m := c["model name"]; m != "" {
		return m
	}
	if i, p := c["CPU implementer"], c["CPU part"]; i != "" && p != "" {
		return "implementer " + i + " part " + p
	}
	return ""
}

func (c cpuInfo) hypervisor() string {
	flags, ok := c["flags"]
	switch {
	case !ok:
		return ""
	case slices.Contains(strings.Fields(flags), "hypervisor"):
		return "present"
	}
	return "absent"
}

func osRelease(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// bracketed is the choice in "always [madvise] never".
func bracketed(s string) string {
	_, s, _ = strings.Cut(s, "[")
	s, _, ok := strings.Cut(s, "]")
	if !ok {
		return ""
	}
	return s
}

func (m Machine) container() string {
	if s, err := m.text("/run/systemd/container"); err == nil && s != "" {
		return s
	}
	if m.exists("/.dockerenv") {
		return "docker"
	}
	if m.exists("/run/.containerenv") {
		return "podman"
	}
	s, err := m.text("/proc/self/cgroup")
	for _, kind := range []string{"kubepods", "docker", "podman", "libpod", "containerd", "lxc"} {
		if strings.Contains(s, kind) {
			return kind
		}
	}
	if err != nil {
		return ""
	}
	return "none detected"
}

// publicSource keeps names of hosts and users out of a report. A stacked file
// system has a folder for its source, perhaps of somebody's home.
func (at mount) publicSource() string {
	switch s := at.source; {
	case strings.ContainsAny(s, ":@") || strings.HasPrefix(s, "//"):
		return "remote"
	case strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "/dev/"):
		return "folder"
	default:
		return s
	}
}

// publicOptions keeps those that bear on timing; others may name paths and
// users.
func (at mount) publicOptions() []string {
	var all []string
	for _, o := range slices.Concat(at.options, at.super) {
		key, _, valued := strings.Cut(o, "=")
		if valued && !slices.Contains([]string{"data", "commit", "barrier", "compress", "discard", "size"}, key) {
			continue
		}
		if o != "" && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// block asks the device, or the disk that a partition is on.
func (m Machine) block(device string) string {
	if device == "" {
		return ""
	}
	for _, up := range []string{"", "/.."} {
		dir := "/sys/dev/block/" + device + up + "/queue"
		spins, err := m.text(dir + "/rotational")
		if err != nil || spins != "0" && spins != "1" {
			continue
		}
		kind := map[string]string{"0": "not rotational", "1": "rotational"}[spins]
		if s, err := m.text(dir + "/write_cache"); err == nil {
			kind += ", " + s
		}
		if s, err := m.text(dir + "/scheduler"); err == nil {
			if b := bracketed(s); b != "" {
				s = b
			}
			kind += ", scheduler " + s
		}
		return kind
	}
	return ""
}

func settings(info *debug.BuildInfo) []string {
	var all []string
	for _, s := range info.Settings {
		switch s.Key {
		case "-race", "-gcflags", "-tags", "CGO_ENABLED", "GOAMD64", "GOARM64", "GOEXPERIMENT", "vcs.revision", "vcs.modified":
			v := s.Value
			if strings.ContainsRune(v, '/') {
				v = "(has a path)"
			}
			all = append(all, s.Key+"="+v)
		}
	}
	return all
}
