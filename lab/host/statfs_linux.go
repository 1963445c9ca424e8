package host

import (
	"os"
	"syscall"
)

// space is a file system as the kernel describes it.
type space struct {
	name   string // "" where only its mount can tell
	free   uint64 // bytes that an ordinary user may still write
	memory bool
}

func fileSystem(dir string) (s space, err error) {
	if dir == "" {
		return s, errNoScratch
	}
	var v syscall.Statfs_t
	if _, err := retry(func() (int, error) { return 0, syscall.Statfs(dir, &v) }); err != nil {
		// The path is left out: it may be in a report that travels.
		return s, os.NewSyscallError("statfs of the scratch folder", err)
	}
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	switch uint32(v.Type) {
	case tmpfs:
		s.name, s.memory = "tmpfs", true
	case ramfs:
		s.name, s.memory = "ramfs", true
	}
	unit := v.Frsize
	if unit == 0 {
		unit = v.Bsize
	}
	s.free = v.Bavail * uint64(unit)
	return s, nil
}
