// Command assay decides whether a risky change to a data path may ship. It puts the
// studies and the verbs of the subjects beside the lab's; it must never know what one of
// them does.
package main

import (
	"os"

	"github.com/spf13/cobra"

	trie "github.com/assaylab/assay/artrie/cli"
	"github.com/assaylab/assay/lab/cli"
	replset "github.com/assaylab/assay/replset/cli"
	"github.com/assaylab/assay/studies"
	screeningwrite "github.com/assaylab/assay/studies/screeningwrite/cli"
)

func main() {
	app := cli.App{Name: "assay", Studies: studies.All(), Extra: []*cobra.Command{replset.Command(), trie.Command(), screeningwrite.Command()}}
	os.Exit(app.Main())
}
