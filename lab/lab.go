// Package lab turns a program into an experiment: name arms and checks as Go
// functions, give a protocol, and Main is a command line with every verb of
// assay.
//
//	func main() {
//		lab.Main(&lab.Study{
//			Name:      "queues",
//			Protocols: map[string][]byte{"": protocolYAML},
//			Arms:      map[string]lab.ArmFunc{"mutex": mutex, "channel": channel},
//			Checks:    map[string]lab.CheckFunc{"nothing_lost": nothingLost},
//		})
//	}
//
// The stages themselves are the packages below this one, in the order of the
// flow: protocol, host, trial, ledger, analysis, gate, report; check and stats
// serve them. flow composes the stages and cli puts verbs on them.
//
// This package is the door: it must never know how a stage works.
package lab

import (
	"os"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/cli"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/trial"
)

// The types that a study is written with.
type (
	// Study is a protocol together with the functions it names.
	Study = flow.Study
	// T is one trial as its function sees it.
	T = trial.T
	// ArmFunc executes one trial of an arm.
	ArmFunc = trial.ArmFunc
	// CheckFunc judges what trials left.
	CheckFunc = trial.CheckFunc
	// Judging is what a check sees.
	Judging = trial.Judging
	// Result is what a check says.
	Result = check.Result
)

// The verdicts of a check. The zero Verdict is unchecked, and no pass.
const (
	Pass    = check.Pass
	Fail    = check.Fail
	Unknown = check.Unknown
)

// Main runs the command line of a program with these studies and exits with
// its status. Called in a process that the harness started for one trial, it
// runs that trial. It does not return.
func Main(studies ...*Study) {
	name := "assay"
	if len(studies) == 1 {
		name = studies[0].Name
	}
	os.Exit(cli.App{Name: name, Studies: studies}.Main())
}
