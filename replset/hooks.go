package replset

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/assaylab/assay/replset/internal/defect"
)

// hooks are what only this package's tests set, see export_test.go.
type hooks struct {
	defect         defect.Defect
	keepEntries    uint64                             // of the log, see consensus.Options
	sessionTimeout time.Duration                      // see server.Options
	lockTimeout    time.Duration                      // likewise
	disk           func(member int, fs vfs.FS) vfs.FS // of a member in memory; nil leaves it
}
