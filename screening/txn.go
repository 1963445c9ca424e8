package screening

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// Cause is what an attempt lost against.
type Cause string

const (
	Unattributed Cause = "unattributed" // Store.Attribute may tell
	StudySave    Cause = "study-save"   // a write to the study that was not a fold
	StudyFold    Cause = "study-fold"   // folds alone moved the study
	ProjectToken Cause = "project-token"
	Statistics   Cause = "statistics"
	ModeMoved    Cause = "mode-moved"
	Interrupted  Cause = "interrupted" // a step-down, a broken connection: nothing was written
)

// lost ends an attempt: nothing was written, and the next one may succeed.
type lost struct {
	cause Cause
	err   error
	now   *position // of the study, if the attempt has found out
}

func (e *lost) Error() string {
	if e.err == nil {
		return fmt.Sprintf("%v (%s)", ErrStale, e.cause)
	}
	return fmt.Sprintf("%v (%s): %v", ErrStale, e.cause, e.err)
}

func (e *lost) Unwrap() []error { return []error{ErrStale, e.err} }

// inDoubt is a write that may or may not have happened.
type inDoubt struct{ err error }

func (e *inDoubt) Error() string { return e.err.Error() }
func (e *inDoubt) Unwrap() error { return e.err }

const (
	labelTransient     = "TransientTransactionError"
	labelUnknownCommit = "UnknownTransactionCommitResult"
	codeWriteConflict  = 112
)

// blame turns an error that ended a transaction into a lost attempt, against cause
// if it was a write conflict.
func blame(err error, cause Cause) error {
	var server mongo.ServerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server) && server.HasErrorCode(codeWriteConflict):
		return &lost{cause: cause, err: err}
	case mongo.IsDuplicateKeyError(err):
		return &lost{cause: cause, err: err}
	case labelled(err, labelTransient):
		return &lost{cause: Interrupted, err: err}
	}
	return err
}

func labelled(err error, label string) bool {
	var with interface{ HasErrorLabel(string) bool }
	return errors.As(err, &with) && with.HasErrorLabel(label)
}

// transact runs fn in one snapshot transaction with majority commit. An error of fn
// ends it without a trace. An inDoubt error says that the commit may have gone through.
//
// Neither end is given up when ctx ends, but half a WriterGrace later: a transaction
// that nobody ends would keep others waiting for its lifetime. The other half is for
// what comes before.
func (s *Store) transact(ctx context.Context, fn func(context.Context) error) error {
	sess, err := s.db.Client().StartSession()
	if err != nil {
		return err
	}
	defer sess.EndSession(context.WithoutCancel(ctx))
	err = sess.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()))
	if err != nil {
		return err
	}
	err = fn(mongo.NewSessionContext(ctx, sess))
	if err == nil {
		err = ctx.Err()
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.WriterGrace/2)
	defer cancel()
	if err != nil {
		_ = sess.AbortTransaction(end) // it is gone, or ends with its lifetime
		return err
	}
	for first := true; ; first = false {
		switch err := sess.CommitTransaction(end); {
		case err == nil:
			return nil
		case labelled(err, labelUnknownCommit) && end.Err() == nil:
			if pause(end, 5*time.Millisecond) != nil {
				return &inDoubt{err}
			}
		case first && labelled(err, labelTransient): // after a commit in doubt it would prove less
			return blame(err, Unattributed)
		default:
			return &inDoubt{err}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// swap replaces documents whose version was raised by one since they were read; one
// that was read as version 0 is new. If any has changed meanwhile, the attempt is lost.
func swap[T any](ctx context.Context, c *mongo.Collection, docs []T, key func(T) (id any, version int64)) error {
	if len(docs) == 0 {
		return nil
	}
	models := make([]mongo.WriteModel, len(docs))
	for i, d := range docs {
		id, version := key(d)
		models[i] = mongo.NewReplaceOneModel().SetFilter(at(id, version-1)).SetReplacement(d).SetUpsert(version == 1)
	}
	res, err := c.BulkWrite(ctx, models)
	if err != nil {
		return blame(err, Statistics)
	}
	if n := res.MatchedCount + res.UpsertedCount; n != int64(len(docs)) {
		return &lost{cause: Statistics, err: fmt.Errorf("%s: %d of %d documents have changed", c.Name(), int64(len(docs))-n, len(docs))}
	}
	return nil
}

func insert[T any](ctx context.Context, c *mongo.Collection, docs []T) error {
	if len(docs) == 0 {
		return nil
	}
	_, err := c.InsertMany(ctx, docs)
	return blame(err, Statistics)
}

func guardKey(g guard) (any, int64) { return g.ID, g.Version }
func rowID(r row) (any, int64)      { return r.ID, r.Version }
func slotKey(s slot) (any, int64)   { return s.ID, s.Version }

// seek is get inside a transaction.
func seek[T any](ctx context.Context, c *mongo.Collection, filter bson.D) (T, bool, error) {
	doc, found, err := get[T](ctx, c, filter)
	return doc, found, blame(err, Interrupted)
}

// retry runs an administrative transaction until it neither loses nor is in doubt, or
// the context ends. It must be harmless to do twice.
func (s *Store) retry(ctx context.Context, fn func(context.Context) error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := fn(ctx)
		var stale *lost
		var doubt *inDoubt
		if !errors.As(err, &stale) && !errors.As(err, &doubt) {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// administer runs a transaction that no save waits for until it is through.
func (s *Store) administer(ctx context.Context, fn func(context.Context) error) error {
	return s.retry(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(ctx context.Context) error {
			err := fn(ctx)
			if mongo.IsDuplicateKeyError(err) {
				return err // trying again would not help
			}
			return blame(err, Interrupted)
		})
	})
}
