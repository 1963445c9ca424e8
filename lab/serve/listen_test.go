package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	for _, addr := range []string{
		":0", ":8080", "0.0.0.0:0", "[::]:0", "10.0.0.1:0", "192.168.0.1:80", "example.com:80", "localhost.example.com:0", "8080", "127.0.0.1", "", "[::ffff:10.0.0.1]:0", "169.254.0.1:0", "255.255.255.255:0",
	} {
		ln, err := Listen(t.Context(), addr)
		if err == nil {
			ln.Close()
			t.Errorf("%q: listens on %s", addr, ln.Addr())
		}
		if _, _, bad := net.SplitHostPort(addr); bad == nil && !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0", "[::1]:0"} {
		ln, err := Listen(t.Context(), addr)
		if err != nil {
			if strings.HasPrefix(addr, "[") {
				t.Logf("%s: %v; no IPv6 here", addr, err)
				continue
			}
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("%s: listens on %s", addr, ln.Addr())
		}
		if _, err := Listen(t.Context(), ln.Addr().String()); err == nil {
			t.Errorf("%s was free twice", ln.Addr())
		}
		ln.Close()
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	dir := runs(t)
	begin(t, filepath.Join(dir, "live"))
	s, err := New("assay", dir)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, s) }()
	url := "http://" + ln.Addr().String()
	resp, err := http.Get(url + "/events/live?seen=" + s.boot + "-0")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	if _, err := http.Get(url + "/"); err == nil {
		t.Error("still answers")
	}
}
