package server

import (
	"context"
	"slices"
	"strconv"
	"sync"
)

func digits(i int) string { return strconv.Itoa(i) }

// Kinds of latches are the first byte of their names.
const (
	sessionKind    = 's'
	collectionKind = 'c'
	docKind        = 'd'
	keyKind        = 'k'
)

// latches are the locks of a primary: sessions, collections, documents, unique keys.
// They live in memory only; the package comment says in which order they are taken and
// why nobody can wait for ever.
type latches struct {
	mu   sync.Mutex
	held map[string]*latch
}

type latch struct {
	exclusive *holder
	shared    int
	queue     []*waiter // in order of arrival
}

type waiter struct {
	by     *holder
	shared bool
	got    chan struct{}
}

func newLatches() *latches { return &latches{held: map[string]*latch{}} }

// holder is whoever holds latches: a write, or a transaction. It is used by
// one goroutine at a time.
type holder struct {
	l    *latches
	keys map[string]bool // to whether shared
}

func (l *latches) holder() *holder { return &holder{l: l} }

func (h *holder) has(key string) bool {
	_, ok := h.keys[key]
	return ok
}

// free says whether nobody holds or awaits the latch; then it is gone.
func (t *latch) free() bool { return t.exclusive == nil && t.shared == 0 && len(t.queue) == 0 }

func (t *latch) grant(by *holder, shared bool) bool {
	if t.exclusive != nil || !shared && t.shared > 0 {
		return false
	}
	if shared {
		t.shared++
	} else {
		t.exclusive = by
	}
	return true
}

// try takes a latch if it is free.
func (h *holder) try(key string, shared bool) bool {
	if h.has(key) {
		return true
	}
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return h.take(key, shared)
}

func (h *holder) take(key string, shared bool) bool {
	t := h.l.held[key]
	if t == nil {
		t = &latch{}
		h.l.held[key] = t
	}
	// Who comes later does not overtake, or a stream of shared holders would
	// starve an exclusive one.
	if len(t.queue) > 0 || !t.grant(h, shared) {
		return false
	}
	h.note(key, shared)
	return true
}

// note is for a latch that was granted.
func (h *holder) note(key string, shared bool) {
	if h.keys == nil {
		h.keys = map[string]bool{}
	}
	h.keys[key] = shared
}

// acquire takes a latch and waits for it until ctx ends.
func (h *holder) acquire(ctx context.Context, key string, shared bool) error {
	if h.has(key) {
		return nil
	}
	h.l.mu.Lock()
	if h.take(key, shared) {
		h.l.mu.Unlock()
		return nil
	}
	w := &waiter{by: h, shared: shared, got: make(chan struct{})}
	t := h.l.held[key]
	t.queue = append(t.queue, w)
	h.l.mu.Unlock()
	select {
	case <-w.got:
		h.note(key, shared)
		return nil
	case <-ctx.Done():
	}
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	select {
	case <-w.got:
		// It came at the last moment; giving it back is release's affair.
		h.note(key, shared)
	default:
		t.queue = slices.DeleteFunc(t.queue, func(o *waiter) bool { return o == w })
		h.l.wake(key, t)
	}
	return ctx.Err()
}

// release gives back everything.
func (h *holder) release() {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	for key := range h.keys {
		h.drop(key)
	}
}

// releaseOne gives back one latch.
func (h *holder) releaseOne(key string) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if h.has(key) {
		h.drop(key)
	}
}

// releaseKinds gives back all latches of some kinds.
func (h *holder) releaseKinds(kinds ...byte) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	for key := range h.keys {
		if slices.Contains(kinds, key[0]) {
			h.drop(key)
		}
	}
}

func (h *holder) drop(key string) {
	t := h.l.held[key]
	if h.keys[key] {
		t.shared--
	} else {
		t.exclusive = nil
	}
	delete(h.keys, key)
	h.l.wake(key, t)
}

// wake hands the latch to those at the head of the queue.
func (l *latches) wake(key string, t *latch) {
	for len(t.queue) > 0 && t.grant(t.queue[0].by, t.queue[0].shared) {
		close(t.queue[0].got)
		t.queue = t.queue[1:]
	}
	if t.free() {
		delete(l.held, key)
	}
}
