package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
)

// Claim is a run folder that is ours to begin a run in. It is held against
// other processes until Release, or until the Writer it became is closed.
type Claim struct {
	dir   string
	chain *os.File
}

// NewClaim makes and claims a run folder. It must not hold anything but the
// remains of a run that was cut off before its first record.
func NewClaim(dir string) (*Claim, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	// Looked at before anything is put into a folder that may be somebody's
	// own, and again once nobody else can begin a run there.
	if err := vacant(dir); err != nil {
		return nil, err
	}
	chain, err := openLocked(dir, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := vacant(dir); err != nil {
		return nil, errors.Join(err, chain.Close())
	}
	return &Claim{dir, chain}, nil
}

// Release gives up a claim, and removes the folder where it holds nothing. It
// does nothing once the claim has become a Writer.
func (c *Claim) Release() error {
	if c.chain == nil {
		return nil
	}
	if info, err := c.chain.Stat(); err == nil && info.Size() == 0 {
		_ = os.Remove(c.chain.Name())
		_ = os.Remove(c.dir)
	}
	return c.chain.Close()
}

// Create writes the first record.
func (c *Claim) Create(lock *protocol.Lock, p *protocol.Protocol, env *host.Provenance, now time.Time) (*Writer, error) {
	envBytes, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return nil, err
	}
	envBytes = append(envBytes, '\n')
	if err := WriteFile(filepath.Join(c.dir, LockFile), lock.Bytes()); err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(c.dir, EnvironmentFile), envBytes); err != nil {
		return nil, err
	}
	// Half a first record may be left of a run that was cut off.
	if err := c.chain.Truncate(0); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	w := &Writer{run: &Run{Dir: c.dir, Lock: lock, Protocol: p, head: lock.Digest}, chain: c.chain}
	if err := w.openSamples(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(envBytes)
	err = w.Append(Record{Kind: KindBegin, Begin: &Begin{
		Schema: SchemaVersion, Lock: lock.Digest, Environment: hex.EncodeToString(sum[:]), Time: now.UTC(),
	}})
	if err == nil {
		err = errors.Join(w.Sync(), syncDir(c.dir), syncDir(filepath.Dir(c.dir)))
	}
	if err != nil {
		return nil, errors.Join(err, w.samples.Close())
	}
	c.chain = nil
	return w, nil
}

// Create claims a run folder and writes the first record. The writer must be
// closed.
func Create(dir string, lock *protocol.Lock, p *protocol.Protocol, env *host.Provenance, now time.Time) (*Writer, error) {
	c, err := NewClaim(dir)
	if err != nil {
		return nil, err
	}
	w, err := c.Create(lock, p, env, now)
	return w, errors.Join(err, c.Release())
}

// vacant returns an error where a folder holds anything but what a run leaves
// that never got as far as its first record.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	begun := Exists(dir)
	for _, e := range entries {
		if begun || !remains(dir, e) {
			return resumable(dir, "give another with -o, or go on with", fmt.Errorf("run folder %s is not empty", dir))
		}
	}
	return nil
}

func remains(dir string, e fs.DirEntry) bool {
	switch e.Name() {
	case SamplesFile:
		// Samples without a record are what is left of a run that was damaged.
		info, err := e.Info()
		return err == nil && info.Size() == 0
	case ScratchDir:
		// Of that name it may be anybody's, and it is going to be removed.
		entries, err := os.ReadDir(filepath.Join(dir, ScratchDir))
		ours := func(e fs.DirEntry) bool {
			return e.Name() == OriginFile || strings.HasPrefix(e.Name(), "."+OriginFile+"-")
		}
		return err == nil && (has(os.DirFS(filepath.Join(dir, ScratchDir)), OriginFile) || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e) }))
	case LockFile, EnvironmentFile, ObservationsFile:
		return true
	}
	return strings.HasPrefix(e.Name(), "."+LockFile+"-") || strings.HasPrefix(e.Name(), "."+EnvironmentFile+"-")
}
