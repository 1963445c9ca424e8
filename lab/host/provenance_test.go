package host

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestProvenanceOfNothing(t *testing.T) {
	p := tree(t).Provenance("", "")
	for _, name := range []string{"kernel", "cpu_model", "cpus", "mhz", "memory_bytes", "governor", "turbo", "smt", "aslr", "thp", "hypervisor", "container", "cgroup_quota", "scratch_fs", "scratch_device", "git"} {
		if !slices.Contains(p.Unavailable, name) {
			t.Errorf("%s is not said to be unavailable", name)
		}
	}
	if p.GoVersion == "" || p.GOMAXPROCS < 1 || len(p.ToolSHA256) != 64 || p.OS == "" || p.Arch == "" {
		t.Errorf("%+v", p)
	}
	wantKnownNames(t, p)
}

// wantKnownNames checks that each name in Unavailable is a field, in the order
// of the fields, and has no value.
func wantKnownNames(t *testing.T, p Provenance) {
	t.Helper()
	v, at := reflect.ValueOf(p), 0
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if at == len(p.Unavailable) || p.Unavailable[at] != name {
			continue
		}
		if at++; name != "git" && !v.Field(i).IsZero() {
			t.Errorf("%s is unavailable and has %v", name, v.Field(i))
		}
	}
	if at != len(p.Unavailable) {
		t.Errorf("unknown or out of order: %q", p.Unavailable[at:])
	}
}

func TestProvenance(t *testing.T) {
	m := tree(t, v2(map[string]string{
		"etc/os-release":                             "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n",
		"proc/sys/kernel/osrelease":                  "6.1.0\n",
		"proc/cpuinfo":                               "processor\t: 0\nmodel name\t: A CPU\ncpu MHz\t\t: 2445.430\nflags\t: fpu hypervisor\n\nprocessor : 1\nmodel name : Another\n",
		"proc/self/status":                           "Name:\tx\nCpus_allowed_list:\t0-1\n",
		"proc/meminfo":                               "MemTotal: 1024 kB\n",
		"proc/sys/kernel/randomize_va_space":         "2\n",
		cpuDir + "online":                            "0-1\n",
		cpuDir + "cpu0/cpufreq/scaling_governor":     "powersave\n",
		cpuDir + "cpu1/cpufreq/scaling_governor":     "performance\n",
		cpuDir + "cpu0/cpufreq/cpuinfo_max_freq":     "3500000\n",
		cpuDir + "cpufreq/boost":                     "1\n",
		cpuDir + "smt/control":                       "off\n",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
		"sys/fs/cgroup/a/cpu.max":                    "150000 100000\n",
		"run/systemd/container":                      "lxc\n",
		"proc/self/mountinfo":                        strings.Replace(v2Mount, "/dev/vda rw", "server:/home/someone rw,sync,username=someone,commit=5", 1),
		"sys/dev/block/254:0/queue/rotational":       "0\n",
		"sys/dev/block/254:0/queue/write_cache":      "write back\n",
		"sys/dev/block/254:0/queue/scheduler":        "none [mq-deadline]\n",
	}))
	p := m.Provenance("", t.TempDir())
	have := map[string]any{}
	b, err := json.Marshal(p)
	if err != nil || json.Unmarshal(b, &have) != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"distribution": "Some Linux 1", "kernel": "6.1.0", "cpu_model": "A CPU", "cpus": 2.0, "cpus_allowed": "0-1", "mhz": 2445.43, "max_mhz": 3500.0,
		"memory_bytes": 1048576.0, "governor": "performance, powersave", "turbo": "on", "smt": "off", "aslr": "full", "thp": "madvise",
		"hypervisor": "present", "container": "lxc", "cgroup_version": 2.0, "cgroup_quota": "1.5", "scratch_fs": "ext4", "scratch_device": "remote",
		"scratch_disk": "not rotational, write back, scheduler mq-deadline",
	} {
		if have[name] != want {
			t.Errorf("%s: have %v want %v", name, have[name], want)
		}
	}
	if want := []string{"rw", "relatime", "sync", "commit=5"}; !slices.Equal(p.ScratchOptions, want) {
		t.Error(p.ScratchOptions)
	}
	if strings.Contains(string(b), "someone") {
		t.Errorf("a name is in it: %s", b)
	}
	wantKnownNames(t, p)
}

func TestProvenanceOfGarbage(t *testing.T) {
	const junk = "\x00\xff[:=,-9999999999999999999999 \n\n"
	files := map[string]string{}
	for _, f := range []string{"etc/os-release", "proc/cpuinfo", "proc/meminfo", "proc/self/status", "proc/self/cgroup", "proc/self/mountinfo", "proc/sys/kernel/randomize_va_space",
		"sys/kernel/mm/transparent_hugepage/enabled", cpuDir + "online", cpuDir + "cpufreq/boost", cpuDir + "cpu0/cpufreq/cpuinfo_max_freq"} {
		files[f] = junk
	}
	p := tree(t, files).Provenance("", t.TempDir())
	for _, name := range []string{"distribution", "cpu_model", "cpus", "mhz", "max_mhz", "memory_bytes", "governor", "turbo", "aslr", "thp", "hypervisor", "cgroup_quota", "scratch_fs", "scratch_disk"} {
		if !slices.Contains(p.Unavailable, name) {
			t.Errorf("%s was made of garbage", name)
		}
	}
	wantKnownNames(t, p)
}

func TestProvenanceOfThisMachine(t *testing.T) {
	m := needLinux(t)
	p := m.Provenance(".", t.TempDir())
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil || p.Kernel == "" || p.ScratchFS == "" {
		t.Error(err)
	}
	t.Logf("%s", b)
	wantKnownNames(t, p)
}

func TestARMHasNoModelName(t *testing.T) {
	if m := firstCPU("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n").model(); m != "implementer 0x41 part 0xd0c" {
		t.Error(m)
	}
	if m := firstCPU("CPU part : 0xd0c\n").model(); m != "" {
		t.Error(m)
	}
}

func TestFileSHA256(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "abc")
	h, err := FileSHA256(filepath.Join(dir, "f"))
	if err != nil || h != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(h, err)
	}
	if h, err := FileSHA256(dir); err == nil || h != "" {
		t.Error("a folder has no hash")
	}
	if _, err := FileSHA256(filepath.Join(dir, "absent")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if pipe := filepath.Join(dir, "pipe"); exec.Command("mkfifo", pipe).Run() == nil {
		if _, err := FileSHA256(pipe); err == nil {
			t.Error("a pipe has no hash")
		}
	}
}

func TestPublicSource(t *testing.T) {
	for source, want := range map[string]string{
		"/dev/vda": "/dev/vda", "tmpfs": "tmpfs", "server:/export": "remote", "someone@server:": "remote",
		"//server/share": "remote", "/home/someone/cipher": "folder", "": "",
	} {
		if s := (mount{source: source}).publicSource(); s != want {
			t.Errorf("%q: have %q want %q", source, s, want)
		}
	}
}
