package replset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrInUse is wrapped by New's error when another set runs on the folder, of this
// process or another one.
var ErrInUse = errors.New("another set runs on it; end that one or choose another folder")

// identity is what the folder of a set says about it, in set.json. Each member's log
// knows how many members there are; opened as another set it would wait for ever for
// votes of members that do not exist.
type identity struct {
	Name    string
	Members int
}

// openFolder takes the folder of a set for this process alone until the returned
// value is closed.
func openFolder(dir string, own identity) (io.Closer, error) {
	fail := func(err error) (io.Closer, error) { return nil, fmt.Errorf("replset: the folder %s: %w", dir, err) }
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(err)
	}
	lock, err := vfs.Default.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return fail(fmt.Errorf("%w (%w)", ErrInUse, err))
	}
	if err := own.agree(filepath.Join(dir, "set.json")); err != nil {
		return fail(errors.Join(err, lock.Close()))
	}
	return lock, nil
}

// agree checks what the file says, or writes it.
func (own identity) agree(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if b, err = json.Marshal(own); err != nil {
			return err
		}
		return os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	var was identity
	if err := json.Unmarshal(b, &was); err != nil {
		return fmt.Errorf("%s does not say which set it is of: %w", path, err)
	}
	if was != own {
		return fmt.Errorf("it holds the set %q of %d members and cannot be opened as %q of %d", was.Name, was.Members, own.Name, own.Members)
	}
	return nil
}
