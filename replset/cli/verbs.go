package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/replset"
)

// verb is one that is asked of a running set. It runs there.
type verb struct {
	name, args, short string
	takes             cobra.PositionalArgs
	run               func(ctx context.Context, s *replset.Set, args []string) (string, error)
}

var verbs = []verb{
	{"status", "", "Show the members", cobra.NoArgs, status},
	{"stepdown", "", "Make the primary hand over", cobra.NoArgs, func(ctx context.Context, s *replset.Set, _ []string) (string, error) {
		return primary(s, s.StepDown(ctx))
	}},
	{"stepup", "MEMBER", "Make a member primary", cobra.ExactArgs(1), func(ctx context.Context, s *replset.Set, args []string) (string, error) {
		i, err := number(args[0])
		if err != nil {
			return "", err
		}
		return primary(s, s.StepUp(ctx, i))
	}},
	{"kill", "MEMBER...", "End members as SIGKILL does", cobra.MinimumNArgs(1), each((*replset.Set).Kill)},
	{"restart", "MEMBER...", "Start members that were killed", cobra.MinimumNArgs(1), each((*replset.Set).Restart)},
	{"pause", "MEMBER...", "Stop members as SIGSTOP does", cobra.MinimumNArgs(1), each((*replset.Set).Pause)},
	{"resume", "MEMBER...", "End pause", cobra.MinimumNArgs(1), each((*replset.Set).Resume)},
	{"partition", "GROUP...", "Cut the links between groups of members, such as 0 1,2; clients reach all", cobra.MinimumNArgs(1), partition},
	{"isolate", "MEMBER...", "Cut members off from the others and from clients, silently", cobra.MinimumNArgs(1), each((*replset.Set).Isolate)},
	{"heal", "", "End partition and isolate", cobra.NoArgs, func(_ context.Context, s *replset.Set, _ []string) (string, error) {
		return "", s.Heal()
	}},
	{"down", "", "End the set; its data stays", cobra.NoArgs, nil}, // by whoever runs it
}

func (v verb) command() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: strings.TrimSpace(v.name + " " + v.args), Short: v.short, Args: v.takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := ask(cmd.Context(), dir, request{Verb: v.name, Args: args})
			fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	dirFlag(c, &dir)
	return c
}

// each does something to one member after the other, and stops at the first error.
func each(do func(*replset.Set, int) error) func(context.Context, *replset.Set, []string) (string, error) {
	return func(_ context.Context, s *replset.Set, args []string) (string, error) {
		var list []int
		for _, a := range args {
			i, err := number(a)
			if err != nil {
				return "", err
			}
			if i >= len(s.Members()) {
				return "", usage("there is no member %d; they are 0 to %d", i, len(s.Members())-1)
			}
			list = append(list, i)
		}
		for _, i := range list {
			if err := do(s, i); err != nil {
				return "", err
			}
		}
		return "", nil
	}
}

func partition(_ context.Context, s *replset.Set, args []string) (string, error) {
	var groups [][]int
	for _, a := range args {
		g, err := group(a)
		if err != nil {
			return "", err
		}
		groups = append(groups, g)
	}
	return "", s.Partition(groups...)
}

func primary(s *replset.Set, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("member %d is primary\n", s.Primary()), nil
}

func status(_ context.Context, s *replset.Set, _ []string) (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "member\taddress\tstate\tterm\tpid\tpeak memory")
	peak := s.PeakMemory()
	for i, m := range s.Members() {
		state := m.State
		if m.Isolated {
			state += ", isolated"
		}
		pid, mem := "-", "-"
		if m.Pid != 0 {
			pid = fmt.Sprint(m.Pid)
		}
		if peak[i] > 0 {
			mem = fmt.Sprintf("%d MiB", peak[i]>>20)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\n", i, m.Address, state, m.Term, pid, mem)
	}
	w.Flush()
	for i, m := range s.Members() {
		if m.Failure != "" {
			fmt.Fprintf(&b, "member %d has failed: %s\n", i, m.Failure)
		}
	}
	return b.String(), nil
}
