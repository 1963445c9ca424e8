package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func stat(name string, parent, user, system, cuser, csystem int) string {
	return fmt.Sprintf("1 (%s) S %d 1 1 0 -1 4194304 100 200 0 0 %d %d %d %d 20 0 1 0 300 1000 10\n", name, parent, user, system, cuser, csystem)
}

var family = map[string]string{
	"proc/10/stat":             stat("run", 1, 1, 2, 3, 4),
	"proc/10/task/10/stat":     "x",
	"proc/10/task/10/children": "11 ",
	"proc/10/task/15/children": "12 \n",
	"proc/11/stat":             stat("a) S 99 (b", 10, 10, 20, 0, 0),
	"proc/11/task/11/stat":     "x",
	"proc/11/task/11/children": "13",
	"proc/12/stat":             stat("c d", 10, 100, 0, 0, 0),
	"proc/12/task/12/stat":     "x",
	"proc/12/task/12/children": "",
	"proc/13/stat":             stat("", 11, 0, 0, 1000, 0),
	"proc/13/task/13/stat":     "x",
	"proc/13/task/13/children": "",
	"proc/20/stat":             stat("stranger", 1, 5000, 5000, 5000, 5000),
	"proc/20/task/20/children": "",
}

func TestOwnCPUOfATree(t *testing.T) {
	const want = 1140 * jiffy
	if d := tree(t, family).OwnCPU(10); d != want {
		t.Errorf("have %v want %v", d, want)
	}
}

func TestOwnCPUWithoutListsOfChildren(t *testing.T) {
	files := map[string]string{}
	for name, content := range family {
		if filepath.Base(name) != "children" {
			files[name] = content
		}
	}
	if d := tree(t, files).OwnCPU(10); d != 1140*jiffy {
		t.Error(d)
	}
}

func TestOwnCPURefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no such process":   {"proc/10/stat": ""},
		"garbage":           {"proc/10/stat": "\x00\xff no bracket"},
		"short":             {"proc/10/stat": "10 (run) S 1 2 3\n"},
		"negative":          {"proc/10/stat": stat("run", 1, -5, 0, 0, 0)},
		"child is hidden":   {"proc/10/task/10/children": "11 77"},
		"garbage child":     {"proc/12/stat": "?"},
		"garbage in a list": {"proc/10/task/10/children": "eleven"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := tree(t, family, files).OwnCPU(10); d >= 0 {
				t.Error(d)
			}
		})
	}
	if d := tree(t, family).OwnCPU(99); d >= 0 {
		t.Error(d)
	}
	if d := tree(t).OwnCPU(1); d >= 0 {
		t.Error(d)
	}
}

func TestOwnCPUOfACircle(t *testing.T) {
	files := map[string]string{"proc/13/task/13/children": "10"}
	if d := tree(t, family, files).OwnCPU(10); d != 1140*jiffy {
		t.Error(d)
	}
}

func TestOwnCPUHasChildrenAliveAndReaped(t *testing.T) {
	real := needLinux(t)
	before := real.OwnCPU(os.Getpid())
	if before < 0 {
		t.Skip("no own CPU time here")
	}
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	alive := before
	for end := time.After(20 * time.Second); alive-before < 50*time.Millisecond; alive = real.OwnCPU(os.Getpid()) {
		select {
		case <-end:
			t.Fatalf("a child that does nothing but compute has added %v in 20 s", alive-before)
		case <-time.After(20 * time.Millisecond):
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	reaped := real.OwnCPU(os.Getpid())
	if alive-before < 50*time.Millisecond || reaped < alive {
		t.Errorf("before %v, alive %v, reaped %v", before, alive, reaped)
	}
}

func BenchmarkOwnCPU(b *testing.B) {
	pid := os.Getpid()
	for b.Loop() {
		(Machine{}).OwnCPU(pid)
	}
}
