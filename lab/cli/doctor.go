package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
)

// doctorLimits are what doctor measures the machine against: what a protocol
// written by init asks for.
func doctorLimits() []protocol.Limit {
	p, faults := protocol.Parse("template.yaml", template, nil)
	if len(faults) > 0 {
		panic(faults)
	}
	return p.Host
}

func (s *session) doctorVerb() *cobra.Command {
	var scratch string
	c := &cobra.Command{
		Use: "doctor", GroupID: "run", Short: "Look at this machine as a run would", Args: cobra.NoArgs,
		Long: `Look at this machine as a run would: each probe is ok, bad or unavailable,
against the limits of the protocol that init writes. The exit status is 0
whatever is found; a run heeds the limits of its own protocol.`,
		RunE: func(*cobra.Command, []string) error {
			if _, err := os.Stat(scratch); err != nil {
				return usage("--scratch: %w", err)
			}
			m := host.Machine{LockPath: lockPath()}
			readings := host.Mark(m.Probe(scratch), doctorLimits())
			for _, r := range readings {
				value := "–"
				if r.Available() {
					value = fmt.Sprintf("%.4g %s", r.Value, r.Unit)
				}
				fmt.Fprintf(s.out, "%-12s %-18s %-16s %s\n", r.State, r.Probe, value, r.Detail)
			}
			breaches := host.Judge(readings, doctorLimits(), "now")
			for _, b := range breaches {
				fmt.Fprintln(s.out, b)
			}
			if len(breaches) == 0 {
				fmt.Fprintln(s.out, "The machine is fit to measure, as far as can be told.")
			}
			return nil
		},
	}
	c.Flags().StringVar(&scratch, "scratch", ".", "`folder` whose disk is looked at")
	return c
}
