// Package peak reads the peak of a process's memory from the Linux kernel, and sets it
// back. It must never know whose process it is, nor what the figure is for.
package peak

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s*(\d+) kB$`)

// Of is the largest resident size, in bytes, that a process has had since it began or
// since its Reset. Unlike what wait reports it does not count the parent, of which a
// child is a copy at first. It returns an error for a process that is not there, and
// on a system that keeps no such figure.
func Of(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("peak of memory: %w", err)
	}
	m := highWater.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("peak of memory: process %d has none; it is ending", pid)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	return kib << 10, err
}

// Reset sets this process's peak back to what it uses now. A kernel may refuse it;
// then the peak is that of all the time before, too.
func Reset() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	return nil
}
