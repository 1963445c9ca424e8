//go:build linux

package spawn

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test binary doubles as the commands that the tests run: helperEnv in the
// environment makes it one of the functions below.
const helperEnv = "SPAWN_TEST_HELPER"

var helpers = map[string]func(args []string){
	"alloc":   helperAlloc,
	"harness": helperHarness,
	"escape":  helperEscape,
	"daemon":  helperDaemon,
	"limits":  helperLimits,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		helpers[name](os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func helper(name string, args ...string) Cmd {
	return Cmd{Path: self(), Args: append([]string{"helper"}, args...), Env: helperEnviron(name)}
}

func helperEnviron(name string) []string {
	return append(os.Environ(), helperEnv+"="+name, "GOGC=off", "GORACE=atexit_sleep_ms=0")
}

func touch(mib int) []byte {
	b, err := syscall.Mmap(-1, 0, mib<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return b
}

// statusKiB reads a field of /proc/<pid>/status.
func statusKiB(pid, field string) int64 {
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			n, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return n
		}
	}
	return -1
}

// helperAlloc touches args[0] MiB, says its own peak and, with a second
// argument, stays until standard input ends.
func helperAlloc(args []string) {
	mib, _ := strconv.Atoi(args[0])
	b := touch(mib)
	fmt.Println(statusKiB("self", "VmHWM") << 10)
	if len(args) > 1 {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	runtime.KeepAlive(b)
}

// helperHarness runs a shell script through a launcher of its own.
func helperHarness(args []string) {
	l, err := Start()
	if err != nil {
		panic(err)
	}
	keep := len(args) > 1
	if _, err := l.Run(context.Background(), Cmd{Path: "sh", Args: []string{"sh", "-c", args[0]}, Stdout: os.Stdout, Keep: keep}); err != nil {
		panic(err)
	}
	forever()
}

// forever is not an empty select, which the runtime takes for a deadlock.
func forever() {
	for range time.Tick(time.Hour) {
	}
}

// helperEscape starts helperDaemon in a session of its own and ends when that
// says that it is ready.
func helperEscape(args []string) {
	c := exec.Command(self(), args...)
	c.Env = helperEnviron("daemon")
	c.Stdout = os.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	c.Stdin = os.Stdin
	c.ExtraFiles = []*os.File{w}
	if err := c.Start(); err != nil {
		panic(err)
	}
	w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		panic(err)
	}
}

// helperDaemon allocates, reports on descriptor 3 and then sends back what it is
// sent, for ever.
func helperDaemon(args []string) {
	mib, _ := strconv.Atoi(args[0])
	b := touch(mib)
	ready := os.NewFile(3, "ready")
	fmt.Fprintln(ready, "ready")
	ready.Close()
	_, _ = io.Copy(os.Stdout, os.Stdin)
	runtime.KeepAlive(b)
	forever()
}

func helperLimits([]string) {
	l, err := Start()
	if err != nil {
		panic(err)
	}
	if _, err := l.Run(context.Background(), Cmd{Path: "sh", Args: []string{"sh", "-c", "ulimit -Sn"}, Stdout: os.Stdout}); err != nil {
		panic(err)
	}
	if err := l.Close(); err != nil {
		panic(err)
	}
}
