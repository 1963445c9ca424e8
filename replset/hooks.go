package replset

import (
	"time"

	"github.com/assaylab/assay/replset/internal/defect"
)

// hooks are what only this package's tests set, see export_test.go.
type hooks struct {
	defect         defect.Defect
	keepEntries    uint64        // of the log, see consensus.Options
	sessionTimeout time.Duration // see server.Options
}
