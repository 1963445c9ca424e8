package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/serve"
)

// runsDir is where runs go that were given no folder.
const runsDir = "runs"

func (s *session) serveVerb() *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use: "serve [DIR]", GroupID: "read", Short: "Show run folders in a browser, on this machine only", Args: cobra.MaximumNArgs(1),
		Long: `Show the run folders below a directory (default: runs) in a browser: a list with
verdicts, each run's report, the trend of a study over its runs, two runs side
by side, and how far a run under way is. The address is printed; ^C ends it.

Nothing is written, and nobody else can look: the address is this machine's
own. A folder shows a verdict only after everything in it was verified.`,
		Example: s.example(`  PROGRAM serve
  PROGRAM serve archive --addr 127.0.0.1:8080`),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := runsDir
			if len(args) > 0 {
				dir = args[0]
			}
			server, err := serve.New(s.app.Name, dir)
			if err != nil {
				return usageError{err}
			}
			ln, err := serve.Listen(cmd.Context(), addr)
			if err != nil {
				_ = server.Close()
				return usage("--addr: %w", err)
			}
			fmt.Fprintf(s.out, "http://%s/\n", ln.Addr())
			if !s.quiet {
				s.say("showing the runs below %s; ^C ends it", dir)
			}
			return serve.Serve(cmd.Context(), ln, server)
		},
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` with port; 0 is a free one")
	return c
}
