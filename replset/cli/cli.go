// Package cli puts a replica set on the command line: up runs one, the other verbs
// ask it for faults through a socket in its folder. It knows flags, words and exit
// statuses; it must never know how a member runs.
package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/replset"
)

// Command is the verb replset with all of its own.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: "replset", Short: "Run a MongoDB-compatible replica set and break it",
		Long: `Run a MongoDB-compatible replica set on this machine, and break it.

up starts one and stays in the foreground; the other verbs, given the same
--dir, tell it what to do. Members are numbered from 0.`,
	}
	c.AddCommand(upVerb(), memberVerb())
	for _, v := range verbs {
		c.AddCommand(v.command())
	}
	return c
}

// usageError is a fault of the command line, or of where it was given.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// ExitStatus is what the program ends with.
func (e usageError) ExitStatus() int { return 2 }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const (
	defaultDir = "assay-replset"
	upTimeout  = time.Minute
)

func dirFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "dir", defaultDir, "folder of the set")
}

// memberVerb is what up --processes starts.
func memberVerb() *cobra.Command {
	return &cobra.Command{Use: "member", Hidden: true, Short: "Run one member, as up --processes asks it to", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return replset.RunMember(cmd.Context(), os.Stdin, os.Stdout)
		}}
}

// number reads a member's number.
func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, usage("%q is no member; members are numbered from 0", s)
	}
	return n, nil
}

// group reads members with commas between them.
func group(s string) (out []int, err error) {
	for part := range strings.SplitSeq(s, ",") {
		n, err := number(part)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}
