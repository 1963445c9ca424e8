// Package studies lists the studies that come with assay. It must never know a study's
// inside.
package studies

import (
	"os"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/studies/authorityreads"
	"github.com/assaylab/assay/studies/lockfreeflip"
	"github.com/assaylab/assay/studies/screeningwrite"
)

// All lists the built-in studies, in the order they are shown. To add one, add
// its folder and a line here.
func All() []*flow.Study {
	return []*flow.Study{
		screeningwrite.New(member()),
		authorityreads.New(member()),
		lockfreeflip.New(),
	}
}

// member is the command that starts this program as one member of a replica set; nil,
// where the program does not know its own path, is members in its own process.
func member() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "replset", "member"}
}
