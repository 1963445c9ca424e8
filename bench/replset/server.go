package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"

	"github.com/assaylab/assay/replset"
)

const (
	serverSet    = "replset"
	serverFerret = "ferretdb"
)

// errNoPeer is returned where the peer is not installed.
var errNoPeer = errors.New("PostgreSQL 15 is not installed; on Debian: apt-get install postgresql")

// server is a server process.
type server struct {
	uri   string
	cmd   *exec.Cmd
	in    io.Closer
	extra func() // ends what the server stands on
	also  []int  // process whose children count as the server
}

// startServer starts this program again as a server and reads its URI. It ends
// when its input closes.
func startServer(ctx context.Context, name, dir, profile string) (*server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &server{extra: func() {}}
	url := dir
	if name == serverFerret {
		var err error
		if url, err = s.startPostgres(ctx, dir); err != nil {
			return nil, err
		}
		profile = ""
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(self, "-serve", name, "-dir", url, "-profile", profile)
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.in = in
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.end()
		return nil, fmt.Errorf("said no address: %w", err)
	}
	s.uri = strings.TrimSpace(line)
	return s, nil
}

func (s *server) end() {
	s.in.Close()
	_ = s.cmd.Wait()
	s.extra()
}

// cpu is the CPU time of the server's processes so far.
func (s *server) cpu() time.Duration {
	total := ticks(s.cmd.Process.Pid)
	for _, parent := range s.also {
		total += ticks(parent)
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && stat(pid, 3) == parent {
				total += ticks(pid)
			}
		}
	}
	return time.Duration(total) * (time.Second / 100)
}

func ticks(pid int) int { return stat(pid, 13) + stat(pid, 14) }

// stat is a field of /proc/PID/stat, counted from 0 at the process id.
func stat(pid, field int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if field-2 >= len(f) {
		return 0
	}
	n, _ := strconv.Atoi(f[field-2])
	return n
}

// beServer serves until its input ends.
func beServer(ctx context.Context, name, at, profile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if name == serverFerret {
		f, err := ferretdb.New(&ferretdb.Config{
			Listener: ferretdb.ListenerConfig{TCP: "127.0.0.1:0"}, Handler: "postgresql", PostgreSQLURL: at,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		go func() { fmt.Println(f.MongoDBURI()) }()
		return f.Run(ctx)
	}
	if profile != "" {
		f, err := os.Create(filepath.Join(profile, "cpu.pprof"))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	set, err := replset.New(ctx, replset.Options{Dir: at, Timing: replset.MongoDB})
	if err != nil {
		return err
	}
	defer set.Close()
	fmt.Println(set.URI())
	<-ctx.Done()
	return nil
}

const postgresBin = "/usr/lib/postgresql/15/bin"

// startPostgres makes a cluster with its own defaults, fsync on, that listens
// on a socket in the folder, and returns its URL.
func (s *server) startPostgres(ctx context.Context, dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(postgresBin, "initdb")); err != nil {
		return "", errNoPeer
	}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT} // whatever ends the bench ends the peer
	name := "postgres"
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		u, err := user.Lookup(name)
		if err != nil {
			return "", errNoPeer
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return "", err
		}
	}
	data := filepath.Join(dir, "pg")
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(postgresBin, args[0]), args[1:]...)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		return cmd
	}
	if out, err := run("initdb", "-D", data, "-U", name, "-A", "trust", "--no-locale", "-E", "UTF8").CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	sockets, err := os.MkdirTemp("", "pg") // a socket's path has at most 107 bytes
	if err != nil {
		return "", err
	}
	if attr.Credential != nil {
		if err := os.Chown(sockets, int(attr.Credential.Uid), int(attr.Credential.Gid)); err != nil {
			return "", err
		}
	}
	pg := run("postgres", "-D", data, "-k", sockets, "-h", "", "-c", "max_connections=300")
	if err := pg.Start(); err != nil {
		return "", err
	}
	s.also = []int{pg.Process.Pid}
	s.extra = func() {
		_ = pg.Process.Signal(syscall.SIGINT)
		_ = pg.Wait()
		os.RemoveAll(sockets)
	}
	for {
		if run("pg_isready", "-q", "-h", sockets).Run() == nil {
			break
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	if out, err := run("createdb", "-h", sockets, "-U", name, "ferret").CombinedOutput(); err != nil {
		return "", fmt.Errorf("createdb: %w: %s", err, out)
	}
	return fmt.Sprintf("postgres://%s@/ferret?host=%s&pool_max_conns=100", name, sockets), nil
}

// syncTimes are the times of appends of 512 bytes to a zero-filled file, each
// synced.
func syncTimes(dir string, n int) ([]time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, n*512)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	times := make([]time.Duration, n)
	block := make([]byte, 512)
	for i := range times {
		start := time.Now()
		if _, err := f.WriteAt(block, int64(i)*512); err != nil {
			return nil, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	return times, nil
}
