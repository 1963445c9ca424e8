package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
)

// origin is what a resume must know and the ledger has no business with: where
// on this machine the run was started. It lives in the run folder beside the
// trials' working folder, and goes when the run has ended.
type origin struct {
	Dir     string `json:"dir"`
	Scratch string `json:"scratch,omitempty"` // "" is workDir beside this file, wherever the run folder is now
	Study   string `json:"study,omitempty"`
}

// workDir is the trials' working folder in the run folder. It is apart from the
// origin because the executor removes it before the end of the run is recorded.
const workDir = "work"

// prepare makes the trials' working folder and says where it is. It is a new
// folder of our own in any case, since it is emptied and removed.
func prepare(o Options, plan *Plan) (from origin, err error) {
	from = origin{Study: plan.Study.name()}
	if from.Dir, err = filepath.Abs(plan.Dir); err != nil {
		return from, err
	}
	folder := filepath.Join(o.Out, ledger.ScratchDir)
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
			if from.Scratch != "" {
				err = errors.Join(err, os.Remove(from.Scratch))
			}
		}
	}()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return from, fmt.Errorf("run folder: %w", err)
	}
	if o.Scratch != "" {
		if err := os.MkdirAll(o.Scratch, 0o755); err != nil {
			return from, fmt.Errorf("scratch folder: %w", err)
		}
		made, err := os.MkdirTemp(o.Scratch, "assay-"+filepath.Base(o.Out)+"-")
		if err == nil {
			from.Scratch, err = filepath.Abs(made)
		}
		if err != nil {
			return from, fmt.Errorf("scratch folder: %w", err)
		}
	}
	b, err := json.Marshal(from)
	if err != nil {
		return from, err
	}
	if err := ledger.WriteFile(filepath.Join(folder, ledger.OriginFile), b); err != nil {
		return from, fmt.Errorf("run folder: %w", err)
	}
	if from.Scratch == "" {
		work := filepath.Join(folder, workDir)
		if err := os.Mkdir(work, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return from, fmt.Errorf("scratch folder: %w", err)
		}
		if err := checkScratch(work, plan.Protocol); err != nil {
			return from, err
		}
		from.Scratch = work
		return from, nil
	}
	return from, checkScratch(from.Scratch, plan.Protocol)
}

func readOrigin(dir string) (origin, error) {
	var from origin
	b, err := os.ReadFile(filepath.Join(dir, ledger.ScratchDir, ledger.OriginFile))
	if err == nil {
		err = json.Unmarshal(b, &from)
	}
	if err != nil {
		return from, fmt.Errorf("%s cannot be resumed here: where it was started is not known (%w)", dir, err)
	}
	if from.Scratch == "" {
		from.Scratch = filepath.Join(dir, ledger.ScratchDir, workDir)
	}
	return from, nil
}

func checkScratch(scratch string, p *protocol.Protocol) error {
	if p.Design.Scratch != "disk" {
		return nil
	}
	// It may be gone after a stop; then the folder it was in tells.
	return realDisk(standing(scratch))
}

// standing is the folder, or where it is gone the first above it that is there.
func standing(folder string) string {
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return folder
}

// realDisk refuses a scratch folder that is memory, or that might be.
func realDisk(scratch string) error {
	for _, r := range (host.Machine{}).Static(scratch) {
		if r.Probe == "scratch_tmpfs" {
			switch {
			case !r.Available():
				return fmt.Errorf("the protocol asks for a real disk and the file system of %s cannot be told (%s); give another with --scratch", scratch, r.Detail)
			case r.Value != 0:
				return fmt.Errorf("the protocol asks for a real disk and %s is on %s; give another with --scratch", scratch, r.Detail)
			}
			return nil
		}
	}
	return errors.New("the protocol asks for a real disk and no probe looked at the scratch folder")
}
