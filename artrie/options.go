package artrie

import (
	"errors"
	"fmt"
	"time"

	"github.com/assaylab/assay/artrie/fsys"
)

// Mode is how the tree is shared. The format on disk does not depend on it.
type Mode int

const (
	// Overlay: immutable nodes, one atomic root. Readers, snapshots and checkpoints
	// lock nothing and block nobody.
	Overlay Mode = iota
	// Owned: one mutable tree under a read-write lock. A checkpoint writes the whole
	// tree and shuts writers out until it is durable.
	Owned
)

// Committer is who applies a write to an overlay.
type Committer int

const (
	// Batch: the leader of a group of writers applies it as one edit.
	Batch Committer = iota
	// CAS: each writer swaps the root itself and tries again when it lost.
	CAS
)

// Durability is what a write waits for.
type Durability int

const (
	// Group waits for a sync that concurrent writers share.
	Group Durability = iota
	// Immediate waits for a sync of its own.
	Immediate
	// Periodic waits for the write, not for the sync: a power cut loses at most what
	// was acknowledged in the last Options.SyncEvery and during one sync.
	Periodic
	// None never syncs but in Checkpoint and Close. A power cut may lose everything
	// since; what survives is a prefix of what was acknowledged.
	None
)

func (m Mode) String() string { return name(int(m), "overlay", "owned") }

func (c Committer) String() string { return name(int(c), "batch", "cas") }

func (d Durability) String() string { return name(int(d), "group", "immediate", "periodic", "none") }

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return names[i]
}

// Options for Open. The zero value is good.
type Options struct {
	Mode       Mode
	Committer  Committer // overlay only
	Durability Durability

	// ImageInMemory has a checkpoint of an owned store shut writers out only while
	// it makes the image in memory, and write the image after that. It costs
	// memory for a second copy of the tree, as large as on disk.
	ImageInMemory bool

	// MemoryBudget bounds the nodes kept in memory, in bytes; cold subtrees that are
	// on disk leave and come back on the next touch. Garbage and snapshots are not
	// in it: set GOMEMLIMIT for those. 0: no bound.
	MemoryBudget int64
	// SyncEvery is the loss window of Periodic. 0: 10 ms.
	SyncEvery time.Duration
	// SegmentBytes is the size of a log file. 0: 16 MiB.
	SegmentBytes int64
	// CheckpointBytes starts a checkpoint in the background when the log has grown
	// by so many bytes. 0: 64 MiB. Negative: never, but for memory.
	CheckpointBytes int64
	// FS is the file system. nil: the machine's.
	FS fsys.FS
}

const minSegment = 4 << 10

func (o *Options) complete() (Options, error) {
	c := Options{}
	if o != nil {
		c = *o
	}
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	set((*int64)(&c.SyncEvery), int64(10*time.Millisecond))
	set(&c.SegmentBytes, 16<<20)
	set(&c.CheckpointBytes, 64<<20)
	if c.FS == nil {
		c.FS = fsys.OS()
	}
	switch {
	case c.Mode != Overlay && c.Mode != Owned, c.Committer != Batch && c.Committer != CAS,
		c.Durability < Group || c.Durability > None:
		return c, fmt.Errorf("options: mode %v, committer %v, durability %v", c.Mode, c.Committer, c.Durability)
	case c.Mode == Owned && c.Committer == CAS:
		return c, errors.New("options: an owned tree has no root to swap; Committer CAS needs Mode Overlay")
	case c.ImageInMemory && c.Mode != Owned:
		return c, errors.New("options: ImageInMemory is for Mode Owned; an overlay's checkpoint shuts nobody out")
	case c.MemoryBudget < 0 || c.SyncEvery < 0:
		return c, errors.New("options: MemoryBudget and SyncEvery must not be negative")
	case c.SegmentBytes < minSegment || c.SegmentBytes%8 != 0:
		return c, fmt.Errorf("options: SegmentBytes must be at least %d and a multiple of 8", minSegment)
	}
	return c, nil
}
