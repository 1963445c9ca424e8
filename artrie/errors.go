package artrie

import (
	"errors"
	"fmt"

	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/internal/wal"
)

// Opening.
var (
	// ErrLocked is returned by Open when another process, or this one, has the folder open.
	ErrLocked = errors.New("the folder is open elsewhere")
	// ErrDamaged is returned when bytes on disk are damaged that had been
	// acknowledged. The message names file, offset and what is lost; Salvage saves the rest.
	ErrDamaged = errors.New("damaged")
	// ErrVersion is returned when the folder was written in a format that this program
	// does not know. Nothing in it is changed.
	ErrVersion = errors.New("unknown format")
)

// Reading and writing.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("closed")
	// ErrPoisoned is returned by every write and checkpoint after a sync has failed,
	// with the cause. Writes that were waiting then are unknown: they are not visible
	// and may be there after the next Open. Reads go on.
	ErrPoisoned = errors.New("poisoned by an earlier failure")
	// ErrTooLarge is returned when key and value together exceed MaxRecord.
	ErrTooLarge = errors.New("key and value too large")
)

// MaxRecord is the most that a key and its value may have together, in bytes.
const MaxRecord = wal.MaxPayload

// damaged gives the errors of the layers below the class that callers ask for.
func damaged(err error) error {
	log, img := (*wal.DamageError)(nil), (*image.DamageError)(nil)
	if errors.As(err, &log) || errors.As(err, &img) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if version := (*image.VersionError)(nil); errors.As(err, &version) {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return err
}

// fatal says whether an error of the layers below ends all acknowledging.
func fatal(err error) bool {
	log, img := (*wal.FatalError)(nil), (*image.SyncError)(nil)
	return errors.As(err, &log) || errors.As(err, &img)
}

// poison ends writing. The first cause stays.
func (t *Trie) poison(cause error) error {
	err := fmt.Errorf("%w: %w", ErrPoisoned, cause)
	t.poisoned.CompareAndSwap(nil, &err)
	return *t.poisoned.Load()
}

// writable is nil, ErrClosed or the poison.
func (t *Trie) writable() error {
	if t.closed.Load() {
		return ErrClosed
	}
	if p := t.poisoned.Load(); p != nil {
		return *p
	}
	return nil
}
