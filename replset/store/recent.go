package store

import (
	"bytes"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// recent is the newest versions of documents that were written last, in memory: what
// was just written is what is read, and written, next.
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
	docs   map[string]newest
	bytes  int
	staged []staged // by Apply, in order; Visible brings them in
}

type newest struct {
	doc   bsoncore.Document
	stamp uint64
}

type staged struct {
	prefix string // of the document's versions; "" is all documents
	doc    bsoncore.Document
	stamp  uint64
}

// recentBytes bounds what is kept.
const recentBytes = 4 << 20

// recentExtra is about what a document costs beside its bytes.
const recentExtra = 128

func (r *recent) stage(prefix []byte, doc bsoncore.Document, stamp uint64) {
	r.staged = append(r.staged, staged{string(prefix), doc, stamp})
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
		if s.prefix == "" {
			r.docs, r.bytes = nil, 0
			continue
		}
		if was, ok := r.docs[s.prefix]; ok {
			r.bytes -= len(s.prefix) + len(was.doc) + recentExtra
			delete(r.docs, s.prefix)
		}
		if s.doc == nil || len(s.doc) > recentBytes/16 {
			continue
		}
		if r.docs == nil {
			r.docs = map[string]newest{}
		}
		// A copy: what was applied lies in an entry of the log, which may be large.
		r.docs[s.prefix] = newest{bytes.Clone(s.doc), s.stamp}
		r.bytes += len(s.prefix) + len(s.doc) + recentExtra
	}
	clear(r.staged)
	r.staged = r.staged[:0]
	for prefix, n := range r.docs { // any will do
		if r.bytes <= recentBytes {
			break
		}
		r.bytes -= len(prefix) + len(n.doc) + recentExtra
		delete(r.docs, prefix)
	}
}

// get returns the version that a reader at a timestamp sees, if it is here.
func (r *recent) get(prefix []byte, at uint64) (doc bsoncore.Document, stamp uint64, ok bool) {
	r.mu.RLock()
	n, ok := r.docs[string(prefix)]
	r.mu.RUnlock()
	if !ok || n.stamp > at {
		return nil, 0, false
	}
	return bytes.Clone(n.doc), n.stamp, true
}
