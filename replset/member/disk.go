package member

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/internal/ordered"
	"github.com/assaylab/assay/replset/internal/yielding"
	"github.com/assaylab/assay/replset/server"
)

// # When the disk is full
//
// A member cannot go on when a write of its log fails, or of a table of its state: what
// was acknowledged is on disk, and what comes next cannot be. So the limit is drawn
// before: a member that has less than diskReserve left takes no writes (14031) and
// answers reads, and does not take in a state that it lacks; the reserve is for what is under way, for the
// log of the agreement and for moving what is in memory to disk. When space is free again it takes writes
// again. If the disk fills up nevertheless, because somebody else fills it faster than
// the limit is looked at, or fails, the member ends its part in the set: nothing that
// it had not synced was acknowledged by it, the others go on, and after a restart it
// has all that it had acknowledged.
//
// Rejected: a file of ballast that is removed when a write has failed. It helps once,
// and moves the moment of truth without telling anybody beforehand.
const (
	diskReserve = 128 << 20
	diskLook    = 100 * time.Millisecond
	// One entry is written to the log, and to a table when that fills; and the other
	// members are often on the same disk.
	diskCopies = 3
	// retryStorage is how long pebble is kept from trying again what has ended the
	// member's part already.
	retryStorage = 100 * time.Millisecond
)

// space is what is left on the member's disk.
type space struct {
	fs  vfs.FS
	dir string

	mu     sync.Mutex
	looked time.Time
	left   uint64
	known  bool // the file system says how much
}

// room returns an error that wraps server.ErrDiskFull where so many bytes should not
// be written any more.
func (s *space) room(bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) > diskLook {
		use, err := s.fs.GetDiskUsage(s.dir)
		s.looked, s.left, s.known = time.Now(), use.AvailBytes, err == nil
	}
	if need := uint64(diskReserve + diskCopies*bytes); s.known && s.left < need {
		return fmt.Errorf("%w: %d MiB are left in %s; %d MiB must be free, so that what was acknowledged stays safe", server.ErrDiskFull, s.left>>20, s.dir, need>>20)
	}
	return nil
}

// fatal is pebble's logger. pebble cannot go on after Fatalf, which must not return.
// Where package consensus has called it, it panics, since that makes an error of it;
// elsewhere, in pebble's own goroutines above all, nobody would, and the process would
// end: there the goroutine ends, with what it has deferred. Either way the member's
// part in the set ends.
type fatal struct {
	broken chan struct{} // closed with the first reason

	mu     sync.Mutex
	reason error
	stop   func() // ends the member's part; must not block
}

func newFatal() *fatal { return &fatal{broken: make(chan struct{})} }

// end takes note of why nothing can be written any more, and says whether that was known.
func (f *fatal) end(reason error) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if again = f.reason != nil; !again {
		f.reason = reason
		close(f.broken)
	}
	if f.stop != nil {
		f.stop()
	}
	return again
}

func (*fatal) Infof(string, ...any)  {}
func (*fatal) Errorf(string, ...any) {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.end(fmt.Errorf("its storage: "+format, args...))
	if calledBy("replset/consensus.") {
		panic(f.err())
	}
	runtime.Goexit()
}

// calledBy says whether a function whose full name has that in it is on the stack.
func calledBy(part string) bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, part) {
			return true
		}
		if !more {
			return false
		}
	}
}

// background is told of what failed in pebble's own goroutines: to move what is in
// memory to disk, mostly. pebble would try again at once and for ever, with its mutex
// held meanwhile.
func (f *fatal) background(err error) {
	if f.end(fmt.Errorf("its storage: %w", err)) {
		time.Sleep(retryStorage)
	}
}

func (f *fatal) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}

func (f *fatal) onFatal(stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	if f.reason != nil {
		stop()
	}
}

// What a member's folder holds: the state, in pebble, and the log, see package
// consensus. An earlier version had both in pebble, in the folder itself.
const (
	stateFolder = "state"
	logFolder   = "log"
)

// checkLayout refuses the folder of an earlier version, which would be taken for an empty
// one: a member that forgets its votes may elect a second primary.
func checkLayout(dir string, fs vfs.FS) error {
	names, err := fs.List(dir)
	if err != nil {
		return nil // there is nothing yet, or opening says what is wrong
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			return fmt.Errorf("its data in %s is of an earlier version, which kept its log elsewhere; read it with that version, or choose an empty folder", dir)
		}
	}
	return nil
}

// memtables is how many tables may wait in memory to be moved to disk before writes wait.
// A disk that takes none would let them wait for ever: before that the member must have
// noticed.
const memtables = 8

// mergeAt makes pebble merge tables when half as many lie on top of each other. What has
// just been written is in memory beside them, so that few reads go through them all; and most
// of what they hold are versions and history that will be removed soon.
const mergeAt = 12

// openDB opens the member's state, which it reads through before: a part that was
// damaged is found now, and not by the first who asks for it.
func openDB(dir string, fs vfs.FS, logger *fatal) (*pebble.DB, error) {
	fail := func(err error) (*pebble.DB, error) {
		return nil, fmt.Errorf("its data in %s: %w; it was damaged outside of the set: bring the folder back from a copy", dir, err)
	}
	cache := pebble.NewCache(16 << 20)
	defer cache.Unref()
	o := &pebble.Options{
		Logger: logger, Cache: cache, MemTableSize: 8 << 20, MemTableStopWritesThreshold: memtables, FS: yielding.FS{FS: ordered.FS{FS: fs}},
		L0CompactionThreshold: mergeAt, L0StopWritesThreshold: 2 * mergeAt,
		EventListener:      &pebble.EventListener{BackgroundError: logger.background},
		FormatMajorVersion: pebble.FormatWALSyncChunks,
		// What a crash takes is made again from the agreement's log.
		DisableWAL: true,
	}
	damaged, err := verifyFiles(dir, fs, o)
	if err != nil {
		return fail(err)
	}
	if err := apart(func() error { return inUse(dir, o, damaged) }); err != nil {
		return fail(err)
	}
	var db *pebble.DB
	err = apart(func() (err error) {
		db, err = pebble.Open(dir, o)
		return err
	})
	if reason := logger.err(); err == nil && reason != nil {
		err = reason
	}
	switch {
	case errors.Is(err, pebble.ErrCorruption):
		return fail(err)
	case err != nil:
		if manifest := files(dir, fs, "MANIFEST-"); manifest != "" {
			err = fmt.Errorf("it is not as %s says: %w", manifest, err)
		}
		return nil, fmt.Errorf("its data in %s: %w", dir, err)
	}
	return db, nil
}

// apart runs f in a goroutine that Fatalf may end.
func apart(f func() error) (err error) {
	done := make(chan struct{})
	err = errors.New("it could not be opened")
	go func() {
		defer close(done)
		err = f()
	}()
	<-done
	return err
}

// files are the names that have that in them, for a message.
func files(dir string, fs vfs.FS, part string) string {
	names, _ := fs.List(dir)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, part) || strings.HasPrefix(name, "marker") })
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// inUse is the error of a damaged table that the data consists of. One that it does not
// was being written when the process was killed: no manifest names it, what it was to
// hold is in the log still, and pebble removes it. It asks a database that is open for
// reading, since another one begins at once to merge tables, and would come to no end.
func inUse(dir string, o *pebble.Options, damaged map[string]error) error {
	if len(damaged) == 0 {
		return nil
	}
	o = o.Clone()
	o.ReadOnly = true
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil // as opening it for writing will say
	}
	defer db.Close()
	levels, err := db.SSTables()
	if err != nil {
		return err
	}
	for _, tables := range levels {
		for _, t := range tables {
			if err := damaged[fmt.Sprintf("%06d.sst", uint64(t.FileNum))]; err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyFiles compares the checksums of all blocks of all tables, of which it returns
// those that are damaged, by name, and of all records of the manifests. pebble takes a record of a manifest that is damaged for the end that a
// crash has torn off, and would go on without the tables that come after it.
func verifyFiles(dir string, fs vfs.FS, o *pebble.Options) (damaged map[string]error, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, nil // there is nothing yet, or opening says what is wrong
	}
	o = o.Clone()
	o.EnsureDefaults()
	damaged = map[string]error{}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		switch {
		case filepath.Ext(name) == ".sst":
			if err := verifyTable(path, fs, o); err != nil {
				damaged[name] = fmt.Errorf("%s: %w", path, err)
			}
		case strings.HasPrefix(name, "MANIFEST-"):
			if err := verifyManifest(path, fs); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return damaged, nil
}

// verifyManifest goes through the chunks of the file, whose format is that of
// LevelDB's log: blocks of 32 KiB, and in them chunks of a checksum of 4 bytes, a
// length of 2, a type and the payload. Where the file ends within a chunk, or in
// zeros, a crash has torn it off.
func verifyManifest(path string, fs vfs.FS) error {
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	const block, header = 32 << 10, 7
	for at := 0; at < len(b); {
		if left := block - at%block; left < header {
			at += left
			continue
		}
		if at+header > len(b) || bytes.Count(b[at:at+header], []byte{0}) == header {
			return nil
		}
		end := at + header + int(binary.LittleEndian.Uint16(b[at+4:]))
		if end > len(b) && end <= at-at%block+block {
			return nil
		}
		if end > at-at%block+block || binary.LittleEndian.Uint32(b[at:]) != masked(b[at+6:end]) {
			return fmt.Errorf("the record at byte %d does not have its checksum", at)
		}
		at = end
	}
	return nil
}

// masked is LevelDB's checksum of a chunk: Castagnoli's, turned so that it can itself
// be part of what is summed.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return bits.RotateLeft32(c, -15) + 0xa282ead8
}

func verifyTable(path string, fs vfs.FS, o *pebble.Options) error {
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
