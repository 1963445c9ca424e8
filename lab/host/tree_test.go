package host

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// tree makes a fake root. It is made, not kept, because names such as 8:0 may
// not be in a module.
func tree(t testing.TB, files ...map[string]string) Machine {
	t.Helper()
	all := map[string]string{}
	for _, f := range files {
		maps.Copy(all, f)
	}
	root := t.TempDir()
	for name, content := range all {
		write(t, filepath.Join(root, name), content)
	}
	return Machine{Root: root}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantUnavailable(t *testing.T, r Reading) {
	t.Helper()
	if r.State != Unavailable || r.Available() || r.Value != 0 || r.Detail == "" {
		t.Errorf("want unavailable with a reason, have %#v", r)
	}
}

func wantValue(t *testing.T, r Reading, v float64) {
	t.Helper()
	if r.State != OK || r.Value < v-1e-9 || r.Value > v+1e-9 {
		t.Errorf("want %v, have %#v", v, r)
	}
}

// sound is a machine on which everything that Counters reads is in order.
var sound = map[string]string{
	"proc/stat": "cpu  1000 100 200 5000 300 10 20 30 400 50\n" +
		"cpu0 500 50 100 2500 150 5 10 15 200 25\ncpu1 500 50 100 2500 150 5 10 15 200 25\nintr 5 0\nctxt 9\n",
	"proc/loadavg":         "1.50 0.20 0.10 1/85 13932\n",
	"proc/meminfo":         "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\nSwapCached: 0 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
	"proc/pressure/cpu":    "some avg10=1.50 avg60=0.65 avg300=1.34 total=1000\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=77\n",
	"proc/pressure/io":     "some avg10=2.50 avg60=0.65 avg300=1.34 total=2000\n",
	"proc/pressure/memory": "some avg10=3.50 avg60=0.65 avg300=1.34 total=3000\n",
}
