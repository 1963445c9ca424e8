package host

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asNobody runs f with the file rights of another user. Only the thread
// changes, so the test goes on as it was.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to be another user")
	}
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
	defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	f()
}

func TestRunLockOfAnotherUser(t *testing.T) {
	dir := filepath.Join(openFolder(t), "tmp")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "lock")
	release, _, err := AcquireRunLock(mine)
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	write(t, closed, "")
	asNobody(t, func() {
		if _, holder, err := AcquireRunLock(mine); !errors.Is(err, ErrBusy) || !strings.Contains(holder, "pid") {
			t.Error(holder, err)
		}
		release()
		if again, _, err := AcquireRunLock(mine); err != nil {
			t.Error("the file of another user is of no use:", err)
		} else {
			again()
		}
		if _, _, err := AcquireRunLock(closed); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), closed) {
			t.Error(err)
		}
	})
}

// openFolder is a temporary folder that every user can walk into.
func openFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Skip(err)
		}
	}
	return dir
}
