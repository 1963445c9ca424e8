package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/internal/spawn"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// versionTimeout bounds an arm's version command.
const versionTimeout = 30 * time.Second

// versionLimit is how much of what a version command prints is kept.
const versionLimit = 400

// madeBySetup marks the program of a receipt that did not exist at the freeze.
const madeBySetup = " (made by setup)"

// ErrChanged is returned when what is about to run is not what was frozen.
var ErrChanged = errors.New("not what was frozen")

// evidence gathers what only the outside world knows: what each arm's program
// is, which commit a revision means, and what the inputs contain. It returns an
// error for what cannot exist at the run either.
func evidence(ctx context.Context, plan *Plan) (protocol.Evidence, error) {
	e := protocol.Evidence{Tool: ToolVersion(), Now: time.Now(), Source: plan.Source}
	var errs []error
	for i := range plan.Protocol.Arms {
		r, err := receipt(ctx, plan, &plan.Protocol.Arms[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("arm %s: %w", plan.Protocol.Arms[i].Name, err))
		}
		e.Receipts = append(e.Receipts, r)
	}
	errs = append(errs, judges(plan)...)
	for _, in := range plan.Protocol.Inputs {
		f, err := inputFile(plan.Dir, in)
		if err != nil {
			errs = append(errs, fmt.Errorf("input %s: %w", in, err))
		}
		e.Inputs = append(e.Inputs, f)
	}
	return e, errors.Join(errs...)
}

// judges looks for the programs that check commands name, because a check of
// scope cell or run would miss its own only after hours. A set-up may make them.
func judges(plan *Plan) []error {
	if slices.ContainsFunc(plan.Protocol.Arms, func(a protocol.Arm) bool { return a.Setup != "" || a.Rev != "" }) {
		return nil
	}
	var errs []error
	for _, c := range plan.Protocol.Checks {
		if len(c.Command) == 0 || strings.Contains(c.Command[0], "${") {
			continue
		}
		if err := lookForJudge(plan, &c); err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w; install it, or correct command", c.Name, err))
		}
	}
	return errs
}

// lookForJudge looks where the check will run: one of scope trial where its
// arms do, with their environment.
func lookForJudge(plan *Plan, c *protocol.Check) error {
	if c.Scope != protocol.ScopeTrial {
		_, err := spawn.Look(c.Command[0], trial.ArmEnv(nil), plan.Dir)
		return err
	}
	for i := range plan.Protocol.Arms {
		a := &plan.Protocol.Arms[i]
		if len(c.Arms) > 0 && !slices.Contains(c.Arms, a.Name) {
			continue
		}
		if _, err := spawn.Look(c.Command[0], trial.ArmEnv(a), filepath.Join(plan.Dir, a.Dir)); err != nil {
			return err
		}
	}
	return nil
}

func inputFile(dir, name string) (protocol.File, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return protocol.File{Path: name}, err
	}
	if !info.Mode().IsRegular() {
		return protocol.File{Path: name}, errors.New("not a regular file")
	}
	sum, err := host.FileSHA256(path)
	return protocol.File{Path: name, SHA256: sum, Bytes: info.Size()}, err
}

func receipt(ctx context.Context, plan *Plan, a *protocol.Arm) (protocol.Receipt, error) {
	r := protocol.Receipt{Arm: a.Name}
	dir := filepath.Join(plan.Dir, a.Dir)
	if a.Rev != "" {
		commit, err := trial.Git(ctx, plan.Dir, "rev-parse", "--verify", "--quiet", a.Rev+"^{commit}")
		if err != nil {
			return r, fmt.Errorf("git knows no revision %q here (is %s in a repository that has it?)", a.Rev, plan.Dir)
		}
		r.Rev = commit
		// The arm's tree is a clean check-out; what is dirty is the tree the
		// author has before his eyes, which he may believe he is measuring.
		r.Dirty = a.Rev == "HEAD" && host.Git(plan.Dir).Dirty
	}
	switch {
	case a.Func != "":
		self, err := os.Executable()
		if err != nil {
			return r, err
		}
		r.Program = filepath.Base(self)
		if r.SHA256, err = host.FileSHA256(self); err != nil {
			return r, err
		}
	case a.Rev != "" && len(a.Command) > 0 && strings.Contains(a.Command[0], "/") && !filepath.IsAbs(a.Command[0]):
		// What has that name in the author's tree is another file; the
		// revision says which one is meant.
		r.Program = a.Command[0] + " (of the revision)"
	case len(a.Command) > 0 && !strings.Contains(a.Command[0], "${"):
		path, err := spawn.Look(a.Command[0], trial.ArmEnv(a), dir)
		switch {
		case err == nil:
			r.Program = filepath.Base(path)
			if r.SHA256, err = host.FileSHA256(path); err != nil {
				return r, err
			}
		case errors.Is(err, fs.ErrNotExist) && (a.Setup != "" || a.Rev != ""):
			r.Program = a.Command[0] + madeBySetup
		default:
			return r, fmt.Errorf("%w; install it, or correct command", err)
		}
	}
	if a.Version != "" {
		v, err := version(ctx, plan, a, dir)
		if err != nil {
			return r, err
		}
		r.Version = v
	}
	return r, nil
}

// version runs the arm's version command and returns the first of what it
// printed.
func version(ctx context.Context, plan *Plan, a *protocol.Arm, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", a.Version)
	cmd.Dir = dir
	if a.Rev != "" {
		cmd.Dir = plan.Dir
	}
	cmd.Env = trial.ArmEnv(a)
	said := &head{}
	cmd.Stdout, cmd.Stderr = said, said
	// It may leave something behind that holds its output open.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	v := strings.TrimSpace(strings.ToValidUTF8(string(said.kept), "?"))
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("version command %q: %w: %s", a.Version, err, v)
	}
	return strings.ToValidUTF8(v[:min(len(v), versionLimit)], ""), nil
}

// head keeps the first of what is written to it.
type head struct{ kept []byte }

func (h *head) Write(b []byte) (int, error) {
	h.kept = append(h.kept, b[:min(len(b), 2*versionLimit-len(h.kept))]...)
	return len(b), nil
}

// Freeze makes a lock of the plan without writing it anywhere. exploratory, if
// not empty, says why the run will decide nothing; then a plan that cannot
// decide is not refused.
func Freeze(ctx context.Context, plan *Plan, exploratory string) (*protocol.Lock, error) {
	e, err := evidence(ctx, plan)
	if err != nil {
		return nil, err
	}
	e.Exploratory = exploratory
	return protocol.Freeze(plan.Protocol, e)
}

// FreezeFile freezes the plan and writes the lock beside the protocol file. It
// returns an error that wraps ErrChanged where there is a lock already, unless
// that lock is of the very same protocol, which is returned with fresh false.
func FreezeFile(ctx context.Context, plan *Plan) (lock *protocol.Lock, fresh bool, err error) {
	old, err := ReadLockFile(plan.LockPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, false, err
	case bytes.Equal(old.Protocol, plan.Protocol.Canonical()):
		return old, false, nil
	default:
		return nil, false, amendable(plan, fmt.Errorf("%s is %w: it changed after %s was written (%s)", plan.Path, ErrChanged, plan.LockPath(), old.Frozen.Format(time.DateOnly)))
	}
	lock, err = Freeze(ctx, plan, "")
	if err != nil {
		return nil, false, err
	}
	return lock, true, ledger.WriteFile(plan.LockPath(), lock.Bytes())
}

// AmendFile freezes a changed plan as the next version, keeping the lock it
// departs from beside it as exp.lock.v1.json.
func AmendFile(ctx context.Context, plan *Plan, reason string) (*protocol.Lock, error) {
	path := plan.LockPath()
	old, err := ReadLockFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s to amend; freeze first", path)
	}
	if err != nil {
		return nil, err
	}
	e, err := evidence(ctx, plan)
	if err != nil {
		return nil, err
	}
	lock, err := protocol.Amend(old, plan.Protocol, e, reason)
	if err != nil {
		return nil, err
	}
	kept := strings.TrimSuffix(path, ".json") + fmt.Sprintf(".v%d.json", old.Version)
	if err := ledger.WriteFile(kept, old.Bytes()); err != nil {
		return nil, err
	}
	return lock, ledger.WriteFile(path, lock.Bytes())
}

// ReadLockFile reads a lock. It returns an error that wraps protocol.ErrLock
// where it was changed.
func ReadLockFile(path string) (*protocol.Lock, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lock, _, err := protocol.ReadLock(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return lock, nil
}

// stillTrue checks that protocol, programs and inputs are what the lock says.
func stillTrue(ctx context.Context, plan *Plan, lock *protocol.Lock) error {
	if !bytes.Equal(plan.Protocol.Canonical(), lock.Protocol) {
		return fmt.Errorf("the protocol is %w", ErrChanged)
	}
	now, err := evidence(ctx, plan)
	if err != nil {
		return err
	}
	var errs []error
	for i, r := range now.Receipts {
		if i >= len(lock.Receipts) || lock.Receipts[i].Arm != r.Arm {
			return fmt.Errorf("lock and protocol name different arms: %w", ErrChanged)
		}
		old := lock.Receipts[i]
		if strings.HasSuffix(old.Program, madeBySetup) {
			// Made since, by an earlier part of this run.
			r.SHA256 = ""
		}
		if old.SHA256 != r.SHA256 || old.Version != r.Version || old.Rev != r.Rev {
			errs = append(errs, fmt.Errorf("arm %s is %w: %s", r.Arm, ErrChanged, describeReceipt(old, r)))
		}
	}
	for i, f := range now.Inputs {
		if i >= len(lock.Inputs) || lock.Inputs[i] != f {
			errs = append(errs, fmt.Errorf("input %s is %w: its content differs", f.Path, ErrChanged))
		}
	}
	if len(errs) > 0 {
		return amendable(plan, errors.Join(errs...))
	}
	return nil
}

// amendable is an error about something that is not what it was at the freeze.
func amendable(plan *Plan, err error) error {
	return &protocol.RemedyError{Err: err, What: "put it back, or record the change with", Verb: `freeze --amend "reason" ` + plan.Path}
}

func describeReceipt(old, now protocol.Receipt) string {
	switch {
	case old.Rev != now.Rev:
		return fmt.Sprintf("its revision was %.12s and is %.12s", old.Rev, now.Rev)
	case old.SHA256 != now.SHA256:
		return fmt.Sprintf("%s was %.12s and is %.12s", now.Program, old.SHA256, now.SHA256)
	default:
		return fmt.Sprintf("its version was %q and is %q", old.Version, now.Version)
	}
}
