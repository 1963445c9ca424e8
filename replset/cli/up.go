package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/replset"
)

func upVerb() *cobra.Command {
	var o replset.Options
	var processes bool
	var timing string
	c := &cobra.Command{
		Use: "up", Short: "Start a set, print its URI and run until ^C or down",
		Long: `Start a set, print its URI when it takes writes, and run until ^C or down.

Data stays in --dir; another up on the same folder goes on with it. While the
set runs, the file uri in that folder holds its URI.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch timing {
			case "fast":
				o.Timing = replset.Fast
			case "mongodb":
				o.Timing = replset.MongoDB
			default:
				return usage("--timing is fast or mongodb, not %q", timing)
			}
			if o.Members < 1 || o.Members > 7 {
				return usage("--members is 1 to 7, not %d", o.Members)
			}
			if o.Port < 0 || o.Port+o.Members > 1<<16 {
				return usage("--port is 0 (any) to %d for %d members, not %d", 1<<16-o.Members, o.Members, o.Port)
			}
			if processes {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("finding this program to start it as members: %w", err)
				}
				o.Command = []string{self, "replset", "member"}
			}
			return up(cmd, o)
		},
	}
	f := c.Flags()
	dirFlag(c, &o.Dir)
	f.IntVar(&o.Members, "members", 3, "number of members, 1 to 7")
	f.IntVar(&o.Port, "port", 27017, "port of member 0, the others follow; 0 takes any")
	f.StringVar(&o.Name, "name", "rs0", "name of the set")
	f.BoolVar(&processes, "processes", false, "run each member as a process, so that kill and pause are SIGKILL and SIGSTOP")
	f.StringVar(&timing, "timing", "fast", "how soon a dead primary is replaced: fast (0.3 s) or mongodb (12 s)")
	return c
}

func up(cmd *cobra.Command, o replset.Options) error {
	start, cancel := context.WithTimeout(cmd.Context(), upTimeout)
	defer cancel()
	set, err := replset.New(start, o)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return usage("%w; end what listens there, or choose another --port", err)
	case errors.Is(err, replset.ErrInUse):
		return usageError{err}
	case err != nil:
		return err
	}
	s, err := listen(o.Dir, set)
	if err != nil {
		return errors.Join(err, set.Close())
	}
	// For scripts, which cannot wait for a line of a program in the background.
	uri := filepath.Join(o.Dir, "uri")
	if err := os.WriteFile(uri, []byte(set.URI()+"\n"), 0o644); err != nil {
		return errors.Join(err, set.Close(), s.close())
	}
	fmt.Fprintln(cmd.OutOrStdout(), set.URI())
	fmt.Fprintf(cmd.ErrOrStderr(), "%d members are up; ^C or `assay replset down --dir %s` ends them\n", o.Members, o.Dir)
	select {
	case <-cmd.Context().Done():
	case <-s.down:
	}
	// The socket last: who asked for the end may rely on it.
	return errors.Join(os.Remove(uri), set.Close(), s.close())
}
