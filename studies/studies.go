// Package studies lists the studies that come with assay. It knows no study's
// inside.
package studies

import "github.com/assaylab/assay/lab/flow"

// All lists the built-in studies, in the order they are shown. To add one, add
// its folder and a line here.
func All() []*flow.Study { return nil }
