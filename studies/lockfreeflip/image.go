package lockfreeflip

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/assaylab/assay/artrie"
	"github.com/assaylab/assay/artrie/fsys"
)

// segmentBytes is the size of a log file in every store of the study. A round of
// the protocols' size fills less than half of one, so that none is prepared while
// it is timed.
const segmentBytes = 4 << 20

// start is the content that a trial begins with.
type start struct {
	Keys, Cold int
	Set        fingerprint
	Digest     string // SHA-256 over names and contents of the files
}

// number is the digest as a value of the ledger, which the check same_start
// compares: its first 48 bits, exact in a float.
func (s *start) number() float64 {
	if s.Digest == "" {
		return 0
	}
	n, err := strconv.ParseUint(s.Digest[:12], 16, 64)
	if err != nil {
		return -1
	}
	return float64(n)
}

// layDown fills dir with a store of so many start keys and cold keys. It is
// made once in the arm's own folder, by the same single writer for every arm,
// so that the files are the same byte for byte, and copied for each trial; a
// copy that does not have the digest of the original is an error. Linking is
// rejected: the store writes into its files in place, and the next trial would
// begin with this one's end.
func layDown(armDir, dir string, keys, cold int) (*start, error) {
	if keys == 0 && cold == 0 {
		return &start{}, os.MkdirAll(dir, 0o755)
	}
	image := filepath.Join(armDir, fmt.Sprintf("start-%d-%d", keys, cold))
	b, err := os.ReadFile(filepath.Join(image, "start.json"))
	if errors.Is(err, iofs.ErrNotExist) {
		if err = makeImage(image, keys, cold); err != nil {
			return nil, fmt.Errorf("make the start content: %w", err)
		}
		b, err = os.ReadFile(filepath.Join(image, "start.json"))
	}
	if err != nil {
		return nil, err
	}
	var s start
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", image, err)
	}
	digest, err := copyStore(filepath.Join(image, "store"), dir)
	if err != nil {
		return nil, err
	}
	if digest != s.Digest {
		return nil, fmt.Errorf("the copy of %s has digest %.12s and not %.12s: the start content was changed", image, digest, s.Digest)
	}
	return &s, nil
}

// makeImage makes the content beside its place and moves it there when it is whole.
func makeImage(image string, keys, cold int) error {
	tmp := image + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	store := filepath.Join(tmp, "store")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	s := start{Keys: keys, Cold: cold}
	t, err := artrie.Open(store, &artrie.Options{Durability: artrie.None, SegmentBytes: segmentBytes, CheckpointBytes: -1})
	if err != nil {
		return err
	}
	put := func(key string, val []byte) error {
		s.Set.add(key, val)
		return t.Put(key, val)
	}
	for i := range keys {
		if err := put(startKey(i), nil); err != nil {
			return errors.Join(err, t.Close())
		}
	}
	for i := range cold {
		if err := put(coldKey(i), coldValue(i)); err != nil {
			return errors.Join(err, t.Close())
		}
	}
	_, err = t.Checkpoint()
	if err == nil {
		// With a second checkpoint the log before the first is given up. The same
		// key again and again moves the log into the first half of a segment, so
		// that a round's writes fit behind it.
		err = put(startKey(keys), nil)
		for err == nil && t.Stats().LogBytes%segmentBytes > segmentBytes/2 {
			err = t.Put(startKey(keys), nil)
		}
		if err == nil {
			_, err = t.Checkpoint()
		}
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	if s.Digest, err = copyStore(store, ""); err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "start.json"), b, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, image)
}

// copyStore copies a store that is not open, syncs the copy, and returns the
// digest of what it read. to empty: it only reads.
func copyStore(from, to string) (digest string, err error) {
	entries, err := os.ReadDir(from) // sorted
	if err != nil {
		return "", err
	}
	if to != "" {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return "", err
		}
	}
	sum := sha256.New()
	for _, e := range entries {
		if e.Name() == "LOCK" {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", e.Name(), info.Size())
		if err := copyFile(filepath.Join(from, e.Name()), to, e.Name(), sum); err != nil {
			return "", err
		}
	}
	if to != "" {
		err = errors.Join(fsys.OS().SyncDir(to), fsys.OS().SyncDir(filepath.Dir(to)))
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

func copyFile(from, to, name string, sum io.Writer) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if to == "" {
		_, err := io.Copy(sum, in)
		return err
	}
	out, err := os.Create(filepath.Join(to, name))
	if err != nil {
		return err
	}
	defer out.Close()
	buf := make([]byte, 1<<20)
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(out, sum)}, struct{ io.Reader }{in}, buf); err != nil {
		return err
	}
	return errors.Join(out.Sync(), out.Close())
}

// each goes over all keys that are there at the start; cold is the number of a
// cold key, else -1.
func (s *start) each(do func(key string, cold int)) {
	if s.Digest == "" {
		return
	}
	for i := range s.Keys {
		do(startKey(i), -1)
	}
	for i := range s.Cold {
		do(coldKey(i), i)
	}
	do(startKey(s.Keys), -1)
}

// folderBytes is the length of all files in a flat folder.
func folderBytes(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}
