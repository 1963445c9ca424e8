// Package screeningwrite is the study that decides by which protocol, if any, the
// statistics of a review project may be kept on the write path: source-only is the
// reference, fold the candidate, transactional is reported.
//
// A trial is one batch: every reviewer of the cell submits once, released together,
// and everything that the batch left is checked before the next one. Only the batch is
// timed. docs/screening-write.md explains the figures.
//
// It knows the subject, the set it runs on and how to tell right from wrong; it must
// never know how the lab judges what it observes.
package screeningwrite

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/assaylab/assay/internal/defect"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
	"github.com/assaylab/assay/screening"
)

//go:embed protocol.yaml
var full []byte

//go:embed quick.yaml
var quick []byte

// Name is what the command line calls the study.
const Name = "screening-write"

// arm is one protocol of saving.
type arm struct {
	path   screening.SavePath
	mode   screening.Mode
	defect defect.Defect // planted by tests; it acts in saves and in the worker
}

func arms() map[string]arm {
	return map[string]arm{
		"source_only":   {path: screening.SourceOnly, mode: screening.ModeOff},
		"fold":          {path: screening.Fold, mode: screening.ModeFold},
		"transactional": {path: screening.Transactional, mode: screening.ModeTransactional},
	}
}

// New is the study, on a set of which each member is a process that member starts, a
// program that calls replset.RunMember; nil is members in this process.
func New(member []string) *flow.Study {
	return newStudy(member, arms(), map[string][]byte{"": full, "quick": quick})
}

func newStudy(member []string, all map[string]arm, protocols map[string][]byte) *flow.Study {
	r := &run{member: member, arms: all}
	s := &flow.Study{
		Name:      Name,
		About:     "by which protocol may a review project's statistics be kept on the write path?",
		Protocols: protocols,
		Arms:      map[string]trial.ArmFunc{},
		Checks:    map[string]trial.CheckFunc{checkBudget: r.budget},
		Begin:     r.begin,
		Skip:      skip,
	}
	for name, a := range all {
		s.Arms[name] = func(ctx context.Context, t *trial.T) error { return r.trial(ctx, t, a) }
	}
	return s
}

// skip leaves out faults that cannot be done to the set.
func skip(settings map[string]string, c protocol.Cell) bool {
	fault := regimes()[c.Level("regime")].fault
	return fault != "" && (settings["members"] == "1" || settings["mongo_uri"] != "")
}

// trial carries out one batch and checks what it left.
func (r *run) trial(ctx context.Context, t *trial.T, a arm) error {
	c, err := parseCell(t.Factors)
	if err != nil {
		return err
	}
	f, err := r.fixture(ctx, t, a, c)
	if err != nil {
		return fmt.Errorf("fixture of %s, %s: %w", t.Cell, t.Arm, err)
	}
	b, err := f.batch(ctx, t)
	if err != nil {
		return err
	}
	if err := f.settle(ctx, b); err != nil {
		return err
	}
	j, err := f.examine(ctx, b)
	if err != nil {
		return err
	}
	for _, res := range j.results() {
		t.Report(res)
	}
	b.record(t, j)
	if wrong := b.unexpected(); len(wrong) > 0 && c.regime.fault == "" {
		return fmt.Errorf("%d submissions ended in a way that no contention explains: %s", len(wrong), strings.Join(wrong[:min(3, len(wrong))], "; "))
	}
	return nil
}
