package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/assaylab/assay/lab/report"
)

// policy allows the two style sheets and the script that are ours, by their
// hashes, and nothing from anywhere else.
var policy = strings.Join([]string{
	"default-src 'none'",
	"style-src " + hashed(string(report.Style())) + " " + hashed(string(style())),
	"script-src " + hashed(string(script)),
	"img-src data:", "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
}, "; ")

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !ours(r.Host):
		http.Error(w, "This server answers to localhost and to loopback addresses only.", http.StatusForbidden)
	case !meant(r.Header):
		http.Error(w, "This is shown in a window of its own, to who opens it, and not to pages of other sites.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "This server only shows things: GET and HEAD.", http.StatusMethodNotAllowed)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// ours says whether a Host header names this machine by what no other can have:
// a name that resolves here may be anybody's.
func ours(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil && port != "" {
		host = name
	} else if in, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(in, "]") {
		host = strings.TrimSuffix(in, "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// meant says whether a person may be behind a request: a page of another site can
// have a browser ask for anything, as the source of a picture for instance. It
// could not see the answer, but keep the reader busy. What is no browser says
// nothing of this.
func meant(h http.Header) bool {
	switch h.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return h.Get("Sec-Fetch-Dest") == "document" // a link was followed
}

func (s *Server) routes() {
	s.mux.HandleFunc("/{$}", s.list)
	s.mux.HandleFunc("/runs/{run...}", s.run)
	s.mux.HandleFunc("/studies/{study...}", s.study)
	s.mux.HandleFunc("/compare", s.compare)
	s.mux.HandleFunc("/events", s.listEvents)
	s.mux.HandleFunc("/events/{run...}", s.runEvents)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.missing(w, "There is no such page.")
	})
}
