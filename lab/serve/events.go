package serve

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of the streams of events.
const (
	mostStreams = 32
	beat        = 15 * time.Second // without news, so that a reader who is gone is noticed
	sendTime    = 10 * time.Second // that a reader may take to receive
)

// stream sends server-sent events to one reader.
type stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	last time.Time
}

// news is what has changed since a version: parts of the page by the id of the
// element that they fill, or that the page is another now.
type news struct {
	version uint64
	reload  bool
	ids     []string
	parts   []template.HTML
}

func (n *news) add(id string, part template.HTML) {
	n.ids, n.parts = append(n.ids, id), append(n.parts, part)
}

// listEvents tells of rows that changed.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, func(seen uint64) news {
		n := news{version: s.version, reload: s.listed > seen}
		if n.reload || s.version == seen {
			return n
		}
		v := s.overview()
		n.add("counts", part("counts", v))
		n.add("studies", part("studies", v))
		for i, e := range s.order {
			if e.changed > seen {
				n.add(e.id, part("row", v.Rows[i]))
			}
		}
		return n
	})
}

// runEvents tells how far a run under way is, and when it no longer is.
func (s *Server) runEvents(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("run")
	s.mu.Lock()
	known := s.runs[key] != nil
	s.mu.Unlock()
	if !known {
		http.Error(w, "There is no such run in this directory.", http.StatusNotFound)
		return
	}
	s.stream(w, r, func(seen uint64) news {
		e := s.runs[key]
		n := news{version: s.version, reload: e == nil || e.state != running}
		if !n.reload && e.changed > seen {
			n.add("progress", part("progress", s.row(e).Progress))
		}
		return n
	})
}

// stream sends what since says is new, once a tick, until the page is another,
// the reader is gone or the server is closed. since is called with s.mu held.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, since func(seen uint64) news) {
	s.mu.Lock()
	full := s.streams >= mostStreams
	if !full {
		s.streams++
	}
	s.mu.Unlock()
	if full {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages listen already.", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		s.mu.Lock()
		s.streams--
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	out := &stream{w: w, ctl: http.NewResponseController(w), last: time.Now()}
	// The time for a request is over long before the stream is.
	_ = out.ctl.SetReadDeadline(time.Time{})
	if !out.write(": here\n\n") {
		return
	}
	seen, known := s.seenBy(r)
	look := time.NewTicker(s.tick)
	defer look.Stop()
	for {
		if err := s.refresh(); err != nil || !known {
			out.send("reload", "", "{}")
			return
		}
		s.mu.Lock()
		n := since(seen)
		s.mu.Unlock()
		if n.reload {
			out.send("reload", "", "{}")
			return
		}
		seen = n.version
		if !out.news(fmt.Sprintf("%s-%d", s.boot, seen), n) {
			return
		}
		select {
		case <-look.C:
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// seenBy is the version that the reader has seen: that of the last event
// before it lost the stream, or that of its page. It is false for a version of
// another server.
func (s *Server) seenBy(r *http.Request) (uint64, bool) {
	seen := r.Header.Get("Last-Event-ID")
	if seen == "" {
		seen = r.URL.Query().Get("seen")
	}
	boot, number, _ := strings.Cut(seen, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil && boot == s.boot
}

// news sends the parts, or a sign of life now and then.
func (o *stream) news(id string, n news) bool {
	for i := range n.ids {
		b, err := json.Marshal(map[string]string{"id": n.ids[i], "html": string(n.parts[i])})
		if err != nil || !o.send("part", id, string(b)) {
			return false
		}
	}
	if len(n.ids) == 0 && time.Since(o.last) >= beat {
		return o.write(": nothing new\n\n")
	}
	return true
}

func (o *stream) send(event, id, data string) bool {
	text := "event: " + event + "\ndata: " + data + "\n"
	if id != "" {
		text += "id: " + id + "\n"
	}
	return o.write(text + "\n")
}

func (o *stream) write(text string) bool {
	o.last = time.Now()
	_ = o.ctl.SetWriteDeadline(o.last.Add(sendTime))
	_, err := o.w.Write([]byte(text))
	return err == nil && o.ctl.Flush() == nil
}
