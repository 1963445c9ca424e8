// Command models has spin explore every state of the Promela models beside it. A
// model without defect must hold; each of its unsafe twins, the same file
// compiled with a switch that plants one defect, must break the invariant that
// the list names. It knows the list and spin; it must never know the code that the models are about.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	if err := run("models"); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

// run explores every model of the list, found in dir, and prints a line each, and one for
// bench/bars.
func run(dir string) error {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed; on Debian: apt-get install %s", tool, tool)
		}
	}
	failed := 0
	report := func(file, switches, breaks string) {
		start := time.Now()
		r, err := explore(filepath.Join(dir, file), switches)
		if err == nil {
			err = r.judge(breaks)
		}
		verdict := "ok"
		if err != nil {
			failed++
			verdict = "FAILED: " + err.Error()
		}
		fmt.Printf("%-12s %-38s %10s states %5.1f s  %-16s %s\n", file, switches, r.states, time.Since(start).Seconds(), r.said(), verdict)
	}
	for _, m := range models() {
		for _, switches := range m.safe {
			report(m.file, switches, "")
		}
		for _, t := range m.unsafe {
			report(m.file, t.switches, t.breaks)
		}
	}
	fmt.Printf("figure: models.failed %d explorations\n", failed)
	if failed > 0 {
		return fmt.Errorf("%d of the explorations above did not end as they must", failed)
	}
	return nil
}

// result is what the exploration of one model found.
type result struct {
	states string
	broken string // what the first error says; "" for none
	whole  bool   // every state was visited
}

func (r result) said() string {
	if r.broken == "" {
		return "holds"
	}
	return "breaks " + r.broken
}

// judge says whether the result is as it must be: whole and without error when
// breaks is empty, else an error in that invariant.
func (r result) judge(breaks string) error {
	switch {
	case r.broken != breaks && breaks == "":
		return fmt.Errorf("a state breaks %s", r.broken)
	case r.broken != breaks:
		return fmt.Errorf("it must break %s", breaks)
	case breaks == "" && !r.whole:
		return errors.New("not every state was visited; make the model smaller")
	}
	return nil
}

// maxDepth and maxMemory bound an exploration, in steps and MiB.
const maxDepth, maxMemory = "200000", "1500"

// explore compiles the model with the switches and visits its states.
func explore(file, switches string) (result, error) {
	work, err := os.MkdirTemp("", "models")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(work)
	if file, err = filepath.Abs(file); err != nil {
		return result{}, err
	}
	translate := []string{"-a"}
	for _, s := range strings.Fields(switches) {
		translate = append(translate, "-D"+s)
	}
	if out, err := tool(work, "spin", append(translate, file)...); err != nil || bytes.Contains(out, []byte("rror:")) {
		return result{}, fmt.Errorf("spin: %v: %s", err, out)
	}
	// -w: what spin generates is not ours to tidy.
	if out, err := tool(work, "gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM="+maxMemory, "-o", "pan", "pan.c"); err != nil {
		return result{}, fmt.Errorf("gcc: %w: %s", err, out)
	}
	out, err := tool(work, filepath.Join(work, "pan"), "-m"+maxDepth)
	if err != nil {
		return result{}, fmt.Errorf("explore: %w: %s", err, out)
	}
	return parse(out)
}

func tool(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// parse reads the report of an exploration. What it does not recognise is an error.
func parse(out []byte) (r result, err error) {
	states := regexp.MustCompile(`(?m)^\s*(\S+) states, stored`).FindSubmatch(out)
	errs := regexp.MustCompile(`errors: (\d+)`).FindSubmatch(out)
	if states == nil || errs == nil {
		return r, fmt.Errorf("not the report of an exploration: %s", out)
	}
	r.states = string(states[1])
	text := string(out)
	r.whole = !strings.Contains(text, "Search not completed") && !strings.Contains(text, "max search depth too small")
	if string(errs[1]) == "0" {
		return r, nil
	}
	first := regexp.MustCompile(`(?m)^pan:1: (.*?)(?: \(at depth \d+\))?$`).FindSubmatch(out)
	if first == nil {
		return r, fmt.Errorf("an error without a name: %s", out)
	}
	r.broken = strings.TrimPrefix(string(first[1]), "assertion violated ")
	return r, nil
}
