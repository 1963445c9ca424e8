package host

import (
	"encoding/json"
	"fmt"
	"math"
)

// State is what a probe answers. The zero State is Unavailable.
type State string

// The states. Only a limit makes a reading Bad.
const (
	OK          State = "ok"
	Bad         State = "bad"
	Unavailable State = "unavailable"
)

// String is the word for the state; every unknown one is unavailable.
func (s State) String() string {
	if s == OK || s == Bad {
		return string(s)
	}
	return string(Unavailable)
}

// MarshalText writes the word for the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses any other word.
func (s *State) UnmarshalText(b []byte) error {
	switch v := State(b); v {
	case OK, Bad, Unavailable:
		*s = v
		return nil
	}
	return fmt.Errorf("unknown state %q of a probe", b)
}

// Reading is the answer of one probe. The zero Reading is unavailable.
type Reading struct {
	Probe string `json:"probe"`
	State State  `json:"state"`
	// Value is in Unit, and 0 where the probe is unavailable; JSON has no
	// value then.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Detail says why a probe is unavailable, or what stands behind Value.
	Detail string `json:"detail,omitempty"`
}

// Available says whether Value can be judged: the state is ok or bad, and the
// value is a finite number.
func (r Reading) Available() bool {
	return (r.State == OK || r.State == Bad) && !math.IsNaN(r.Value) && !math.IsInf(r.Value, 0)
}

// MarshalJSON writes a reading; one that is not Available has the state
// unavailable and no value, so that nobody takes a zero for a measurement.
func (r Reading) MarshalJSON() ([]byte, error) {
	out := struct {
		Probe  string   `json:"probe"`
		State  State    `json:"state"`
		Value  *float64 `json:"value,omitempty"`
		Unit   string   `json:"unit"`
		Detail string   `json:"detail,omitempty"`
	}{r.Probe, Unavailable, nil, r.Unit, r.Detail}
	if r.Available() {
		out.State, out.Value = r.State, &r.Value
	}
	return json.Marshal(out)
}

// String is the reading as one phrase for people.
func (r Reading) String() string {
	s := r.Probe + " unavailable"
	if r.Available() {
		s = fmt.Sprintf("%s %.4g", r.Probe, r.Value)
		if r.Unit != "" {
			s += " " + r.Unit
		}
	}
	if r.Detail != "" {
		s += " (" + r.Detail + ")"
	}
	return s
}

// probe is a name with its unit. A unit of "" is a yes (1) or no (0).
type probe struct{ name, unit string }

var (
	loadPerCPU      = probe{"load_per_cpu", "per CPU"}
	foreignCPU      = probe{"foreign_cpu", "share"}
	psiCPU          = probe{"psi_cpu", "%"}
	psiIO           = probe{"psi_io", "%"}
	psiMemory       = probe{"psi_memory", "%"}
	steal           = probe{"steal", "%"}
	governor        = probe{"governor", ""}
	turbo           = probe{"turbo", ""}
	cgroupQuota     = probe{"cgroup_quota", "CPUs"}
	memoryAvailable = probe{"memory_available", "GiB"}
	swapUsed        = probe{"swap_used", "GiB"}
	diskFree        = probe{"disk_free", "GiB"}
	scratchTmpfs    = probe{"scratch_tmpfs", ""}
	otherRun        = probe{"other_run", ""}
	thermal         = probe{"thermal", "°C"}
)

func (p probe) is(v float64, detail string) Reading {
	r := Reading{p.name, OK, v, p.unit, detail}
	if !r.Available() {
		return p.unavailable("not a finite number")
	}
	return r
}

func (p probe) unavailable(why string) Reading {
	return Reading{Probe: p.name, State: Unavailable, Unit: p.unit, Detail: why}
}

func flag(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
