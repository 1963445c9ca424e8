package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holdEnv makes the test binary a second run that holds the lock until its
// input ends.
const holdEnv = "HOST_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if _, holder, err := AcquireRunLock(path); err != nil {
			fmt.Println(holder, err)
			os.Exit(1)
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold(t *testing.T, path string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { cmd.Process.Kill(); cmd.Wait(); in.Close() }
	t.Cleanup(kill)
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line)
	}
	return cmd.Process.Pid, kill
}

func TestRunLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	m := Machine{LockPath: path}
	wantValue(t, m.otherRun(), 0)
	release, holder, err := AcquireRunLock(path)
	if err != nil || holder != "" {
		t.Fatal(holder, err)
	}
	wantValue(t, m.otherRun(), 0)
	if _, holder, err := AcquireRunLock(path); !errors.Is(err, ErrBusy) || !strings.Contains(holder, fmt.Sprint("pid ", os.Getpid(), " since 20")) {
		t.Error(holder, err)
	}
	release()
	release()
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o666 || i.Size() != 0 {
		t.Error(i, err)
	}
	release, _, err = AcquireRunLock(path)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestRunLockOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	pid, kill := hold(t, path)
	want := fmt.Sprint("pid ", pid, " since ")
	release, holder, err := AcquireRunLock(path)
	if !errors.Is(err, ErrBusy) || !strings.HasPrefix(holder, want) {
		t.Error(holder, err)
	}
	release()
	r := Machine{LockPath: path}.otherRun()
	wantValue(t, r, 1)
	if !strings.HasPrefix(r.Detail, want) {
		t.Error(r.Detail)
	}
	kill()
	wantValue(t, Machine{LockPath: path}.otherRun(), 0)
	release, _, err = AcquireRunLock(path)
	if err != nil {
		t.Fatal("the lock outlived its process:", err)
	}
	release()
}

func TestRunLockOutlastsAProbe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	write(t, path, "")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := flock(f, syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { f.Close() })
	release, _, err := AcquireRunLock(path)
	if err != nil {
		t.Fatal("a probe passed for a run:", err)
	}
	release()
}

func TestRunLockRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("victim"), "precious")
	os.Symlink(at("victim"), at("symlink"))
	os.Symlink(at("nowhere"), at("dangling"))
	os.Link(at("victim"), at("hardlink"))
	os.Mkdir(at("folder"), 0o755)
	syscall.Mkfifo(at("pipe"), 0o666)
	for _, name := range []string{"symlink", "dangling", "hardlink", "folder", "pipe", "no/such/folder"} {
		release, _, err := AcquireRunLock(at(name))
		if err == nil || errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		release()
		if r := (Machine{LockPath: at(name)}).otherRun(); name != "no/such/folder" {
			wantUnavailable(t, r)
		}
	}
	if b, _ := os.ReadFile(at("victim")); string(b) != "precious" {
		t.Errorf("a file of someone else has %q", b)
	}
	if i, _ := os.Stat(at("victim")); i.Mode().Perm() != 0o644 {
		t.Error(i.Mode())
	}
	if _, err := os.Stat(at("nowhere")); err == nil {
		t.Error("a file was made through a link")
	}
	wantUnavailable(t, Machine{}.otherRun())
}

func TestHolderIsHarmless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	write(t, path, "\x1b[31mpid 1\n\x00"+strings.Repeat("x", 5000))
	f, _ := os.Open(path)
	defer f.Close()
	if s := holderOf(f); len(s) > 120 || strings.ContainsAny(s, "\x1b\x00\n") {
		t.Errorf("%q", s)
	}
}
