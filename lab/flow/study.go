// Package flow composes the stages: it freezes protocols with evidence from the
// outside world, runs a schedule into a ledger, and takes a ledger to its
// verdict. It is the rim around the pure stages and holds no rule of its own:
// what to run is the schedule's, what counts is the gate's. It must never know
// what a metric means, nor which verdict would be welcome.
package flow

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Study is a protocol together with the Go functions that it names. A protocol
// whose arms are commands needs none.
type Study struct {
	Name  string // how the command line calls it
	About string // one line

	// Protocols are the protocol files by variant; the one named "" is the
	// default.
	Protocols map[string][]byte

	Arms   map[string]trial.ArmFunc
	Checks map[string]trial.CheckFunc

	// Begin, if not nil, is called before the first trial of a run, and again
	// when a run is resumed; its end is called after the last, also after a
	// failure and after ^C. What arms and checks of shared isolation need in
	// common lives in between, such as a server. An error ends the run.
	Begin func(ctx context.Context, s *Session) (end func(ctx context.Context) error, err error)

	// Skip, if not nil, says which cells cannot run with these settings. A run
	// without them is exploratory.
	Skip func(settings map[string]string, c protocol.Cell) bool
}

// Session is a run as its study's Begin sees it.
type Session struct {
	Protocol *protocol.Protocol
	Settings map[string]string
	Scratch  string            // folder that lives as long as the run is unfinished
	Note     func(text string) // keeps a remark in the ledger; only until Begin returns
}

// Known are the function names that the study's protocols may use.
func (s *Study) Known() *protocol.Known {
	if s == nil {
		return nil
	}
	return &protocol.Known{
		Arms:   slices.Sorted(maps.Keys(s.Arms)),
		Checks: slices.Sorted(maps.Keys(s.Checks)),
	}
}

func (s *Study) funcs() trial.Funcs {
	if s == nil {
		return trial.Funcs{}
	}
	return trial.Funcs{Arms: s.Arms, Checks: s.Checks}
}

func (s *Study) name() string {
	if s == nil {
		return ""
	}
	return s.Name
}

// Plan is a protocol that was read without fault, and where it came from.
type Plan struct {
	Protocol *protocol.Protocol
	Source   string // base name of the file, or the study's name
	Path     string // of the file; "" for one that is built in
	Dir      string // where its commands run
	Study    *Study // nil for a protocol of commands only
}

// ReadFile reads a protocol file. Faults come back as protocol.Faults.
func ReadFile(path string, study *Study) (*Plan, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, faults := protocol.Parse(path, b, study.Known())
	if len(faults) > 0 {
		return nil, faults
	}
	return &Plan{Protocol: p, Source: filepath.Base(path), Path: path, Dir: filepath.Dir(path), Study: study}, nil
}

// ReadStudy reads one of the study's own protocols.
func ReadStudy(study *Study, variant string) (*Plan, error) {
	b, ok := study.Protocols[variant]
	if !ok {
		return nil, fmt.Errorf("study %s has no protocol %q; it has: %s", study.Name, variant, strings.Join(slices.Sorted(maps.Keys(study.Protocols)), ", "))
	}
	source := study.Name
	if variant != "" {
		source += "-" + variant
	}
	// No file has that name; whoever wrote the study knows which one it was made from.
	p, faults := protocol.Parse(source+" (built in)", b, study.Known())
	if len(faults) > 0 {
		return nil, faults
	}
	return &Plan{Protocol: p, Source: source, Dir: ".", Study: study}, nil
}

// LockPath is where the lock of a protocol file stands: exp.yaml is frozen as
// exp.lock.json. It is "" for a protocol that is built in, whose lock stands in
// the run folder only.
func (p *Plan) LockPath() string {
	if p.Path == "" {
		return ""
	}
	return strings.TrimSuffix(p.Path, filepath.Ext(p.Path)) + ".lock.json"
}

// ToolVersion is the version of this program: its module version or, built from
// a work tree, the revision.
func ToolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "devel" {
			v += "-" + s.Value[:min(12, len(s.Value))]
		}
		if s.Key == "vcs.modified" && s.Value == "true" && !strings.Contains(v, "dirty") {
			v += "-dirty"
		}
	}
	return v
}
