package server

import (
	"context"
	"time"

	"github.com/assaylab/assay/replset/store"
)

const (
	// pruneParts is how often within the timeout records are looked at.
	pruneParts = 30
	maxPrune   = 1000 // records in one entry
)

// pruneSessions removes the records of sessions that have not written for the session
// timeout, after which clients do not use them any more. They go by an entry of the
// log, so that all members forget the same, and under the sessions' latches, which a
// write holds from reading the record until its own is applied: a record that is
// being renewed stays.
func (s *Server) pruneSessions(ctx context.Context) error {
	role := s.topology.role()
	if !role.Writable {
		return nil
	}
	limit := uint64(time.Now().Add(-s.o.SessionTimeout).Unix()) << 32
	ids, err := s.m.Store.StaleSessions(limit, maxPrune)
	if err != nil {
		return err
	}
	w := s.writer(role.Term)
	for _, id := range ids {
		latch := sessionLatch(id)
		if !w.hold.try(latch, false) {
			continue
		}
		_, written, err := s.m.Store.Session(id)
		if err != nil {
			w.hold.release()
			return err
		}
		open := s.sessions.get(id, false)
		if written == 0 || written >= limit || open != nil && open.txn != nil {
			w.hold.releaseOne(latch)
			continue
		}
		w.effects.Sessions = append(w.effects.Sessions, store.SessionRecord{ID: id})
	}
	return s.ownCall(ctx, role).propose(w)
}
