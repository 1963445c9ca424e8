package replset

import (
	"time"

	"github.com/assaylab/assay/replset/internal/defect"
)

// Hooks are what tests may change beside options.
type Hooks struct {
	Defect         defect.Defect
	KeepEntries    uint64
	SessionTimeout time.Duration
}

// With returns the options with hooks.
func (o Options) With(h Hooks) Options {
	o.hooks = hooks{defect: h.Defect, keepEntries: h.KeepEntries, sessionTimeout: h.SessionTimeout}
	return o
}
