//go:build linux

package spawn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deadline bounds every wait for an event that is certain to come.
const deadline = 30 * time.Second

var background = context.Background()

func start1(t testing.TB) *Launcher {
	t.Helper()
	l, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func lookTrue(t testing.TB) string {
	t.Helper()
	p, err := Look("true", nil, "")
	if err != nil {
		t.Skip(err)
	}
	return p
}

func shell(script string, args ...string) Cmd {
	return Cmd{Path: "sh", Args: append([]string{"sh", "-c", script, "sh"}, args...)}
}

// output is a pipe that commands hold; its end of file means that all of them
// are gone.
type output struct {
	r *bufio.Reader
	f *os.File
	w *os.File
}

func newOutput(t *testing.T) *output {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	if err := r.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return &output{r: bufio.NewReader(r), f: r, w: w}
}

func (o *output) line(t *testing.T) string {
	t.Helper()
	s, err := o.r.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

func (o *output) number(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.line(t), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// allGone waits for the last holder of the pipe to end.
func (o *output) allGone(t *testing.T) {
	t.Helper()
	o.w.Close()
	if _, err := io.Copy(io.Discard, o.r); err != nil {
		t.Fatalf("still running: %v", err)
	}
}

func (o *output) all(t *testing.T) string {
	t.Helper()
	o.w.Close()
	b, err := io.ReadAll(o.r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustRun(t *testing.T, l *Launcher, c Cmd) Result {
	t.Helper()
	r, err := l.Run(background, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func capture(t *testing.T, l *Launcher, c Cmd) string {
	t.Helper()
	o := newOutput(t)
	c.Stdout = o.w
	mustRun(t, l, c)
	return o.all(t)
}

func TestExitStatusAndTimes(t *testing.T) {
	l := start1(t)
	r := mustRun(t, l, shell("exit 7"))
	if r.Exit != 7 || r.Signal != 0 || r.TimedOut {
		t.Errorf("got %+v", r)
	}
	if r.Wall <= 0 || r.End-r.Start != r.Wall || r.Pid <= 0 || r.MinorFaults == 0 {
		t.Errorf("implausible: %+v", r)
	}
	r = mustRun(t, l, shell("kill -SEGV $$"))
	if r.Exit != -1 || r.Signal != syscall.SIGSEGV {
		t.Errorf("got %+v", r)
	}
	r = mustRun(t, l, shell("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"))
	if r.User+r.System <= 0 || r.User+r.System > r.Wall+50*time.Millisecond {
		t.Errorf("implausible: %+v", r)
	}
}

func TestCommandSeesWhatItIsGiven(t *testing.T) {
	l := start1(t)
	dir := t.TempDir()
	o := newOutput(t)
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c := shell(`echo "$0 $1 $2"; echo "$VAR"; pwd -P; echo four >&4; echo six >&6; cat; (echo >&5) 2>/dev/null || echo closed`, "one two", "")
	c.Env = []string{"VAR=value", "PATH=" + os.Getenv("PATH")}
	c.Dir = dir
	c.Stdin, c.Stdout, c.Stderr = in, o.w, o.w
	c.Extra = []*os.File{in, o.w, nil, o.w}
	mustRun(t, l, c)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.all(t), "sh one two \nvalue\n"+real+"\nfour\nsix\nclosed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// By default it is where this process is, even after Start.
	t.Chdir(dir)
	if got := capture(t, l, shell("pwd -P")); got != real+"\n" {
		t.Errorf("in %q, want %q", got, real)
	}
	if err := os.Mkdir("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	c = shell("pwd -P")
	c.Dir = "sub"
	if got := capture(t, l, c); got != real+"/sub\n" {
		t.Errorf("in %q, want %q", got, real+"/sub")
	}
	c = shell("env")
	c.Path, _ = Look("sh", nil, "")
	c.Env = []string{}
	if got := capture(t, l, c); strings.Contains(got, "PATH=/") && strings.Contains(got, envMark) {
		t.Errorf("environment is not empty: %q", got)
	}
}

func TestManyExtraFiles(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := shell("echo here >&9; readlink /proc/self/fd/9 >/dev/null")
	c.Stderr = o.w
	for range 40 {
		c.Extra = append(c.Extra, o.w)
	}
	if r := mustRun(t, l, c); r.Exit != 0 {
		t.Errorf("exit %d: %s", r.Exit, o.all(t))
	}
	if got := o.all(t); got != "here\n" {
		t.Errorf("got %q", got)
	}
	for range maxFDs {
		c.Extra = append(c.Extra, o.w)
	}
	if _, err := l.Run(background, c); err == nil {
		t.Error("too many files are accepted")
	}
}

// TestInheritedState compares what a command inherits with a child started in
// the usual way.
func TestInheritedState(t *testing.T) {
	l := start1(t)
	script := "grep -E '^(SigBlk|SigIgn|SigCgt|THP_enabled|NoNewPrivs|Seccomp):' /proc/self/status; ulimit -a; umask; nice; ls /proc/self/fd"
	want, err := exec.Command("sh", "-c", script).Output()
	if err != nil {
		t.Skip(err)
	}
	if got := capture(t, l, shell(script)); got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// The Go runtime raises the soft limit for itself in both processes.
	c := exec.Command("sh", "-c", `ulimit -Sn 123 && exec "$0"`, self())
	c.Env = helperEnviron("limits")
	c.Stderr = os.Stderr
	if got, err := c.Output(); err != nil || string(got) != "123\n" {
		t.Errorf("descriptor limit %q, %v", got, err)
	}
}

func TestPeakIsTheCommandsOwn(t *testing.T) {
	if raceBuild {
		t.Skip("the race detector makes the launcher large")
	}
	b := touch(300)
	defer syscall.Munmap(b)
	l := start1(t)
	r := mustRun(t, l, Cmd{Path: lookTrue(t)})
	t.Logf("true: %d KiB, floor: %d KiB", r.PeakRSS>>10, l.FloorBytes()>>10)
	if r.PeakRSS > 8<<20 {
		t.Errorf("peak of true is %d", r.PeakRSS)
	}
	if r.PeakRSS < l.FloorBytes() {
		t.Errorf("peak %d below floor %d", r.PeakRSS, l.FloorBytes())
	}
	if l.FloorBytes() > 4<<20 {
		t.Errorf("floor is %d", l.FloorBytes())
	}
}

func TestPeakAgreesWithTheKernel(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := helper("alloc", "64")
	c.Stdout = o.w
	r := mustRun(t, l, c)
	want := o.number(t)
	if diff := r.PeakRSS - want; diff < -want/20 || diff > want/20 {
		t.Errorf("peak %d, VmHWM %d", r.PeakRSS, want)
	}
	if r.PeakMemory() != r.PeakRSS {
		t.Errorf("%d differs from %d", r.PeakMemory(), r.PeakRSS)
	}
}

func TestPeakOfGrandchild(t *testing.T) {
	l := start1(t)
	c := helper("alloc", "48")
	c.Path, c.Args = "sh", []string{"sh", "-c", `"$0" 48; exit 0`, self()}
	if r := mustRun(t, l, c); r.PeakRSS < 48<<20 {
		t.Errorf("peak %d", r.PeakRSS)
	}
}

func TestPeakOfStray(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := helper("escape", "48")
	c.Stdout = o.w
	r := mustRun(t, l, c)
	if r.PeakRSS < 48<<20 {
		t.Errorf("peak %d", r.PeakRSS)
	}
	if r.Exit != 0 {
		t.Errorf("got %+v", r)
	}
	o.allGone(t)
}

func TestTreeSampler(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	in, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer release.Close()
	c := helper("alloc")
	c.Path, c.Args = "sh", []string{"sh", "-c", `"$0" 40 wait <&3 & "$0" 40 wait <&3 & wait`, self()}
	c.Stdout = o.w
	c.Extra = []*os.File{in}
	c.SampleTree = 5 * time.Millisecond

	done := make(chan Result)
	go func() {
		r, err := l.Run(background, c)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	o.line(t)
	o.line(t)
	// Both are now as large as they get and stay until the pipe is closed.
	const want = 75 << 20
	pids := l.Running()
	if len(pids) != 1 {
		t.Fatalf("running: %v", pids)
	}
	if sum, ok := treeRSS(pids[0], true); !ok || sum < want {
		t.Errorf("tree: %d, %v", sum, ok)
	}
	sampled := func() bool {
		for i := range l.trials.slots {
			if l.trials.slots[i].tree.Load() >= want {
				return true
			}
		}
		return false
	}
	waitFor(t, "a sample", sampled)
	release.Close()
	r := <-done
	if r.PeakTree < want || r.PeakMemory() != r.PeakTree {
		t.Errorf("got %+v", r)
	}
	if r.PeakRSS >= want {
		t.Errorf("single process: %d", r.PeakRSS)
	}
	if pids := l.Running(); len(pids) != 0 {
		t.Errorf("running: %v", pids)
	}
	if _, ok := treeRSS(pids[0], true); ok {
		t.Error("a process that is gone has a size")
	}
}

// waitFor is for what raises no event; it polls.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.After(deadline)
	for !done() {
		select {
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

const stubborn = `trap "" TERM INT HUP; (trap "" TERM INT HUP; echo ready; while :; do sleep 1000; done) & while :; do wait; done`

func TestTimeoutKillsTheGroup(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := shell(stubborn)
	c.Stdout = o.w
	c.Timeout = 200 * time.Millisecond
	r := mustRun(t, l, c)
	if !r.TimedOut || r.Exit != -1 || r.Signal != syscall.SIGKILL {
		t.Errorf("got %+v", r)
	}
	if r.Wall < c.Timeout/2 || r.Wall > deadline {
		t.Errorf("took %v", r.Wall)
	}
	o.allGone(t)

	c = Cmd{Path: lookTrue(t), Timeout: time.Hour}
	if r := mustRun(t, l, c); r.TimedOut {
		t.Errorf("got %+v", r)
	}
}

func TestTimeoutOfKept(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := shell(stubborn)
	c.Stdout = o.w
	c.Timeout = 100 * time.Millisecond
	c.Keep = true
	if r := mustRun(t, l, c); !r.TimedOut {
		t.Errorf("got %+v", r)
	}
	o.allGone(t)
}

func TestCancel(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	ctx, cancel := context.WithCancel(background)
	c := shell(stubborn)
	c.Stdout = o.w
	c.Timeout = time.Hour
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = o.r.ReadString('\n')
		cancel()
	}()
	r, err := l.Run(ctx, c)
	<-heard
	if !errors.Is(err, context.Canceled) || r.Signal != syscall.SIGKILL || r.TimedOut || r.Wall <= 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	o.allGone(t)
	if _, err := l.Run(ctx, Cmd{Path: lookTrue(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if r := mustRun(t, l, shell("exit 3")); r.Exit != 3 {
		t.Errorf("got %+v", r)
	}
}

func TestStraysDoNotOutliveTheRun(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	c := shell("(sleep 1000) & exec sleep 1000 & exit 5")
	c.Stdout = o.w
	if r := mustRun(t, l, c); r.Exit != 5 || r.Signal != 0 {
		t.Errorf("got %+v", r)
	}
	o.allGone(t)
}

func TestHarnessKilled(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			o := newOutput(t)
			script := stubborn
			args := []string{script}
			if keep {
				args = []string{"(" + stubborn + ") & exit 0", "keep"}
			}
			c := exec.Command(self(), args...)
			c.Env = helperEnviron("harness")
			c.Stdout, c.Stderr = o.w, os.Stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if got := o.line(t); got != "ready" {
				t.Fatalf("got %q", got)
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			o.allGone(t)
		})
	}
}

// underWay runs a command that does not end by itself; its error comes when it was ended.
func underWay(t *testing.T, l *Launcher, o *output) <-chan error {
	t.Helper()
	c := shell(stubborn)
	c.Stdout = o.w
	done := make(chan error)
	go func() {
		_, err := l.Run(background, c)
		done <- err
	}()
	o.line(t)
	return done
}

func TestLauncherKilled(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	done := underWay(t, l, o)
	if err := syscall.Kill(l.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	o.allGone(t)
	if _, err := l.Run(background, shell("exit")); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

func TestSignalsDoNotReachTheLauncher(t *testing.T) {
	l := start1(t)
	group, err := syscall.Getpgid(l.Pid())
	if err != nil || group != l.Pid() {
		t.Errorf("launcher %d is in group %d, %v", l.Pid(), group, err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGURG} {
		if err := syscall.Kill(l.Pid(), sig); err != nil {
			t.Fatal(err)
		}
		mustRun(t, l, Cmd{Path: lookTrue(t)})
	}
	if got := strings.TrimSpace(capture(t, l, shell("ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat; echo $$"))); got != "" {
		f := strings.Fields(got)
		if f[0] != f[1] {
			t.Errorf("command %s is in group %s", f[1], f[0])
		}
	}
}

func TestKeptDaemonSurvives(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	c := helper("escape", "1")
	c.Keep = true
	c.Stdin, c.Stdout = in, o.w
	if r := mustRun(t, l, c); r.Exit != 0 {
		t.Fatalf("got %+v", r)
	}

	// A trial that leaves strays, which are cleared up.
	strays := newOutput(t)
	c = helper("escape", "1")
	c.Stdout = strays.w
	mustRun(t, l, c)
	strays.allGone(t)
	c = shell(stubborn)
	c.Timeout = 50 * time.Millisecond
	mustRun(t, l, c)

	if _, err := feed.WriteString("alive\n"); err != nil {
		t.Fatal(err)
	}
	if got := o.line(t); got != "alive" {
		t.Errorf("got %q", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	o.allGone(t)
}

func TestClose(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	done := underWay(t, l, o)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	o.allGone(t)
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	c := shell("true")
	if _, err := l.Run(background, c); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	c.Keep = true
	if _, err := l.Run(background, c); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(l.Pid(), 0); err != syscall.ESRCH {
		t.Errorf("launcher is still there: %v", err)
	}
}

func TestStartFailures(t *testing.T) {
	l := start1(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shut, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	plain := write("plain", "echo\n", 0o644)
	noLine := write("no-line", "echo\n", 0o755)
	noInterpreter := write("no-interpreter", "#!/nonexistent/interpreter\n", 0o755)
	for _, test := range []struct {
		cmd  Cmd
		want error
		name string
	}{
		{Cmd{Path: filepath.Join(dir, "missing")}, fs.ErrNotExist, "missing"},
		{Cmd{Path: "no-such-program-anywhere"}, fs.ErrNotExist, "no-such-program-anywhere"},
		{Cmd{Path: "./missing", Dir: dir}, fs.ErrNotExist, "./missing"},
		{Cmd{Path: ""}, fs.ErrNotExist, `""`},
		{Cmd{Path: plain}, fs.ErrPermission, plain},
		{Cmd{Path: noLine}, syscall.ENOEXEC, "#!"},
		{Cmd{Path: noInterpreter}, fs.ErrNotExist, "interpreter"},
		{Cmd{Path: lookTrue(t), Dir: filepath.Join(dir, "nowhere")}, fs.ErrNotExist, "nowhere"},
		{Cmd{Path: lookTrue(t), Dir: plain}, syscall.ENOTDIR, plain},
		{Cmd{Path: lookTrue(t), Args: []string{"true", strings.Repeat("x", 200<<10)}}, syscall.E2BIG, "true"},
		{Cmd{Path: lookTrue(t), Args: []string{"true", strings.Repeat("x", 2*maxRequest)}}, syscall.E2BIG, "true"},
		{Cmd{Path: lookTrue(t), Env: []string{"A=\x00"}}, syscall.EINVAL, "zero"},
		{Cmd{Path: lookTrue(t), Stdin: shut}, fs.ErrClosed, "true"},
	} {
		_, err := l.Run(background, test.cmd)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.name) {
			t.Errorf("%.40q: got %v, want %v naming %s", test.cmd.Path, err, test.want, test.name)
		}
	}
	if r := mustRun(t, l, shell("exit 4")); r.Exit != 4 {
		t.Errorf("got %+v", r)
	}
	if kids := parents()[l.Pid()]; len(kids) != 0 {
		t.Errorf("left behind: %v", kids)
	}
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/prog": 0o755, "b/prog": 0o755, "b/data": 0o644, "c/data": 0o755} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path := func(dirs ...string) []string {
		return []string{"PATH=/nonexistent", "PATH=" + strings.Join(dirs, ":")}
	}
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	for _, test := range []struct {
		file, dir string
		env       []string
		want      string
		err       error
	}{
		{"prog", "", path(a, b), a + "/prog", nil},
		{"prog", "", path(b, a), b + "/prog", nil},
		{"data", "", path(b, c), c + "/data", nil},
		{"data", "", path(a, b), "", fs.ErrPermission},
		{"prog", dir, path("b"), b + "/prog", nil},
		{"prog", a, path(""), "", fs.ErrNotExist},
		{"prog", a, path("", "/nonexistent"), a + "/prog", nil},
		{"a/prog", dir, nil, a + "/prog", nil},
		{"./prog", b, path(a), b + "/prog", nil},
		{b + "/prog", a, path(a), b + "/prog", nil},
		{"./data", b, nil, "", fs.ErrPermission},
		{"./none", b, nil, "", fs.ErrNotExist},
		{"prog", "", []string{}, "", fs.ErrNotExist},
		{"a", dir, path("."), "", fs.ErrNotExist},
	} {
		got, err := Look(test.file, test.env, test.dir)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("Look(%q, %q, %q) = %q, %v", test.file, test.env, test.dir, got, err)
		}
	}
	if got, err := Look("sh", []string{}, ""); err != nil || !filepath.IsAbs(got) {
		t.Errorf("without PATH: %q, %v", got, err)
	}
}

func TestLargeRequestLeavesNoTrace(t *testing.T) {
	l := start1(t)
	mustRun(t, l, shell("exit 0"))
	floor := l.FloorBytes()
	c := shell("for a; do echo ${#a}; done")
	for range 10 {
		c.Args = append(c.Args, strings.Repeat("y", 100_000))
	}
	for range 3 {
		if got, want := capture(t, l, c), strings.Repeat("100000\n", 10); got != want {
			t.Fatalf("got %q", got)
		}
	}
	mustRun(t, l, shell("exit 0"))
	if peak := statusKiB(strconv.Itoa(l.Pid()), "VmHWM") << 10; peak > floor+512<<10 {
		t.Errorf("floor was %d, launcher's peak is %d", floor, peak)
	}
}

func TestReaderCloses(t *testing.T) {
	l := start1(t)
	o := newOutput(t)
	go func() {
		_, _ = o.r.ReadString('\n')
		o.f.Close()
	}()
	r := mustRun(t, l, Cmd{Path: "yes", Stdout: o.w, Timeout: deadline})
	if r.Signal != syscall.SIGPIPE || r.TimedOut {
		t.Errorf("got %+v", r)
	}
}

func TestConcurrent(t *testing.T) {
	l := start1(t)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for round := range 20 {
				code := (worker*20 + round) % 256
				c := shell(fmt.Sprintf("sleep 1000 & exit %d", code))
				timeout := (worker+round)%4 == 0
				if timeout {
					c = shell(stubborn)
					c.Timeout = 20 * time.Millisecond
				}
				c.Keep = round%10 == 9
				r, err := l.Run(background, c)
				if err != nil {
					t.Error(err)
					return
				}
				if r.TimedOut != timeout || !timeout && r.Exit != code {
					t.Errorf("worker %d round %d: %+v", worker, round, r)
				}
			}
		})
	}
	group.Wait()
	if kids := parents()[l.Pid()]; len(kids) != 0 {
		t.Errorf("left behind: %v", kids)
	}
}

func TestMoreThanSlots(t *testing.T) {
	l := start1(t)
	in, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer release.Close()
	var group sync.WaitGroup
	for range slots + 8 {
		group.Go(func() {
			if _, err := l.Run(background, Cmd{Path: "cat", Stdin: in}); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, "all slots in use", func() bool { return len(l.Running()) == slots })
	release.Close()
	group.Wait()
}

func TestThousandsOfRuns(t *testing.T) {
	runs := 3000
	if testing.Short() || raceBuild {
		runs = 300
	}
	l := start1(t)
	pid := strconv.Itoa(l.Pid())
	c := Cmd{Path: lookTrue(t), Env: []string{}}
	for range 10 {
		mustRun(t, l, c)
	}
	if _, err := l.Run(background, Cmd{Path: "/"}); err == nil {
		t.Error("a directory was executed")
	}
	rss, floor, size := statusKiB(pid, "VmRSS"), l.FloorBytes(), statusKiB(pid, "VmSize")
	here, there := countFDs(t, "self"), countFDs(t, pid)
	o := newOutput(t)
	for i := range runs {
		c := c
		if i%3 == 0 {
			c.Stdout, c.Stderr = o.w, o.w
		}
		if i%100 == 1 {
			_, _ = l.Run(background, Cmd{Path: "/", Stdin: o.w})
		}
		mustRun(t, l, c)
	}
	o.w.Close()
	o.f.Close()
	t.Logf("launcher: %d KiB resident, floor %d KiB", statusKiB(pid, "VmRSS"), l.FloorBytes()>>10)
	// The counters of the kernel are approximate; the size is exact.
	const slack = 512
	if now := statusKiB(pid, "VmRSS"); now > rss+slack {
		t.Errorf("resident: %d KiB, was %d", now, rss)
	}
	if now := l.FloorBytes(); now > floor+slack<<10 {
		t.Errorf("floor: %d, was %d", now, floor)
	}
	if now := statusKiB(pid, "VmSize"); now != size {
		t.Errorf("size: %d KiB, was %d", now, size)
	}
	if now := countFDs(t, "self"); now > here {
		t.Errorf("%d descriptors here, were %d", now, here)
	}
	if now := countFDs(t, pid); now != there {
		t.Errorf("%d descriptors in the launcher, were %d", now, there)
	}
	if n := statusKiB(pid, "Threads"); n != 1 {
		t.Errorf("%d threads", n)
	}
}

func TestStartAndCloseLeakNothing(t *testing.T) {
	start1(t).Close()
	here := countFDs(t, "self")
	for range 10 {
		l, err := Start()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if now := countFDs(t, "self"); now > here {
		t.Errorf("%d descriptors, were %d", now, here)
	}
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("THP_enabled:\t0")) {
		t.Error("huge pages are off in this process")
	}
}

func countFDs(t *testing.T, pid string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
