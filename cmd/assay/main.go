// Command assay decides whether a risky change to a data path may ship.
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
