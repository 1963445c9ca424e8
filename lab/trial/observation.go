// Package trial turns a frozen protocol into trials: it lays out the schedule
// and executes one trial at a time, as a command, as a Go function in a process
// of its own, or as a Go function in the harness.
//
// It yields observations and must never know what they mean: not which arm
// is the reference, not what a metric is compared with, not whether a result
// is good.
package trial

import (
	"time"

	"github.com/assaylab/assay/lab/check"
)

// Status says how a trial ended.
type Status string

// The ways a trial can end. All but StatusOK are kept and counted, and leave
// the trial without values.
const (
	StatusOK      Status = "ok"
	StatusFailed  Status = "failed"  // exit status not among the arm's ok_exit, a signal, or an error returned
	StatusTimeout Status = "timeout" // killed with its process group
	StatusNoStart Status = "no-start"
	StatusPrepare Status = "prepare-failed"
	StatusOutput  Status = "output-limit" // printed more than MaxOutput; killed
)

// Observation is what one trial yields.
type Observation struct {
	Cell   string `json:"cell"`
	Round  int    `json:"round"`
	Warmup bool   `json:"warmup,omitempty"`
	Slot   int    `json:"slot"`
	Arm    string `json:"arm"`
	Seed   uint64 `json:"seed"`

	Start  time.Time `json:"start"` // wall clock; for reading, never for arithmetic
	Status Status    `json:"status"`
	Exit   int       `json:"exit"` // -1 where a signal ended it or it never started
	Signal string    `json:"signal,omitempty"`
	Usage  Usage     `json:"usage"`

	Values  map[string]float64 `json:"values,omitempty"`  // scalars the arm reported, by key
	Bench   map[string]float64 `json:"bench,omitempty"`   // Go benchmark figures, "Name unit" to value
	Samples []SampleRef        `json:"samples,omitempty"` // where bulk samples stand in the ledger
	Checks  []check.Result     `json:"checks,omitempty"`  // trial-scope results
	Garbled bool               `json:"garbled,omitempty"` // part of what the arm reported cannot be read, so that it passes no check
	Notes   []string           `json:"notes,omitempty"`   // what went wrong, what the arm said

	Profiles []Profile `json:"profiles,omitempty"` // where they were asked for
	Stderr   string    `json:"stderr,omitempty"`   // last lines, of a trial that was not ok

	// Bulk are the samples themselves, in nanoseconds or the arm's own unit, by
	// name. The ledger stores them and leaves a SampleRef.
	Bulk map[string][]int64 `json:"-"`
}

// Usage is what the operating system says the trial used.
type Usage struct {
	Wall       time.Duration `json:"wall_ns"` // start of the process to its end; for functions, of the timed region
	User       time.Duration `json:"user_ns"`
	System     time.Duration `json:"system_ns"`
	PeakMemory int64         `json:"peak_memory_bytes,omitempty"` // whole process tree; 0 where it is not the trial's own
	Switches   int64         `json:"context_switches,omitempty"`
	Faults     int64         `json:"major_faults,omitempty"`
}

// SampleRef is where the ledger keeps samples.
type SampleRef struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // bytes
	Count  int    `json:"count"`
	SHA256 string `json:"sha256"`
}
