package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/stats"
)

func (s *session) powerVerb() *cobra.Command {
	var effect, power, alpha, change float64
	var rounds, cells int
	var test, pilot string
	c := &cobra.Command{
		Use: "power", GroupID: "plan", Short: "How many rounds an effect needs", Args: cobra.NoArgs,
		Long: `How many rounds an effect needs, by the noncentral t distribution.

The effect is standardised: Cohen's d for the Welch test (difference over the
standard deviation of a round), dz for the paired test (mean of the paired
differences over their standard deviation). A pilot run says what a change in
per cent is on that scale:
  power --effect 0.8 --power 0.9
  power --pilot RUN --change 0.05 --power 0.9`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(alpha > 0 && alpha < 1) || !(power > 0 && power < 1) {
				return usage("--alpha and --power lie between 0 and 1")
			}
			if cells < 1 {
				return usage("--cells is 1 or more")
			}
			if cmd.Flags().Changed("rounds") && rounds < 2 {
				return usage("--rounds is 2 or more")
			}
			if pilot != "" && cmd.Flags().Changed("effect") {
				return usage("give --effect, or --pilot with --change, not both")
			}
			if test != protocol.TestWelch && test != protocol.TestPaired {
				return usage("--test is welch or paired, not %q", test)
			}
			if pilot != "" {
				dz, d, err := s.pilotEffect(pilot, change)
				if err != nil {
					return err
				}
				effect = d
				if test == protocol.TestPaired {
					effect = dz
				}
			}
			level := alpha / float64(cells)
			scale := map[string]string{protocol.TestWelch: "d", protocol.TestPaired: "dz"}[test]
			if rounds > 0 {
				return s.atRounds(test, scale, rounds, effect, power, level)
			}
			if !(effect > 0) || math.IsInf(effect, 0) {
				return usage("give --effect (more than 0), or --pilot with --change, or --rounds")
			}
			n, err := roundsFor(test, effect, power, level)
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintf(s.out, "%d rounds per arm: %s test, two-sided alpha %.4g, %s = %.4g, power %.3f (asked %.3g)\n", n, test, level, scale, effect, powerOf(test, effect, n, level), power)
			return nil
		},
	}
	c.Flags().Float64Var(&effect, "effect", 0, "standardised effect to find: `d` (welch) or dz (paired)")
	c.Flags().Float64Var(&power, "power", 0.9, "`probability` of finding it")
	c.Flags().Float64Var(&alpha, "alpha", 0.05, "two-sided family-wise `level`")
	c.Flags().IntVar(&cells, "cells", 1, "`number` of primary cells that share alpha")
	c.Flags().StringVar(&test, "test", protocol.TestWelch, "`test`: welch or paired")
	c.Flags().IntVar(&rounds, "rounds", 0, "say what this `number` of rounds can do instead")
	c.Flags().StringVar(&pilot, "pilot", "", "`run` folder whose primary metric says how noisy a round is")
	c.Flags().Float64Var(&change, "change", 0.05, "relative `change` to find, with --pilot")
	return c
}

func (s *session) atRounds(test, scale string, rounds int, effect, power, level float64) error {
	detect := stats.DetectableWelch
	if test == protocol.TestPaired {
		detect = stats.DetectablePaired
	}
	d, err := detect(rounds, power, level)
	if err != nil {
		return usageError{err}
	}
	fmt.Fprintf(s.out, "%d rounds per arm find %s = %.3f with power %.3g (%s test, two-sided alpha %.4g)\n", rounds, scale, d, power, test, level)
	if effect > 0 {
		fmt.Fprintf(s.out, "%s = %.4g is found with power %.3f\n", scale, effect, powerOf(test, effect, rounds, level))
	}
	return nil
}

func roundsFor(test string, effect, power, alpha float64) (int, error) {
	if test == protocol.TestPaired {
		return stats.RoundsForPaired(effect, power, alpha)
	}
	return stats.RoundsForWelch(effect, power, alpha)
}

func powerOf(test string, effect float64, n int, alpha float64) float64 {
	if test == protocol.TestPaired {
		return stats.PowerPaired(effect, n, alpha)
	}
	return stats.PowerWelch(effect, n, alpha)
}

// pilotEffect is what a relative change of the reference's mean is on the
// scales of d and dz, by the noise of a pilot's first primary cell.
func (s *session) pilotEffect(dir string, change float64) (dz, d float64, err error) {
	if !(change > 0) {
		return 0, 0, usage("--change is more than 0: 0.05 is five per cent")
	}
	o, err := flow.Load(dir)
	if err != nil {
		return 0, 0, err
	}
	if o.Results.Primary == nil {
		return 0, 0, usage("%s has no figures: its checks did not all pass", dir)
	}
	pr := o.Results.Primary
	cm := o.Results.Cell(pr.Cells[0].Cell).Metric(pr.Metric)
	c := cm.Against(pr.Treatment)
	if c == nil || c.N < 3 || c.Dz == 0 || c.D == 0 {
		return 0, 0, usage("%s has too few rounds, or no difference at all, to say how noisy a round is", dir)
	}
	delta := change * math.Abs(float64(cm.Arms[0].Mean))
	diff := math.Abs(float64(c.Diff))
	dz, d = delta*math.Abs(float64(c.Dz))/diff, delta*math.Abs(float64(c.D))/diff
	s.say("pilot %s: %s of the reference %.6g %s, so %.3g %% is d = %.3f and dz = %.3f; do not count the pilot's rounds again", dir, pr.Metric, float64(cm.Arms[0].Mean), cm.Unit, 100*change, d, dz)
	return dz, d, nil
}
