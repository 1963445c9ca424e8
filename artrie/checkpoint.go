package artrie

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/image"
	"github.com/assaylab/assay/artrie/internal/radix"
)

// Checkpoints; steps and invariants K1 to K8 are in docs/artrie.md, section 6.

// CheckpointStats says what a checkpoint did.
type CheckpointStats struct {
	Full    bool // every block was written
	Skipped bool // nothing had changed
	Blocks  int64
	Bytes   int64 // written to the node file
	Covered uint64
	Elapsed time.Duration
}

// minCompact is the node file below which its dead bytes are not worth a
// compaction, in bytes.
const minCompact = 1 << 20

// Checkpoint makes an image of the tree durable and reclaims the log before it.
func (t *Trie) Checkpoint() (CheckpointStats, error) {
	t.life.RLock()
	defer t.life.RUnlock()
	t.checkpoint.Lock()
	defer t.checkpoint.Unlock()
	var stats CheckpointStats
	if err := t.writable(); err != nil {
		return stats, err
	}
	start := time.Now()
	err := t.publish(&stats)
	if err == nil && !stats.Skipped {
		err = t.reclaim()
	}
	stats.Elapsed = time.Since(start)
	if err != nil {
		err = fmt.Errorf("checkpoint: %w", damaged(err))
		if fatal(err) {
			err = t.poison(err)
		}
		return stats, err
	}
	t.count.checkpoints.Add(1)
	return stats, nil
}

func (t *Trie) publish(stats *CheckpointStats) (err error) {
	nodes := t.nodes.Load()
	stats.Full = nodes == nil || t.opt.Mode == Owned || nodes.Size() > minCompact && t.live.Load() < nodes.Size()/2
	// In this order: the evictor takes the tree's lock inside its own.
	if stats.Full {
		t.evict.Lock()
		defer t.evict.Unlock()
	}
	unlock := func() {}
	if t.opt.Mode == Owned {
		t.tree.RLock()
		unlock = sync.OnceFunc(t.tree.RUnlock)
		defer unlock()
	}
	mark := t.mark.get()        // before the root (C5)
	wasDirty := t.dirty.Swap(0) // before the root (B2)
	defer func() {
		if err != nil {
			t.dirty.Add(wasDirty)
		}
	}()
	v := t.version.Load()
	stats.Covered = v.lsn
	if t.opt.Committer == CAS {
		stats.Covered = mark
	}
	// The watermark may stand still while operations above it are swapped in: the image
	// must have those too, for whoever waits for them to be durable, or for memory (B2).
	if t.last != nil && t.last.Covered == stats.Covered && t.imaged == v.edit && t.opt.Mode != Owned {
		stats.Skipped = true
		return nil
	}
	if t.opt.Durability > Immediate {
		if err := t.log.Sync(); err != nil {
			return err
		}
	}
	next := image.Manifest{Number: t.used.number + 1, Covered: stats.Covered, Keys: v.keys}
	if t.last != nil {
		next.Gen = t.last.Gen
	}
	logBytes := t.log.Bytes()
	givesUp := int64(0) // live bytes of the generation that ends
	if stats.Full {
		t.used.gen++
		next.Gen, givesUp = t.used.gen, t.live.Load()
		if nodes, err = image.CreateNodes(t.fs, t.dir, next.Gen); err != nil {
			return err
		}
	}
	before := nodes.Size()
	p := radix.Packer{Gen: next.Gen, All: stats.Full, Owner: nodes.Owner(), Src: &t.src, Write: nodes.Write}
	if t.opt.MemoryBudget > 0 {
		p.Whole = radix.WholeBlock
	}
	packed := func() {}
	if t.opt.ImageInMemory {
		nodes.Gather()
		packed = func() {
			// From here on edits copy, as after a snapshot: the packer's marks are on
			// nodes that must mean the blocks until it commits. Only this lock's other
			// side looks at the id.
			t.ownedEdit = t.edits.Add(1)
			unlock()
		}
	}
	if err := t.writeImage(&p, v, nodes, &next, stats, givesUp, packed); err != nil {
		p.Abort()
		nodes.Rewind(before)
		return err
	}
	p.Commit()
	// What commits have made dead meanwhile they have subtracted.
	t.live.Add(stats.Bytes - givesUp)
	t.nodes.Store(nodes)
	t.nodeBytes.Store(next.End)
	t.last, t.prev, t.used.number, t.imaged = &next, t.last, next.Number, v.edit
	t.logMark.Store(logBytes)
	return nil
}

// writeImage writes and publishes an image: blocks, sync, manifest (K1, K2). It
// calls packed when it needs the tree no more.
func (t *Trie) writeImage(p *radix.Packer, v *version, nodes *image.Nodes, next *image.Manifest, stats *CheckpointStats, givesUp int64, packed func()) error {
	before := nodes.Size()
	root, err := p.Pack(&v.root)
	if err != nil {
		return err
	}
	packed()
	if err := nodes.Flush(); err != nil {
		return err
	}
	if err := nodes.Sync(); err != nil {
		return &image.SyncError{Err: err}
	}
	stats.Blocks, stats.Bytes = p.Blocks, nodes.Size()-before
	next.Root, next.End, next.Live = root, nodes.Size(), t.live.Load()+stats.Bytes-givesUp
	return t.slots.Publish(next, t.last, t.prev)
}

// reclaim gives up what neither of the two newest checkpoints needs.
func (t *Trie) reclaim() error {
	if err := t.tidy(); err != nil {
		return err
	}
	if t.prev == nil {
		return nil
	}
	before := t.log.Bytes()
	err := t.log.Reclaim(min(t.prev.Covered, t.last.Covered))
	t.logMark.Add(t.log.Bytes() - before)
	return err
}

// tidy removes manifests and node files that the kept checkpoints do not name.
func (t *Trie) tidy() error {
	names, err := t.fs.List(t.dir)
	if err != nil {
		return err
	}
	kept := func(ok func(m *image.Manifest) bool) bool {
		return t.last != nil && ok(t.last) || t.prev != nil && ok(t.prev)
	}
	for _, name := range names {
		gone := name == "checkpoint.tmp"
		if n, ok := image.ManifestFile(name); ok {
			gone = !kept(func(m *image.Manifest) bool { return m.Number == n })
		}
		if gen, ok := image.NodesGen(name); ok {
			gone = !kept(func(m *image.Manifest) bool { return m.Gen == gen })
		}
		if gone {
			if err := t.fs.Remove(path.Join(t.dir, name)); err != nil {
				return fmt.Errorf("remove what no checkpoint needs: %w", err)
			}
		}
	}
	return nil
}

// candidate is a checkpoint that can be read.
type candidate struct {
	manifest *image.Manifest
	nodes    *image.Nodes
	prev     *image.Manifest // the valid one before it, if there is one
	slots    *image.Slots
	used     used
}

// used are the highest numbers that checkpoints and node files in the folder have had.
// None is used again: a manifest that is passed over stays where it is for a while (K6).
type used struct{ number, gen uint64 }

// newest finds the newest checkpoint whose manifest is valid and whose node file
// is whole in length. why says what was wrong with others. With none, the
// candidate has no manifest.
func newest(fs fsys.FS, dir string) (c candidate, why, err error) {
	var found []*image.Manifest
	c.slots, found, why, err = image.Manifests(fs, dir)
	if err != nil {
		return c, why, err
	}
	names, err := fs.List(dir)
	if err != nil {
		return c, why, err
	}
	for _, name := range names {
		n, _ := image.ManifestFile(name)
		gen, _ := image.NodesGen(name)
		c.used = used{max(c.used.number, n), max(c.used.gen, gen)}
	}
	for _, m := range found {
		c.used = used{max(c.used.number, m.Number), max(c.used.gen, m.Gen)}
	}
	for _, m := range found {
		if c.manifest != nil {
			c.prev = m
			break
		}
		nodes, err := image.OpenNodes(fs, dir, m.Gen, m.End)
		if err == nil {
			c.manifest, c.nodes = m, nodes
			continue
		}
		if damage := (*image.DamageError)(nil); !errors.As(err, &damage) {
			return c, why, err
		}
		why = errors.Join(why, err)
	}
	return c, why, nil
}
