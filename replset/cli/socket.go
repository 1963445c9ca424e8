package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/assaylab/assay/replset"
)

// Who may use the socket is who may enter its folder, which the owner alone can: a
// socket is open to everybody for a moment before its own permissions are set.
const (
	socketFolder = "control"
	socketName   = "sock"
	askTimeout   = time.Minute
	longestAsk   = 64 << 10
)

type request struct {
	Verb string
	Args []string
}

type answer struct {
	Text  string
	Error string
	Usage bool // the error is one of the command line
}

// server takes requests for a set.
type server struct {
	set  *replset.Set
	l    net.Listener
	down chan struct{} // closed when somebody asked for the end
	once sync.Once

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	ended  chan struct{}
}

// listen opens the socket in the folder, which the set holds for this process alone:
// one that is there is left over.
func listen(dir string, set *replset.Set) (*server, error) {
	path := filepath.Join(dir, socketFolder, socketName)
	fail := func(err error) (*server, error) { return nil, fmt.Errorf("the control socket %s: %w", path, err) }
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EINVAL) {
		return fail(fmt.Errorf("%w: the path is too long for a socket; choose a --dir with a shorter path", err))
	}
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	s := &server{set: set, l: l, down: make(chan struct{}), ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.group.Go(s.accept)
	return s, nil
}

func (s *server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return // closed
		}
		s.group.Go(func() {
			defer c.Close()
			s.serve(c)
		})
	}
}

func (s *server) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(askTimeout))
	var r request
	if err := json.NewDecoder(io.LimitReader(c, longestAsk)).Decode(&r); err != nil {
		return
	}
	var a answer
	text, err := s.do(r)
	a.Text = text
	if err != nil {
		var bad usageError
		a.Error, a.Usage = err.Error(), errors.As(err, &bad)
	}
	_ = json.NewEncoder(c).Encode(a)
}

func (s *server) do(r request) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
	defer cancel()
	if r.Verb == "down" {
		s.once.Do(func() { close(s.down) })
		select {
		case <-s.ended:
			return "", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	for _, v := range verbs {
		if v.name == r.Verb {
			return v.run(ctx, s.set, r.Args)
		}
	}
	return "", usage("the set that runs does not know the verb %q; was it started by another version?", r.Verb)
}

// close ends the socket, after the set has ended.
func (s *server) close() error {
	close(s.ended)
	err := s.l.Close() // which removes it
	s.group.Wait()
	s.cancel()
	return err
}

// ask sends a request to the set that runs on the folder.
func ask(ctx context.Context, dir string, r request) (string, error) {
	path := filepath.Join(dir, socketFolder, socketName)
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return "", usage("no set runs on the folder %s; start one with `assay replset up --dir %s`, or give the --dir of one that runs", dir, dir)
	}
	if err != nil {
		return "", usage("the set on the folder %s cannot be asked: %w", dir, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := json.NewEncoder(c).Encode(r); err != nil {
		return "", fmt.Errorf("asking the set on %s: %w", dir, err)
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("the set on %s ended before it answered: %w", dir, err)
	}
	switch {
	case a.Usage:
		return a.Text, usageError{errors.New(a.Error)}
	case a.Error != "":
		return a.Text, errors.New(a.Error)
	}
	return a.Text, nil
}
