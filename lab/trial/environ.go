package trial

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assaylab/assay/lab/protocol"
)

// outerEnv is the harness's own environment without what only a trial may
// have: a run started by an arm of another run must not take its variables for
// its own.
func outerEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "ASSAY_") })
}

// ArmEnv is what every command of an arm finds in its environment, be it a trial, a
// hook, a version command or a judge: the harness's own variables but for those that
// only a trial may have, and the arm's. No variable is in it twice. Nil is no arm.
func ArmEnv(a *protocol.Arm) []string {
	env := outerEnv()
	if a == nil {
		return env
	}
	for _, k := range slices.Sorted(maps.Keys(a.Env)) {
		env = append(env, k+"="+a.Env[k])
	}
	return once(env)
}

// env is the environment of a trial or hook. ASSAY_PAD has a length that
// depends on the trial's seed and place: where a program's stack begins depends
// on the size of its environment, and a lucky place must not become an effect
// (Mytkowicz et al. 2009).
func (e *Executor) env(s *armState, phase string, cell protocol.Cell, slot Slot, out string) []string {
	env := make([]string, 0, len(s.env)+len(cell.Levels)+16)
	env = append(env, s.env...)
	env = append(env,
		"ASSAY_ARM="+slot.Arm, "ASSAY_CELL="+cell.Name, "ASSAY_ROUND="+strconv.Itoa(slot.Round), "ASSAY_SLOT="+strconv.Itoa(slot.Slot),
		"ASSAY_SEED="+strconv.FormatUint(slot.Seed, 10), "ASSAY_PHASE="+phase, "ASSAY_SCRATCH="+s.scratch, "ASSAY_OUT="+out,
		"ASSAY_ARM_DIR="+s.home, "ASSAY_PROTOCOL_DIR="+e.dir)
	for i, f := range cell.Factors() {
		env = append(env, protocol.FactorVar(f)+"="+cell.Levels[i])
	}
	for _, s := range e.p.Settings {
		env = append(env, protocol.SettingVar(s.Name)+"="+s.Value)
	}
	if phase == "measure" || phase == "warmup" {
		pad := splitMix(slot.Seed + uint64(slot.Slot))
		env = append(env, "ASSAY_PAD="+padding[:pad.next()%uint64(len(padding))])
	}
	// No name is twice: only this function gives names that start with ASSAY_.
	return env
}

var padding = strings.Repeat("x", 4096)

// once keeps the last value of each variable. Given two, programs disagree
// about which one counts: a shell takes the last, getenv of the C library and
// of Go the first.
func once(env []string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		last[k] = i
	}
	out := env[:0]
	for i, kv := range env {
		if k, _, _ := strings.Cut(kv, "="); last[k] == i {
			out = append(out, kv)
		}
	}
	return out
}

var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// expand replaces each ${NAME} by its value in env. What a value contains is
// not looked at again, and an unknown name is left as it is.
func expand(s string, env []string) string {
	return variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		for _, kv := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ref
	})
}
