// Package image keeps a tree on disk: node files of checksummed blocks and the
// manifests that name a root in them. It must never know the log, nor what a commit is. The formats
// are in docs/artrie.md, section 6.
package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/artrie/internal/radix"
)

const (
	nodesHead  = 64
	nodesMagic = "artrient"
	version    = 1
	flushBytes = 256 << 10
	// firstRead is what a fault reads when it does not know the length, in bytes.
	firstRead = 4096
)

// DamageError says that a block, a node file or a manifest is damaged.
type DamageError struct {
	File   string
	Offset int64
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s at offset %d: %s; the keys below this node are lost", e.File, e.Offset, e.Reason)
}

// Nodes is a node file. Read may be called by many; the others by one at a time.
type Nodes struct {
	Gen  uint64
	name string
	file fsys.File
	end  int64     // where buf begins
	buf  []byte    // blocks that are not written yet
	pool sync.Pool // of *[firstRead]byte, for Read
	all  bool      // they wait for Flush, however many they are
}

// NodesName is the base name of the node file of a generation.
func NodesName(gen uint64) string { return fmt.Sprintf("nodes-%016x", gen) }

// NodesGen parses such a name.
func NodesGen(name string) (gen uint64, ok bool) { return number(name, "nodes-") }

func number(name, prefix string) (n uint64, ok bool) {
	hex, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(hex, 16, 64)
	return n, ok && err == nil && len(hex) == 16
}

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func nodesHeader(gen uint64) []byte {
	b := make([]byte, nodesHead)
	copy(b, nodesMagic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint64(b[16:], gen)
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], crcTable()))
	return b
}

// CreateNodes makes the node file of a generation.
func CreateNodes(fs fsys.FS, dir string, gen uint64) (*Nodes, error) {
	n := &Nodes{Gen: gen, name: path.Join(dir, NodesName(gen))}
	f, err := fs.Create(n.name)
	if err != nil {
		return nil, fmt.Errorf("create a node file: %w", err)
	}
	n.buf = nodesHeader(gen)
	n.hold(f)
	return n, nil
}

// OpenNodes opens the node file of a generation, whose last published length is end.
func OpenNodes(fs fsys.FS, dir string, gen uint64, end int64) (*Nodes, error) {
	n := &Nodes{Gen: gen, name: path.Join(dir, NodesName(gen)), end: end}
	f, err := fs.Open(n.name)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, &DamageError{n.name, 0, "the file is missing"}
	}
	if err != nil {
		return nil, err
	}
	fail := func(off int64, reason string) (*Nodes, error) {
		return nil, errors.Join(&DamageError{n.name, off, reason}, f.Close())
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if size < end || size < nodesHead {
		return fail(size, fmt.Sprintf("the file ends there and should have %d bytes", end))
	}
	b := make([]byte, nodesHead)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if string(b) != string(nodesHeader(gen)) {
		return fail(0, "node file header damaged or of another version")
	}
	n.hold(f)
	return n, nil
}

// hold closes f when neither the store nor any stub refers to n any more: an
// old snapshot may read a generation long after its name is gone.
func (n *Nodes) hold(f fsys.File) {
	n.file = f
	runtime.AddCleanup(n, func(f fsys.File) { _ = f.Close() }, f)
}

// Owner is n as the owner of stubs.
func (n *Nodes) Owner() radix.Ref { return unsafe.Pointer(n) }

// Owned is the node file behind an owner.
func Owned(owner radix.Ref) *Nodes { return (*Nodes)(owner) }

// Size is the length of the file with what waits to be written, in bytes.
func (n *Nodes) Size() int64 { return n.end + int64(len(n.buf)) }

func checksum(gen uint64, off int64, block []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], gen)
	binary.LittleEndian.PutUint64(place[8:], uint64(off))
	// By hand: what is given to crc32 goes to the heap, once for every block.
	sum, table := ^uint32(0), crcTable()
	for _, c := range place {
		sum = table[byte(sum)^c] ^ sum>>8
	}
	return crc32.Update(^sum, table, block)
}

// Write appends a block and returns its address.
func (n *Nodes) Write(payload []byte) (uint64, error) {
	off, size := n.Size(), radix.BlockSize(len(payload))
	if off+size > radix.MaxOffset {
		return 0, fmt.Errorf("%s: a node file holds at most %d bytes", n.name, int64(radix.MaxOffset))
	}
	at := len(n.buf)
	n.buf = append(n.buf, make([]byte, radix.BlockHead)...)
	n.buf = append(n.buf, payload...)
	b := n.buf[at:]
	binary.LittleEndian.PutUint32(b[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b, checksum(n.Gen, off, b[4:]))
	n.buf = append(n.buf, make([]byte, size-int64(len(b)))...)
	if len(n.buf) >= flushBytes && !n.all {
		if err := n.flush(); err != nil {
			return 0, err
		}
	}
	return radix.Word(n.Gen, off, int(size)), nil
}

func (n *Nodes) flush() error {
	if _, err := n.file.WriteAt(n.buf, n.end); err != nil {
		return fmt.Errorf("write %s: %w", n.name, err)
	}
	n.end += int64(len(n.buf))
	n.buf = n.buf[:0]
	if n.all {
		n.buf, n.all = nil, false
	}
	return nil
}

// Gather keeps what is written from now on in memory, up to Flush.
func (n *Nodes) Gather() { n.all = true }

// Flush writes what waits.
func (n *Nodes) Flush() error {
	if len(n.buf) == 0 {
		return nil
	}
	return n.flush()
}

// Sync makes the blocks durable.
func (n *Nodes) Sync() error {
	if err := n.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", n.name, err)
	}
	return nil
}

// Rewind forgets what was written at and after end.
func (n *Nodes) Rewind(end int64) { n.end, n.buf = end, n.buf[:0] }

// Read reads the subtree at address w. Its references belong to n.
func (n *Nodes) Read(w uint64) (radix.Ref, error) { return n.read(w, false) }

// Fetch is Read that leaves the subtree as the block that it is on disk, if it can.
func (n *Nodes) Fetch(w uint64) (radix.Ref, error) { return n.read(w, true) }

func (n *Nodes) read(w uint64, block bool) (radix.Ref, error) {
	buf, _ := n.pool.Get().(*[firstRead]byte)
	if buf == nil {
		buf = new([firstRead]byte)
	}
	defer n.pool.Put(buf)
	payload, err := n.payload(w, buf[:])
	if err != nil {
		return nil, err
	}
	if block {
		if p, ok := radix.NewBlock(payload, w); ok {
			return p, nil
		}
	}
	p, err := radix.Decode(payload, n.Gen, n.Owner())
	if err != nil {
		return nil, &DamageError{n.name, radix.Offset(w), err.Error()}
	}
	radix.Stamp(p, w)
	return p, nil
}

// Payload reads and verifies the block at address w.
func (n *Nodes) Payload(w uint64) ([]byte, error) { return n.payload(w, nil) }

// payload is Payload into buf, if that is large enough.
func (n *Nodes) payload(w uint64, buf []byte) ([]byte, error) {
	off := radix.Offset(w)
	damage := func(reason string) ([]byte, error) { return nil, &DamageError{n.name, off, reason} }
	size, exact := radix.Length(w)
	if !exact {
		size = firstRead
	}
	b := buf
	if size > len(b) {
		b = make([]byte, size)
	}
	b = b[:size]
	got, err := n.file.ReadAt(b, off)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s at offset %d: %w", n.name, off, err)
	}
	if b = b[:got]; got < radix.BlockHead {
		return damage("the file ends inside a block")
	}
	length := binary.LittleEndian.Uint32(b[4:])
	if length > radix.MaxRecord+64 || exact && radix.BlockSize(int(length)) != int64(size) {
		return damage("block length damaged")
	}
	if need := radix.BlockHead + int(length); need > got {
		if exact {
			return damage("the file ends inside a block")
		}
		b = make([]byte, need)
		if _, err := n.file.ReadAt(b, off); err == io.EOF {
			return damage("the file ends inside a block")
		} else if err != nil {
			return nil, fmt.Errorf("read %s at offset %d: %w", n.name, off, err)
		}
	}
	b = b[:radix.BlockHead+int(length)]
	if checksum(n.Gen, off, b[4:]) != binary.LittleEndian.Uint32(b) {
		return damage("checksum does not match")
	}
	return b[radix.BlockHead:], nil
}
