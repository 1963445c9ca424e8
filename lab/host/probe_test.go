package host

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/assaylab/assay/lab/protocol"
)

func needLinux(t *testing.T) Machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	return Machine{}
}

func names(rs []Reading) (all []string) {
	for _, r := range rs {
		all = append(all, r.Probe)
	}
	return all
}

func TestProbeOfNothing(t *testing.T) {
	m := tree(t)
	rs := m.Probe(filepath.Join(m.Root, "absent"))
	if !slices.Equal(names(rs), protocol.Probes) {
		t.Errorf("have %q\nwant %q", names(rs), protocol.Probes)
	}
	for _, r := range rs {
		wantUnavailable(t, r)
	}
}

func TestProbeWithoutScratch(t *testing.T) {
	rs := Machine{Root: tree(t).Root}.Probe("")
	wantUnavailable(t, pick(t, rs, "disk_free"))
	wantUnavailable(t, pick(t, rs, "scratch_tmpfs"))
}

func TestProbePressure(t *testing.T) {
	m := tree(t, sound)
	wantValue(t, m.pressure(psiIO, "io"), 2.5)
	for _, garbage := range []string{"", "some\n", "some avg10=\n", "some avg10=NaN total=1\n", "some avg10=101.00 total=1\n", "full avg10=1.00\n", "some avg10=-1\n"} {
		wantUnavailable(t, tree(t, map[string]string{"proc/pressure/io": garbage}).pressure(psiIO, "io"))
	}
}

func TestProbeRates(t *testing.T) {
	rs := tree(t, sound).Probe(t.TempDir())
	// The fake clock of the CPUs stands still.
	wantUnavailable(t, pick(t, rs, "foreign_cpu"))
	wantUnavailable(t, pick(t, rs, "steal"))
	wantValue(t, pick(t, rs, "psi_memory"), 3.5)
}

func TestProbeOfThisMachine(t *testing.T) {
	m := needLinux(t)
	m.LockPath = filepath.Join(t.TempDir(), "lock")
	rs := m.Probe(t.TempDir())
	if !slices.Equal(names(rs), protocol.Probes) {
		t.Error(names(rs))
	}
	for _, r := range rs {
		t.Log(r)
		if r.State == Bad || r.State == OK != r.Available() || r.State == Unavailable && r.Detail == "" {
			t.Errorf("%#v", r)
		}
	}
	for _, must := range []string{"disk_free", "scratch_tmpfs", "other_run"} {
		if r := pick(t, rs, must); !r.Available() {
			t.Error(r)
		}
	}
	if r := pick(t, rs, "foreign_cpu"); r.Available() && (r.Value < 0 || r.Value > 1) {
		t.Error(r)
	}
}

func TestTmpfs(t *testing.T) {
	needLinux(t)
	const shm = "/dev/shm"
	all, err := Machine{}.mounts()
	if at, ok := mountOf(all, shm); err != nil || !ok || at.fs != "tmpfs" {
		t.Skip("no tmpfs at hand")
	}
	_, r := Machine{}.disk(shm)
	wantValue(t, r, 1)
	if r.Detail != "tmpfs" {
		t.Error(r.Detail)
	}
}

func TestMountOf(t *testing.T) {
	m := tree(t, map[string]string{"proc/self/mountinfo": rootMount +
		"40 27 8:1 / /data rw - ext4 /dev/sda1 rw\n41 27 8:2 / /data rw - xfs /dev/sdb1 rw\n42 27 8:3 / /database rw - btrfs /dev/sdc1 rw\n"})
	all, err := m.mounts()
	if err != nil {
		t.Fatal(err)
	}
	for path, fs := range map[string]string{"/data": "xfs", "/data/x": "xfs", "/database/x": "btrfs", "/dat": "ext4", "/": "ext4"} {
		if at, ok := mountOf(all, path); !ok || at.fs != fs {
			t.Errorf("%s is on %q, want %s", path, at.fs, fs)
		}
	}
}

func TestScratchThatIsAFileOrAbsent(t *testing.T) {
	needLinux(t)
	if _, err := (Machine{}).scratchMount(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, err := (Machine{}).scratchMount(""); err == nil {
		t.Error("an empty name is not the current folder")
	}
}
