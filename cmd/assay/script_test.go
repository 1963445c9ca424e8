package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assaylab/assay/lab/ledger"
)

// TestMain makes this test binary the programs of the scripts. A trial that
// re-executes its program gets the same one, because what stands in the
// scripts' PATH is a hard link and no symbolic one.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"assay": main, "unruly": unruly, "mongo": mongoClient})
}

// TestScript runs every file of testdata/script: a command line session and the
// files it needs. Every script finds a sound protocol, exp.yaml with arm.sh,
// in its folder unless it brings its own; most scripts change one thing in it.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Setup:               setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"build":    buildProgram,
			"change":   change,
			"damage":   damage,
			"exitcode": exitcode,
			"fetch":    fetch,
			"flip":     flip,
			"orders":   orders,
			"peak":     peak,
			"signal":   sendSignal,
			"status":   status,
			"trie":     trieStore,
			"waitfor":  waitfor,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "benchstat":
				// A tool of the module: there from the module cache or a proxy,
				// or its script is skipped.
				return build("golang.org/x/perf/cmd/benchstat") == nil, nil
			case "long":
				return os.Getenv("ASSAY_LONG") != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// script is what the commands of one script remember.
type script struct {
	last   *os.ProcessState // of the last exitcode
	signal *exec.Cmd        // that a signal was sent to
}

func state(ts *testscript.TestScript) *script { return ts.Value("script").(*script) }

func setup(env *testscript.Env) error {
	env.Values["script"] = &script{}
	for _, name := range []string{"exp.yaml", "arm.sh"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			return err
		}
		path := filepath.Join(env.WorkDir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	goEnv, err := goEnvironment()
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars, goEnv...)
	env.Vars = append(env.Vars,
		"PATH="+builtDir()+":"+env.Getenv("PATH"), "REPO="+root,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	)
	return nil
}

// goEnvironment lets the go command work in a script, whose HOME is nowhere.
var goEnvironment = sync.OnceValues(func() ([]string, error) {
	var vars []string
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	for i, v := range strings.Split(strings.TrimRight(string(out), "\n"), "\n") {
		vars = append(vars, names[i]+"="+v)
	}
	return vars, nil
})

// builtDir is for programs that scripts build. It goes with the one that
// testscript made for this test binary's own names.
func builtDir() string {
	assay, err := exec.LookPath("assay")
	if err != nil {
		panic(err) // testscript.Main has put it into PATH
	}
	return filepath.Join(filepath.Dir(filepath.Dir(assay)), "built")
}

var building sync.Mutex

// build builds a program of the module or one of its tools, once for all
// scripts.
func build(pkg string) error {
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(builtDir(), filepath.Base(pkg))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = filepath.Join("..", "..")
	// Looked at here, so that the go command knows that this test depends on it.
	_, _ = os.ReadDir(filepath.Join(cmd.Dir, pkg))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// buildProgram puts a program of this module into the PATH of the scripts:
//
//	build PACKAGE
func buildProgram(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: build PACKAGE")
	}
	ts.Check(build(args[0]))
}

// exitcode runs a command that must end with just this status:
//
//	exitcode N COMMAND ARG...
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
		state(ts).last = exit.ProcessState
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// peak says how much memory the last command, which failed, may have used:
//
//	peak MiB
func peak(ts *testscript.TestScript, neg bool, args []string) {
	last := state(ts).last
	if neg || len(args) != 1 || last == nil {
		ts.Fatalf("usage: exitcode N ..., and then: peak MiB")
	}
	most, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	if used := last.SysUsage().(*syscall.Rusage).Maxrss >> 10; used > most {
		ts.Fatalf("used %d MiB, allowed are %d", used, most)
	}
}

// change replaces a text that must be there, wherever it stands:
//
//	change FILE OLD NEW
func change(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: change FILE OLD NEW")
	}
	old, text := args[1], ts.ReadFile(args[0])
	if !strings.Contains(text, old) {
		ts.Fatalf("%s has no %q:\n%s", args[0], old, text)
	}
	text = strings.ReplaceAll(text, old, strings.ReplaceAll(args[2], `\n`, "\n"))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// flip turns one bit in the middle of a line, 1-based; -1 is the last:
//
//	flip FILE LINE
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE LINE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := bytes.SplitAfter([]byte(ts.ReadFile(args[0])), []byte("\n"))
	if n < 0 {
		n += len(lines)
	}
	if n < 1 || n > len(lines) || len(lines[n-1]) < 2 {
		ts.Fatalf("%s has no line %s to flip a bit in", args[0], args[1])
	}
	lines[n-1][len(lines[n-1])/2] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Join(lines, nil), 0o644))
}

// longest is how long an event may take on a busy machine.
const longest = time.Minute

// waitfor waits until a file exists and matches:
//
//	waitfor FILE REGEXP
func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	end := time.After(longest)
	for {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
		if err == nil && re.Match(b) {
			return
		}
		select {
		case <-look.C:
		case <-end:
			ts.Fatalf("%s did not match %q within %s; it ends in:\n%s", args[0], args[1], longest, b[max(0, len(b)-1000):])
		}
	}
}

// fetch asks a server, whose address is in a file, for a page that must match at
// last, or must not once it is made:
//
//	fetch FILE PATH REGEXP
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: fetch FILE PATH REGEXP")
	}
	re, err := regexp.Compile(args[2])
	ts.Check(err)
	url := strings.TrimSpace(ts.ReadFile(args[0])) + strings.TrimPrefix(args[1], "/")
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.After(longest); ; {
		resp, err := http.Get(url)
		ts.Check(err)
		page, err := io.ReadAll(resp.Body)
		ts.Check(errors.Join(err, resp.Body.Close()))
		making := bytes.Contains(page, []byte(`http-equiv="refresh" content="2"`))
		if re.Match(page) != neg && !(neg && making) {
			return
		}
		if neg && !making {
			ts.Fatalf("%s matches %q", url, args[2])
		}
		select {
		case <-look.C:
		case <-end:
			ts.Fatalf("%s: %s and no match of %q within %s; it ends in:\n%s", url, resp.Status, args[2], longest, page[max(0, len(page)-1000):])
		}
	}
}

// sendSignal sends a signal to the last background command, whose status can
// be looked at after wait:
//
//	signal INT|TERM|KILL
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	known := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}
	background := ts.BackgroundCmds()
	if neg || len(args) != 1 || known[args[0]] == nil || len(background) == 0 {
		ts.Fatalf("usage: exec COMMAND &, and then: signal INT|TERM|KILL")
	}
	cmd := background[len(background)-1]
	ts.Check(cmd.Process.Signal(known[args[0]]))
	state(ts).signal = cmd
}

// status compares how the command that a signal was sent to has ended; a
// command killed by it has -1:
//
//	status N
func status(ts *testscript.TestScript, neg bool, args []string) {
	cmd := state(ts).signal
	if neg || len(args) != 1 || cmd == nil || cmd.ProcessState == nil {
		ts.Fatalf("usage: signal ..., wait, and then: status N")
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// orders prints the arms of each round in the order in which they ran, and
// fails where a trial was recorded twice or where an arm did not stand in
// every place equally often within the measured blocks:
//
//	orders RUN
func orders(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: orders RUN")
	}
	var rounds []string // in the order of the schedule
	arms := map[string][]string{}
	places := map[string]int{}
	sc := bufio.NewScanner(strings.NewReader(ts.ReadFile(filepath.Join(args[0], ledger.ObservationsFile))))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var rec ledger.Record
		ts.Check(json.Unmarshal(sc.Bytes(), &rec))
		o := rec.Trial
		if o == nil {
			continue
		}
		round := fmt.Sprintf("%s %d", o.Cell, o.Round)
		if o.Warmup {
			round += " warm-up"
		} else {
			places[fmt.Sprintf("%s: arm %s in place %d", o.Cell, o.Arm, o.Slot)]++
		}
		if slices.Contains(arms[round], o.Arm) {
			ts.Fatalf("%s: arm %s was measured twice", round, o.Arm)
		}
		if arms[round] == nil {
			rounds = append(rounds, round)
		}
		arms[round] = append(arms[round], o.Arm)
	}
	ts.Check(sc.Err())
	most, least := 0, len(rounds)
	for _, n := range places {
		most, least = max(most, n), min(least, n)
	}
	if most > least {
		ts.Fatalf("the order is not balanced: %v", places)
	}
	for _, r := range rounds {
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", r, strings.Join(arms[r], " "))
	}
}
