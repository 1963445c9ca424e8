package trial

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// deathGrace is how long the processes of a killed run may take to end. Its
// launcher outlives it just long enough to kill them.
const deathGrace = 10 * time.Second

// awaitPredecessor waits until no process of an earlier part of this run is
// left, which could still write into the scratch folder. A run can be taken up
// again faster than the launcher of a killed one has cleared up.
func awaitPredecessor(scratch string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deathGrace); ; <-tick.C {
		left := processesOf(scratch)
		switch {
		case len(left) == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("processes that an earlier part of this run started are still there (%v); end them first", left)
		}
	}
}

// processesOf lists the processes whose environment is that of a trial or hook
// in the scratch folder. Without /proc it lists none.
func processesOf(scratch string) (pids []string) {
	mark := []byte("\x00ASSAY_ARM_DIR=" + filepath.Join(scratch, "arms") + string(filepath.Separator))
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, mark) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
