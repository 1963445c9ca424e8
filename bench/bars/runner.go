package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/assaylab/assay/lab/host"
)

// runner runs sources, one at a time.
type runner struct {
	root string // of the repository
	out  io.Writer
	logs string // folder for what the commands print
	bin  string // folder with the program assay
	n    int
	env  host.Provenance
}

func newRunner(root string, out io.Writer) (*runner, error) {
	r := &runner{root: root, out: out, logs: filepath.Join(root, "runs", "bars-"+time.Now().Format("20060102-150405"))}
	if err := os.MkdirAll(r.logs, 0o755); err != nil {
		return nil, err
	}
	var err error
	if r.bin, err = os.MkdirTemp("", "bars"); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(r.bin, "assay"), "./cmd/assay")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		r.close()
		return nil, fmt.Errorf("building assay: %w\n%s", err, text)
	}
	r.env = host.Machine{}.Provenance(root, r.logs)
	return r, nil
}

func (r *runner) close() { _ = os.RemoveAll(r.bin) }

// measured is what a source left.
type measured struct {
	source *source
	began  time.Time
	took   time.Duration
	output string
	runs   []*finished
	env    *host.Provenance
	others float64 // share of the processors that others used, NaN if not known
	err    error   // why no figure of it counts
}

// measure runs a source, or reads the runs that are given for it.
func (r *runner) measure(ctx context.Context, s *source) *measured {
	m := &measured{source: s, began: time.Now().UTC(), env: &r.env, others: math.NaN()}
	dirs := s.given()
	if len(dirs) > 0 {
		fmt.Fprintf(r.out, "%s: %d runs that %s names\n", s.line, len(dirs), s.variable())
	} else {
		before := snapshot()
		for range max(1, s.times) {
			dir := r.command(ctx, s, m)
			if m.err != nil {
				break
			}
			dirs = append(dirs, dir)
		}
		m.took = time.Since(m.began)
		m.others = foreign(before, snapshot())
	}
	if m.err == nil && s.study != "" {
		m.read(dirs)
	}
	return m
}

// read opens the finished runs of a study. The date and the machine are then theirs.
func (m *measured) read(dirs []string) {
	for _, dir := range dirs {
		f, err := open(dir, m.source.study)
		if err != nil {
			m.err = err
			return
		}
		m.runs = append(m.runs, f)
	}
	if len(m.runs) == 0 {
		m.err = fmt.Errorf("%s names no folder", m.source.variable())
		return
	}
	last := m.runs[len(m.runs)-1]
	m.began, m.took, m.env, m.others = last.began.UTC(), last.took, last.env, last.others
}

// command runs a source once and keeps what it prints. It returns the folder that $RUN
// was.
func (r *runner) command(ctx context.Context, s *source, m *measured) (dir string) {
	r.n++
	base := filepath.Join(r.logs, fmt.Sprintf("%02d", r.n))
	dir = base + "-run"
	log, err := os.Create(base + ".log")
	if err != nil {
		m.err = err
		return dir
	}
	defer log.Close()
	fmt.Fprintf(r.out, "%s (output in %s)\n", s.line, filepath.Join("runs", filepath.Base(r.logs), filepath.Base(log.Name())))
	fmt.Fprintf(log, "$ %s\n", s.line)
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", s.line)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "RUN="+dir, "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdout = io.MultiWriter(log, &text)
	cmd.Stderr = cmd.Stdout
	// What a command started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	m.output += text.String()
	status := cmd.ProcessState.ExitCode()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		m.err = fmt.Errorf("the command was ended after %s", took(s.limit))
	case err != nil && status < 0:
		m.err = fmt.Errorf("the command: %w", err)
	case !slices.Contains(s.statuses(), status):
		m.err = fmt.Errorf("the command ended with status %d", status)
	}
	return dir
}

func (s *source) statuses() []int {
	if s.exits == nil {
		return []int{0}
	}
	return s.exits
}

// snapshot is what the machine and this program with all that it started have used.
func snapshot() host.Counters {
	return host.Machine{}.Counters(host.Machine{}.OwnCPU(os.Getpid()))
}

func foreign(a, b host.Counters) float64 {
	for _, r := range host.Between(a, b) {
		if r.Probe == "foreign_cpu" && r.Available() {
			return r.Value
		}
	}
	return math.NaN()
}

// machine describes what figures were taken on. It names neither host nor folder.
func machine(p *host.Provenance) string {
	var parts []string
	add := func(format string, known bool, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add("%d × %s", p.CPUs > 0 && p.CPUModel != "", p.CPUs, p.CPUModel)
	add("virtual", p.Hypervisor == "present")
	add("%.1f GiB", p.MemoryBytes > 0, float64(p.MemoryBytes)/(1<<30))
	add("%s", p.ScratchFS != "", p.ScratchFS)
	add("%s", p.Distribution != "", p.Distribution)
	add("%s/%s", p.OS != "", p.OS, p.Arch)
	add("%s", p.GoVersion != "", p.GoVersion)
	return strings.Join(parts, ", ")
}
