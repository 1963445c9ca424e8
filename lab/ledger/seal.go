package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Seal is what closes a run: nothing of it changes any more.
type Seal struct {
	Schema  int               `json:"schema"`
	Records int               `json:"records"`
	Head    string            `json:"head"`  // sum of the last record
	Files   map[string]string `json:"files"` // name to SHA-256
	Sum     string            `json:"sum"`   // SHA-256 of the seal without it, to tell a changed seal from a changed file
}

func (s *Seal) bytes() []byte {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return append(b, '\n')
}

func (s *Seal) sum() string {
	c := *s
	c.Sum = ""
	sum := sha256.Sum256(c.bytes())
	return hex.EncodeToString(sum[:])
}

var sealed = []string{LockFile, EnvironmentFile, ObservationsFile, SamplesFile, ResultsFile, VerdictFile}

// Finish writes what the last two stages made of a run that has ended, and
// seals it. The order (results, seal, verdict) makes a verdict without a seal
// impossible by a crash: where one is found, the seal was taken away.
// Finishing a sealed run again is allowed with the same bytes only; otherwise
// it returns an error that wraps ErrSealed and writes nothing.
func (r *Run) Finish(results, verdict []byte) error {
	made := map[string][]byte{ResultsFile: results, VerdictFile: verdict}
	if r.Sealed {
		for _, name := range []string{ResultsFile, VerdictFile} {
			old, err := r.ReadFile(name)
			if err != nil {
				return err
			}
			if !bytes.Equal(old, made[name]) {
				return fmt.Errorf("%s: %w, and %s would come out differently now", r.Dir, ErrSealed, name)
			}
		}
		return nil
	}
	if !r.Ended() {
		return errors.New("a run that has not ended cannot be sealed")
	}
	s := &Seal{Schema: SchemaVersion, Records: len(r.Records), Head: r.head, Files: map[string]string{}}
	for _, name := range sealed {
		if b, ok := made[name]; ok {
			sum := sha256.Sum256(b)
			s.Files[name] = hex.EncodeToString(sum[:])
			continue
		}
		sum, err := hashFile(r.folder(), name)
		if err != nil {
			return err
		}
		s.Files[name] = sum
	}
	s.Sum = s.sum()
	for _, f := range []struct {
		name string
		b    []byte
	}{{ResultsFile, results}, {SealFile, s.bytes()}, {VerdictFile, verdict}} {
		if err := WriteFile(filepath.Join(r.Dir, f.name), f.b); err != nil {
			return err
		}
	}
	r.Sealed = true
	return nil
}

func (v *verifier) seal() {
	switch {
	case !has(v.files, SealFile):
		if has(v.files, VerdictFile) {
			v.problem(SealFile, 0, "is missing, and the run has a verdict")
		}
		return
	case !has(v.files, VerdictFile) && has(v.files, ReportFile):
		// Finish cannot have been cut off before the verdict: the page is
		// made after it.
		v.problem(VerdictFile, 0, "is missing, and the run has a page")
	}
	b, err := fs.ReadFile(v.files, SealFile)
	if err != nil {
		v.problem(SealFile, 0, "%v", why(err))
		return
	}
	s := &Seal{}
	if err := json.Unmarshal(b, s); err != nil || !bytes.Equal(b, s.bytes()) || s.Sum != s.sum() || len(s.Files) != len(sealed) {
		v.problem(SealFile, 0, "was changed: not what assay wrote")
		return
	}
	if !v.run.Ended() && !v.reported(ObservationsFile) {
		v.problem(ObservationsFile, len(v.run.Records)+1, "the end of the run is missing, and it was sealed with %d lines", s.Records)
	}
	for _, name := range sealed {
		sum, err := v.sums[name], error(nil)
		if sum == "" {
			sum, err = hashFile(v.files, name)
		}
		switch {
		case name == VerdictFile && !v.run.Sealed:
			// Finish was cut off before its last step.
		case v.reported(name):
		case err != nil:
			v.problem(name, 0, "%v", why(err))
		case s.Files[name] != sum:
			v.problem(name, 0, "was changed after the run was sealed")
		}
	}
	if v.reported(ObservationsFile) {
		return
	}
	if s.Records != len(v.run.Records) {
		v.problem(ObservationsFile, len(v.run.Records), "is the last line; the run was sealed with %d", s.Records)
	} else if s.Head != v.run.head {
		v.problem(ObservationsFile, len(v.run.Records), "is not the line the run was sealed with")
	}
}
