package host

import (
	"errors"
	"path/filepath"
)

// errNoScratch keeps an empty name from meaning the current folder.
var errNoScratch = errors.New("no scratch folder is given")

func (m Machine) disk(scratch string) (free, tmpfs Reading) {
	s, err := fileSystem(scratch)
	if err != nil {
		return diskFree.unavailable(err.Error()), scratchTmpfs.unavailable(err.Error())
	}
	name := s.name
	if at, err := m.scratchMount(scratch); err == nil && name == "" {
		name = at.fs
	}
	return diskFree.is(gib(s.free), name), scratchTmpfs.is(flag(s.memory), name)
}

// scratchMount is the mount that a folder, which must exist, is on.
func (m Machine) scratchMount(scratch string) (mount, error) {
	if scratch == "" {
		return mount{}, errNoScratch
	}
	at, err := filepath.Abs(scratch)
	if err != nil {
		return mount{}, err
	}
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return mount{}, err
	}
	all, err := m.mounts()
	if err != nil {
		return mount{}, err
	}
	best, ok := mountOf(all, at)
	if !ok {
		return mount{}, errors.New("the scratch folder is on no mount")
	}
	return best, nil
}
