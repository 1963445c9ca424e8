package lockfreeflip

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// resetPeak sets the process's peak memory back to what it uses now, so that
// the peak of a round is not that of laying its content down. The kernel offers
// it for a process of one's own; where it refuses, the trial fails, because a
// figure that is sometimes another thing is worse than none.
func resetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	return nil
}

// peakMemory is the largest resident size since resetPeak, in bytes.
func peakMemory() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
