//go:build !linux

package host

import "errors"

type space struct {
	name   string
	free   uint64
	memory bool
}

func fileSystem(string) (space, error) { return space{}, errors.ErrUnsupported }
