package artrie

import (
	"github.com/assaylab/assay/artrie/fsys"
	"github.com/assaylab/assay/internal/wal"
)

// What a record of the log says of its key and value.
const (
	opPut wal.Type = wal.First + iota
	opInsert
	opDelete
)

// logOf is the log in the folder of a store. A reader needs no size.
func logOf(fs fsys.FS, dir string, segmentBytes int64) wal.Config {
	return wal.Config{FS: fs, Dir: dir, Magic: "artrielg", SegmentBytes: segmentBytes}
}
