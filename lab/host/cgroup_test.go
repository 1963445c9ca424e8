package host

import (
	"strings"
	"testing"
)

const (
	rootMount = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	v2Mount   = rootMount + "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	v1Mount   = rootMount + "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)

func v2(files map[string]string) map[string]string {
	all := map[string]string{
		"proc/self/cgroup":                   "0::/a/b\n",
		"proc/self/mountinfo":                v2Mount,
		"sys/fs/cgroup/a/b/cgroup.procs":     "1\n",
		"sys/fs/cgroup/a/b/cpu.max":          "max 100000\n",
		"sys/fs/cgroup/a/cpu.max":            "max 100000\n",
		"sys/fs/cgroup/a/b/memory.max":       "max\n",
		"sys/fs/cgroup/a/memory.max":         "1073741824\n",
		"sys/fs/cgroup/a/memory.current":     "805306368\n",
		"sys/fs/cgroup/a/memory.stat":        "anon 1\ninactive_file 268435456\n",
		"sys/fs/cgroup/cgroup.procs":         "",
		"sys/fs/cgroup/unrelated/cpu.max":    "1 100000\n",
		"sys/fs/cgroup/unrelated/memory.max": "1\n",
	}
	for k, v := range files {
		all[k] = v
	}
	return all
}

func v1(files map[string]string) map[string]string {
	const cpu, memory = "sys/fs/cgroup/cpu,cpuacct/x/", "sys/fs/cgroup/memory/x/"
	all := map[string]string{
		"proc/self/cgroup":                "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n",
		"proc/self/mountinfo":             v1Mount,
		cpu + "cgroup.procs":              "1\n",
		cpu + "cpu.cfs_quota_us":          "50000\n",
		cpu + "cpu.cfs_period_us":         "100000\n",
		memory + "cgroup.procs":           "1\n",
		memory + "memory.limit_in_bytes":  "1073741824\n",
		memory + "memory.usage_in_bytes":  "1073741824\n",
		memory + "memory.stat":            "inactive_file 5\ntotal_inactive_file 536870912\n",
		"sys/fs/cgroup/memory/notmemory":  "",
		"sys/fs/cgroup/cpu,cpuacct/tasks": "",
	}
	for k, v := range files {
		all[k] = v
	}
	return all
}

func quotaOf(t *testing.T, files ...map[string]string) Reading {
	m := tree(t, append([]map[string]string{sound}, files...)...)
	return m.allowance(m.Counters(0))
}

func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		cpus   float64
		detail string
	}{
		"v2 unlimited":         {v2(nil), 2, "unlimited"},
		"v2 quota":             {v2(map[string]string{"sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}), 1.5, "v2"},
		"v2 quota above":       {v2(map[string]string{"sys/fs/cgroup/a/b/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}), 0.5, "v2"},
		"v2 beyond machine":    {v2(map[string]string{"sys/fs/cgroup/a/cpu.max": "1600000 100000\n"}), 2, "16 CPUs"},
		"v2 namespace":         {v2(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "20000 100000\n"}), 0.2, "v2"},
		"v2 bind mount":        {v2(map[string]string{"proc/self/cgroup": "0::/outer/a/b\n", "proc/self/mountinfo": strings.Replace(v2Mount, "0:28 /", "0:28 /outer", 1), "sys/fs/cgroup/a/cpu.max": "20000 100000\n"}), 0.2, "v2"},
		"v1 quota":             {v1(nil), 0.5, "v1"},
		"v1 unlimited":         {v1(map[string]string{"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "-1\n"}), 2, "unlimited"},
		"v1 hybrid beats v2":   {v1(map[string]string{"proc/self/cgroup": "0::/nowhere\n5:cpu,cpuacct:/x\n"}), 0.5, "v1"},
		"cpuset is no quota":   {v1(map[string]string{"proc/self/cgroup": "9:cpuset:/nowhere\n5:cpu,cpuacct:/x\n"}), 0.5, "v1"},
		"blank in mount point": {v2(map[string]string{"proc/self/mountinfo": strings.Replace(v2Mount, "/sys/fs/cgroup", `/sys/a\040b`, 1), "sys/a b/a/b/cgroup.procs": "", "sys/a b/a/cpu.max": "20000 100000"}), 0.2, "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := quotaOf(t, c.files)
			wantValue(t, r, c.cpus)
			if !strings.Contains(r.Detail, c.detail) {
				t.Error(r.Detail)
			}
		})
	}
}

func TestQuotaRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":             {},
		"no mountinfo":        {"proc/self/cgroup": "0::/\n"},
		"garbage cgroup":      v2(map[string]string{"proc/self/cgroup": "\x00\xff"}),
		"garbage mountinfo":   v2(map[string]string{"proc/self/mountinfo": "a b c - d\n - \n"}),
		"not mounted":         v2(map[string]string{"proc/self/mountinfo": rootMount}),
		"wrong version":       v2(map[string]string{"proc/self/mountinfo": v1Mount}),
		"outside namespace":   v2(map[string]string{"proc/self/cgroup": "0::/../x\n"}),
		"outside bind mount":  v2(map[string]string{"proc/self/mountinfo": strings.Replace(v2Mount, "0:28 /", "0:28 /other", 1)}),
		"neighbour's name":    v2(map[string]string{"proc/self/cgroup": "0::/ab/b\n", "proc/self/mountinfo": strings.Replace(v2Mount, "0:28 /", "0:28 /a", 1)}),
		"no folder":           v2(map[string]string{"proc/self/cgroup": "0::/gone\n"}),
		"garbage quota":       v2(map[string]string{"sys/fs/cgroup/a/cpu.max": "lots 100000\n"}),
		"no period":           v2(map[string]string{"sys/fs/cgroup/a/cpu.max": "100000\n"}),
		"empty quota":         v2(map[string]string{"sys/fs/cgroup/a/b/cpu.max": ""}),
		"zero period":         v2(map[string]string{"sys/fs/cgroup/a/cpu.max": "100000 0\n"}),
		"garbage quota of v1": v1(map[string]string{"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "-2\n"}),
		"garbage period":      v1(map[string]string{"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "?\n"}),
	} {
		t.Run(name, func(t *testing.T) { wantUnavailable(t, quotaOf(t, files)) })
	}
	t.Run("no period in v1", func(t *testing.T) {
		files := v1(nil)
		delete(files, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us")
		wantUnavailable(t, quotaOf(t, files))
	})
	t.Run("no count of CPUs", func(t *testing.T) { wantUnavailable(t, quotaOf(t, v2(nil), map[string]string{"proc/stat": ""})) })
}

func TestMemoryInACgroup(t *testing.T) {
	of := func(files map[string]string) Reading { return memory(tree(t, sound, files).Counters(0)) }
	wantValue(t, of(nil), 4)
	wantValue(t, of(v2(nil)), 0.5)
	wantValue(t, of(v1(nil)), 0.5)
	wantValue(t, of(v2(map[string]string{"sys/fs/cgroup/a/memory.max": "max\n"})), 4)
	wantValue(t, of(v1(map[string]string{"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n"})), 4)
	wantValue(t, of(v2(map[string]string{"sys/fs/cgroup/a/memory.current": "9993741824\n"})), 0)
	wantUnavailable(t, of(v2(map[string]string{"sys/fs/cgroup/a/memory.max": "?"})))
	wantUnavailable(t, of(v2(map[string]string{"sys/fs/cgroup/a/memory.current": ""})))
	wantUnavailable(t, of(v2(map[string]string{"sys/fs/cgroup/a/memory.stat": "anon 1\n"})))
}

func TestProbeLooksForTheMemoryCgroupAgain(t *testing.T) {
	m := tree(t, sound, v2(map[string]string{"sys/fs/cgroup/a/memory.max": "max\n"}))
	wantValue(t, memory(m.Counters(0)), 4)
	write(t, m.path("/sys/fs/cgroup/a/memory.max"), "1073741824\n")
	wantValue(t, pick(t, m.Probe(""), "memory_available"), 0.5)
}
