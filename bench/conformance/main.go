// Command conformance runs the tests that the official MongoDB driver for Go
// ships with its module against a replica set of this project, and compares what
// fails with a list. It knows where the driver keeps its tests and what a test
// binary prints; it must never know a command, or change an answer.
//
// The driver's module holds the JSON tests of MongoDB's specifications and
// two programs that execute them. Both look for the JSON where the driver's own
// repository has it, in a submodule that the module does not contain, so a
// folder is made that links the one to the other; see layout.
//
//	go run ./bench/conformance            # everything, about three minutes
//	go run ./bench/conformance -short     # what runs with the tests of the repository
//	go run ./bench/conformance -only crud -v
//
// Lines that begin with "figure:" are for bench/bars. It ends with 1 if a test fails that known-failures.txt does not name, or
// one passes that it does name: the list may only shrink.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	short := flag.Bool("short", false, "only the folders that run in CI")
	only := flag.String("only", "", "only folders whose name contains this")
	show := flag.Bool("v", false, "print the output of tests that fail")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *short, *only, *show); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short bool, only string, show bool) error {
	known, err := readKnown()
	if err != nil {
		return err
	}
	d, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer d.remove()
	var sum summary
	var failed []error
	for _, f := range folders {
		if short && !f.short || !strings.Contains(f.name, only) {
			continue
		}
		results, err := d.runFolder(ctx, f)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.name, err))
		}
		sum.add(f, results)
		if show {
			printFailures(results)
		}
	}
	sum.print(os.Stdout)
	unexpected := known.compare(sum.results)
	if len(failed) == 0 {
		fmt.Printf("figure: conformance.unexpected %d tests\n", len(unexpected))
	}
	return errors.Join(append(failed, unexpected...)...)
}

func printFailures(results []result) {
	for _, r := range results {
		if r.outcome == "fail" {
			fmt.Printf("--- %s\n%s\n", r.name, r.output)
		}
	}
}
