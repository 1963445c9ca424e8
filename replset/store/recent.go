package store

import (
	"bytes"
	"sync"
)

// recent is the newest versions of documents, and records of sessions, that were written
// last, in memory: what was just written is what is read, and written, next.
//
//  1. A version comes in when it is visible: after the batch that it is in was
//     committed, and before a reader is given its timestamp.
//  2. So who reads at a timestamp at or above that of a version that is here reads this
//     version: a newer one would have taken its place. Who reads below is sent on.
//  3. What removes documents takes them out, in the same moment. A collection that is
//     dropped, and a snapshot of another member, take out all.
//
// It is filled by what is applied and never by who reads: a reader may hold an old
// version while a newer one comes in.
type recent struct {
	mu     sync.RWMutex
	docs   map[string]*newest // by the prefix of their versions, or the session's key
	bytes  int
	staged []staged // by Apply, in order; Visible brings them in
}

// newest is changed in place, under the lock.
type newest struct {
	doc   []byte
	stamp uint64
}

func (n *newest) weight(prefix int) int { return prefix + cap(n.doc) + recentExtra }

type staged struct {
	prefix []byte // nil is all there are
	doc    []byte // empty if it is gone
	stamp  uint64
}

const (
	// recentBytes bounds what is kept.
	recentBytes = 4 << 20
	// recentLargest is the largest document that is.
	recentLargest = recentBytes / 16
	// recentExtra is about what a document costs beside its bytes.
	recentExtra = 128
)

// stage takes prefix and doc, which must stay as they are until publish.
func (r *recent) stage(prefix, doc []byte, stamp uint64) {
	r.staged = append(r.staged, staged{prefix, doc, stamp})
}

func (r *recent) stageAll() { r.staged = append(r.staged, staged{}) }

// publish brings in what was staged.
func (r *recent) publish() {
	if len(r.staged) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.staged {
		r.bring(s)
	}
	clear(r.staged)
	r.staged = r.staged[:0]
	for prefix, n := range r.docs { // any will do
		if r.bytes <= recentBytes {
			break
		}
		r.bytes -= n.weight(len(prefix))
		delete(r.docs, prefix)
	}
}

func (r *recent) bring(s staged) {
	if s.prefix == nil {
		r.docs, r.bytes = nil, 0
		return
	}
	n := r.docs[string(s.prefix)]
	if n != nil {
		r.bytes -= n.weight(len(s.prefix))
	}
	if len(s.doc) == 0 || len(s.doc) > recentLargest {
		if n != nil {
			delete(r.docs, string(s.prefix))
		}
		return
	}
	if n == nil {
		if r.docs == nil {
			r.docs = map[string]*newest{}
		}
		n = &newest{}
		r.docs[string(s.prefix)] = n
	}
	if cap(n.doc) > 2*len(s.doc)+recentExtra {
		n.doc = nil
	}
	// A copy: what was applied lies in an entry of the log, which may be large.
	n.doc, n.stamp = append(n.doc[:0], s.doc...), s.stamp
	r.bytes += n.weight(len(s.prefix))
}

// get returns a copy of the version that a reader at a timestamp sees, if it is here.
func (r *recent) get(prefix []byte, at uint64) (doc []byte, stamp uint64, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n := r.docs[string(prefix)]
	if n == nil || n.stamp > at {
		return nil, 0, false
	}
	return bytes.Clone(n.doc), n.stamp, true
}
