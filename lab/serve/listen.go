package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// How long a connection may take. A stream of events sets its own times.
const (
	headTime  = 5 * time.Second
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
	idleTime  = time.Minute
	stopTime  = 3 * time.Second
	mostHead  = 16 << 10 // bytes of a request's header
)

// ErrNotLoopback is returned by Listen for an address that others can reach.
var ErrNotLoopback = errors.New("is no loopback address")

// Listen listens on a loopback address, such as 127.0.0.1:0, [::1]:8080 or
// localhost:8080. Port 0 is one that is free. It refuses every other address:
// there is no password, and the pages are for one person on this machine.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address with a port, such as 127.0.0.1:8080", addr)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() {
		return nil, fmt.Errorf("%q %w; others could read the runs there. Give 127.0.0.1:PORT, and reach it from afar through ssh -L", addr, ErrNotLoopback)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s %w", ln.Addr(), ErrNotLoopback), ln.Close())
	}
	return ln, nil
}

// Serve answers on a listener until the context ends, which is no error. It
// closes the listener and the server.
func Serve(ctx context.Context, ln net.Listener, s *Server) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: headTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHead,
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.stop() // streams would go on for as long as their readers do
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if err = h.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
			err = h.Close()
		}
	}
	return errors.Join(err, s.Close())
}
