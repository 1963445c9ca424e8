// Command assay decides whether a risky change to a data path may ship.
package main

import (
	"os"

	"github.com/assaylab/assay/lab/cli"
	"github.com/assaylab/assay/studies"
)

func main() { os.Exit(cli.App{Name: "assay", Studies: studies.All()}.Main()) }
