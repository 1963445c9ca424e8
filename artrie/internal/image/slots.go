package image

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"

	"github.com/assaylab/assay/artrie/fsys"
)

// SlotsName is the base name of the file that holds the manifests. A program that
// knows manifests as files of their own takes it for one that is damaged: it then
// refuses the folder, or, with the log whole, starts from the log alone.
const SlotsName = "checkpoint-0000000000000000"

const (
	// slots is one more than the checkpoints that are kept: while a manifest is
	// written, both of those stay as they are.
	slots = 3
	// slotSize keeps manifests in different blocks of the file system, in bytes.
	slotSize = 4096
)

// Slots is the file of manifests, each written in place over one that is not
// needed. Publish is called by one goroutine at a time.
type Slots struct {
	fs    fsys.FS
	dir   string
	holds [slots]uint64 // the number of the checkpoint in each; 0: none that can be read
	// named is the generation whose file, like the file of slots, is known to have
	// its name durable; 0: none is.
	named uint64
}

func (s *Slots) name() string { return path.Join(s.dir, SlotsName) }

// Manifests reads the manifests in dir, newest first. damage is what cannot be
// read, nil for nothing. err is a *VersionError for a folder in a format that this
// program does not know.
func Manifests(fs fsys.FS, dir string) (s *Slots, found []*Manifest, damage, err error) {
	s = &Slots{fs: fs, dir: dir}
	names, err := fs.List(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	keep := func(m *Manifest, err error) error {
		if d := (*DamageError)(nil); errors.As(err, &d) {
			damage = errors.Join(damage, err)
			return nil
		}
		if err == nil && m != nil {
			found = append(found, m)
		}
		return err
	}
	for _, name := range names {
		if n, ok := ManifestFile(name); ok {
			if err := keep(readFile(fs, dir, n)); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	if slices.Contains(names, SlotsName) {
		f, err := fs.Open(s.name())
		if err != nil {
			return nil, nil, nil, err
		}
		defer f.Close()
		for i := range s.holds {
			m, err := s.read(f, i)
			if err == nil && m != nil {
				s.holds[i] = m.Number
			}
			if err := keep(m, err); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	slices.SortFunc(found, func(a, b *Manifest) int { return cmp.Compare(b.Number, a.Number) })
	return s, found, damage, nil
}

// read is the manifest in slot i; nil if none was ever written there.
func (s *Slots) read(f fsys.File, i int) (*Manifest, error) {
	off := int64(i) * slotSize
	b, err := readAt(f, off, manifestSize)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.name(), err)
	}
	if !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
		return nil, nil
	}
	return decodeManifest(b, manifestVersion, s.name(), off)
}

// Publish makes m the newest checkpoint (K2). The slots of the kept ones, which may be
// nil, stay as they are. After a *SyncError it is not known whether m is there.
func (s *Slots) Publish(m *Manifest, kept ...*Manifest) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	if err = s.publish(f, m, kept); err != nil {
		return errors.Join(err, f.Close())
	}
	_ = f.Close() // what was synced is there, whatever this says
	return nil
}

func (s *Slots) publish(f fsys.File, m *Manifest, kept []*Manifest) error {
	if s.named != m.Gen {
		if err := s.fs.SyncDir(s.dir); err != nil {
			return &SyncError{fmt.Errorf("sync %s: %w", s.dir, err)}
		}
		s.named = m.Gen
	}
	i := slices.IndexFunc(s.holds[:], func(n uint64) bool {
		return !slices.ContainsFunc(kept, func(k *Manifest) bool { return k != nil && k.Number == n })
	})
	s.holds[i] = 0
	if _, err := f.WriteAt(m.encode(), int64(i)*slotSize); err != nil {
		// It may have happened: then the published bytes must not be overwritten.
		return &SyncError{fmt.Errorf("write %s: %w", s.name(), err)}
	}
	if err := f.Sync(); err != nil {
		return &SyncError{fmt.Errorf("sync %s: %w", s.name(), err)}
	}
	s.holds[i] = m.Number
	return nil
}

// open makes sure that all slots have their room on the disk: what can be refused
// for want of room is refused before anything may have been published.
func (s *Slots) open() (fsys.File, error) {
	f, err := s.fs.Open(s.name())
	if errors.Is(err, iofs.ErrNotExist) {
		f, err = s.fs.Create(s.name())
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.name(), err)
	}
	size, err := f.Size()
	if room := slots*slotSize - size; err == nil && room > 0 {
		_, err = f.WriteAt(make([]byte, room), size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make room in %s: %w", s.name(), err), f.Close())
	}
	return f, nil
}
