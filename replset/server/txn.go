package server

import (
	"context"
	"errors"
	"time"
)

type txnState int

const (
	txnNone txnState = iota
	txnOpen
	txnCommitted
	txnAborted
)

// transaction is one that is open on this primary. It belongs to its session.
type transaction struct {
	view    *view
	writer  *writer
	begun   time.Time
	cursors []int64
}

func (s *session) abort() {
	if s.txn == nil {
		return
	}
	s.txn.writer.hold.release()
	s.txn.view.release()
	s.txn = nil
	if s.state == txnOpen {
		s.state = txnAborted
	}
}

// abortTransaction ends a session's transaction and its cursors.
func (s *Server) abortTransaction(ss *session) {
	if ss.txn != nil {
		s.cursors.kill(ss.txn.cursors)
	}
	ss.abort()
}

func noSuchTransaction(number int64) error {
	return errorf(codeNoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted or does not exist.", number)
}

// checkoutTransaction begins a transaction or finds the one that goes on.
func (k *call) checkoutTransaction() error {
	ss := k.session
	if k.start {
		if k.number == ss.number || k.number == k.record.Number {
			return errorf(117, "Transaction number %d was used before on this session", k.number)
		}
		k.s.abortTransaction(ss)
		ss.number, ss.state = k.number, txnOpen
		return nil
	}
	if k.number > ss.number {
		if k.record.Number == k.number && k.record.Committed {
			ss.number, ss.state = k.number, txnCommitted
		} else {
			if k.cmd.name == "abortTransaction" {
				// The client has given it up. Its first statement, sent over a connection
				// that was closed meanwhile, may still come, and what it would open nobody
				// would end.
				k.s.abortTransaction(ss)
				ss.number, ss.state = k.number, txnAborted
			}
			return noSuchTransaction(k.number)
		}
	}
	if ss.txn != nil && ss.txn.writer.term != k.role.Term {
		k.s.abortTransaction(ss)
	}
	switch {
	case k.cmd.endsTxn:
		return nil
	case ss.state == txnCommitted:
		return errorf(codeTxnCommitted, "Transaction %d has been committed.", k.number)
	case ss.state != txnOpen:
		return noSuchTransaction(k.number)
	case ss.txn == nil && !k.start:
		return noSuchTransaction(k.number)
	}
	k.txn = ss.txn
	return nil
}

// runInTransaction runs one statement. A statement that fails ends the
// transaction.
func (k *call) runInTransaction() error {
	if k.start {
		if err := k.begin(); err != nil {
			k.s.abortTransaction(k.session)
			return err
		}
	}
	err := k.cmd.run(k)
	if err != nil || k.failed {
		k.s.abortTransaction(k.session)
	}
	if errors.Is(err, context.DeadlineExceeded) && k.ctx.Err() == nil {
		return errorf(codeLockTimeout, "Unable to acquire lock within %v", k.s.o.LockTimeout)
	}
	return err
}

// begin takes the snapshot.
func (k *call) begin() error {
	if err := k.ready(); err != nil {
		return err
	}
	v := k.s.now(k.ctx)
	if k.rc.at != 0 {
		v.release()
		var err error
		if v, err = k.s.past(k.ctx, k.rc.at); err != nil {
			return err
		}
	}
	w := k.s.writer(k.role.Term)
	w.at = max(v.at, 1)
	v.own = w
	k.txn = &transaction{view: v, writer: w, begun: time.Now()}
	k.session.txn, k.session.state = k.txn, txnOpen
	return nil
}

// lockContext bounds how long a transaction waits for a collection.
func (k *call) lockContext() (context.Context, context.CancelFunc) {
	if k.txn == nil {
		return k.ctx, func() {}
	}
	return context.WithTimeout(k.ctx, k.s.o.LockTimeout)
}

// expireTransactions ends those that are too old, or of a term that is over. A
// session in use is left for the next round.
func (s *Server) expireTransactions(now time.Time) {
	role := s.topology.role()
	for _, ss := range s.sessions.all() {
		h := s.latches.holder()
		if !h.try(sessionLatch(ss.id), false) {
			continue
		}
		if t := ss.txn; t != nil && (now.Sub(t.begun) > s.o.TransactionLifetime || !role.Writable || role.Term != t.writer.term) {
			s.abortTransaction(ss)
		}
		if ss.txn == nil {
			s.sessions.forgetUnused(ss, now.Add(-s.o.SessionTimeout))
		}
		h.release()
	}
}

func cmdCommitTransaction(k *call) error {
	ss := k.session
	switch ss.state {
	case txnCommitted:
		// Committed before; the write concern may be another one.
		k.index = k.s.m.Applied()
		return nil
	case txnOpen:
	default:
		return noSuchTransaction(k.number)
	}
	t := ss.txn
	if t == nil {
		return noSuchTransaction(k.number)
	}
	ss.txn = nil
	k.s.cursors.kill(t.cursors)
	defer t.view.release()
	if t.writer.empty() {
		t.writer.hold.release()
		ss.state = txnCommitted
		return nil
	}
	rec := (&record{Number: k.number, Committed: true}).encode(k.lsid)
	t.writer.effects.Sessions = append(t.writer.effects.Sessions, rec)
	if err := k.propose(t.writer); err != nil {
		ss.state = txnAborted
		return err
	}
	if k.wcError == nil {
		ss.state = txnCommitted
		return nil
	}
	// The entry's fate is open: who asks again looks at the record, here or on the
	// next primary.
	ss.state, ss.number = txnNone, k.number-1
	return nil
}

func cmdAbortTransaction(k *call) error {
	switch k.session.state {
	case txnCommitted:
		return errorf(codeTxnCommitted, "Transaction %d has been committed.", k.number)
	case txnOpen:
		if k.session.txn == nil {
			k.session.state = txnAborted
			return noSuchTransaction(k.number)
		}
		k.s.abortTransaction(k.session)
		return nil
	}
	return noSuchTransaction(k.number)
}
