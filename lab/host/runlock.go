package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
)

// ErrBusy says that another process holds the run lock.
var ErrBusy = errors.New("another assay run is active on this machine")

// AcquireRunLock makes this the one run on the machine: two at once would
// measure each other. path is the same for every user, such as assay.lock in
// os.TempDir(). The lock dies with the process; the file stays. Where it is
// held already, err is ErrBusy and holder says by whom and since when. Any
// other error says why the file cannot be used. release is never nil and may
// be called twice.
func AcquireRunLock(path string) (release func(), holder string, err error) {
	// A probe holds the lock for some microseconds, and whoever has just won
	// it has not written his name yet.
	const looks, pause = 10, 5 * time.Millisecond
	for look := 1; ; look++ {
		f, err := openLock(path)
		if err != nil {
			return func() {}, "", fmt.Errorf("run lock: %w", err)
		}
		if release, err = take(f, path); err == nil {
			return release, "", nil
		}
		if !errors.Is(err, ErrBusy) && !errors.Is(err, errReplaced) {
			f.Close()
			return func() {}, "", fmt.Errorf("run lock: %w", err)
		}
		holder = holderOf(f)
		f.Close()
		if look == looks {
			return func() {}, holder, ErrBusy
		}
		time.Sleep(pause)
	}
}

// openLock trusts nothing it finds: the folder is open to all users, and one
// of them may have left a link to a file of ours, or a pipe.
func openLock(path string) (*os.File, error) {
	const flags = os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	var f *os.File
	var err error
	for range 3 {
		// Without O_CREATE first: kernels refuse it for a file of another
		// user in a sticky folder, however open its mode.
		if f, err = os.OpenFile(path, flags, 0); !errors.Is(err, os.ErrNotExist) {
			break
		}
		f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			// The umask has closed it for others.
			err = f.Chmod(0o666)
		}
		if !errors.Is(err, os.ErrExist) {
			break
		}
	}
	if err == nil {
		err = plain(f)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return f, nil
}

func plain(f *os.File) error {
	i, err := f.Stat()
	if err != nil {
		return err
	}
	if s, ok := i.Sys().(*syscall.Stat_t); !i.Mode().IsRegular() || !ok || s.Nlink > 1 {
		return fmt.Errorf("%s is no plain file", f.Name())
	}
	return nil
}

var errReplaced = errors.New("the lock file was replaced")

func flock(f *os.File, how int) error {
	_, err := retry(func() (int, error) { return 0, syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB) })
	if err == syscall.EWOULDBLOCK {
		return ErrBusy
	}
	return os.NewSyscallError("flock", err)
}

func take(f *os.File, path string) (release func(), err error) {
	if err := flock(f, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	// A cleaner of temporary files may have removed the name in between; a
	// lock on a nameless file keeps nobody out.
	here, err := f.Stat()
	if err != nil {
		return nil, err
	}
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(here, there) {
		return nil, errReplaced
	}
	name := fmt.Sprintf("pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := f.WriteAt([]byte(name), 0); err != nil {
		return nil, err
	}
	ours.add(here)
	return sync.OnceFunc(func() {
		ours.remove(here)
		f.Truncate(0)
		f.Close()
	}), nil
}

// holderOf is for people. Any user can write the file, so it is bounded and
// has no control characters.
func holderOf(f *os.File) string {
	b := make([]byte, 120)
	n, _ := f.ReadAt(b, 0)
	s := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, string(b[:n])))
	if s == "" {
		return "a process that left no name"
	}
	return s
}

// ours are the locks of this process: the lock itself cannot tell one's own
// from another's.
var ours lockSet

type lockSet struct {
	sync.Mutex
	files []os.FileInfo
}

func (s *lockSet) add(i os.FileInfo) {
	s.Lock()
	defer s.Unlock()
	s.files = append(s.files, i)
}

func (s *lockSet) remove(i os.FileInfo) {
	s.Lock()
	defer s.Unlock()
	for k, f := range s.files {
		if os.SameFile(f, i) {
			s.files = append(s.files[:k], s.files[k+1:]...)
			return
		}
	}
}

func (s *lockSet) has(i os.FileInfo) bool {
	s.Lock()
	defer s.Unlock()
	for _, f := range s.files {
		if os.SameFile(f, i) {
			return true
		}
	}
	return false
}

// otherHolds says whether a process other than this one holds the lock. It
// asks for a shared lock, so that two that ask do not take each other for a
// run.
func otherHolds(path string) (held bool, holder string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, "", nil
	}
	if err != nil {
		return false, "", err
	}
	defer f.Close()
	if err := plain(f); err != nil {
		return false, "", err
	}
	i, err := f.Stat()
	if err != nil {
		return false, "", err
	}
	if ours.has(i) {
		return false, "this run holds it", nil
	}
	switch err := flock(f, syscall.LOCK_SH); {
	case err == nil:
		return false, "", nil
	case errors.Is(err, ErrBusy):
		return true, holderOf(f), nil
	default:
		return false, "", err
	}
}
