// Package studies lists the studies that come with assay. It knows no study's
// inside.
package studies

import (
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/studies/lockfreeflip"
)

// All lists the built-in studies, in the order they are shown. To add one, add
// its folder and a line here.
func All() []*flow.Study { return []*flow.Study{lockfreeflip.Study()} }
