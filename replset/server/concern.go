package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

type readConcern struct {
	level string // "" is local
	after uint64
	at    uint64
}

type writeConcern struct {
	count    int
	majority bool
	mode     string // a name that is not majority
	timeout  time.Duration
	given    bool
}

func (k *call) parseConcerns() error {
	if d := k.document("readConcern"); d != nil {
		if err := k.parseReadConcern(d); err != nil {
			return err
		}
	}
	k.wc = writeConcern{majority: true}
	if d := k.document("writeConcern"); d != nil {
		if err := k.parseWriteConcern(d); err != nil {
			return err
		}
	}
	return k.err
}

func (k *call) parseReadConcern(d document) error {
	a := &args{what: "readConcern", doc: d}
	if err := a.only([]string{"level", "afterClusterTime", "atClusterTime", "provenance"}); err != nil {
		return err
	}
	k.rc.level = a.text("level")
	stamp := func(name string) uint64 {
		v := a.get(name)
		if value.IsMissing(v) {
			return 0
		}
		if v.Type != bsoncore.TypeTimestamp {
			a.wrong(name, v, "timestamp")
			return 0
		}
		return stampOf(v.Timestamp())
	}
	k.rc.after, k.rc.at = stamp("afterClusterTime"), stamp("atClusterTime")
	if a.err != nil {
		return a.err
	}
	if k.inTxn && !k.start && len(d) > len(emptyDoc) {
		return errorf(codeInvalidOptions, "Only the first command in a transaction may specify a readConcern")
	}
	if !slices.Contains([]string{"", "local", "available", "majority", "linearizable", "snapshot"}, k.rc.level) {
		return errorf(codeFailedToParse, "Enumeration value '%s' for field 'level' is not a valid value.", k.rc.level)
	}
	if k.cmd.name == "getMore" && k.rc.level == "snapshot" {
		// The driver says it again in a session for snapshots. The cursor goes on at the
		// timestamp at which it was opened.
		k.rc = readConcern{}
		return nil
	}
	if k.rc.level != "" && !k.cmd.reads(k) {
		return errorf(codeInvalidOptions, "Command %s does not support read concern { level: \"%s\" }", k.name, k.rc.level)
	}
	switch {
	case k.inTxn && (k.rc.level == "linearizable" || k.rc.level == "available"):
		return errorf(codeInvalidOptions, "The readConcern cannot be specified as %s in a transaction", k.rc.level)
	case k.rc.at != 0 && k.rc.level != "snapshot":
		return errorf(codeInvalidOptions, "readConcern atClusterTime is only allowed with level snapshot")
	case k.rc.at != 0 && k.rc.after != 0:
		return errorf(codeInvalidOptions, "Specifying a timestamp for both afterClusterTime and atClusterTime is not allowed")
	case k.rc.level == "linearizable" && k.rc.after != 0:
		return errorf(codeFailedToParse, "afterClusterTime field can be set only if level is equal to majority, local, or snapshot")
	case k.rc.level == "snapshot" && !k.inTxn && !k.cmd.snapshot:
		return errorf(codeInvalidOptions, "Command %s does not support read concern level snapshot outside a transaction", k.name)
	}
	return nil
}

func (k *call) parseWriteConcern(d document) error {
	if k.inTxn && !k.cmd.endsTxn {
		return errorf(codeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	if !k.cmd.write && !k.cmd.takesWC && !k.cmd.endsTxn && len(d) > len(emptyDoc) {
		return errorf(codeInvalidOptions, "Command does not support writeConcern")
	}
	a := &args{what: "writeConcern", doc: d}
	if err := a.only([]string{"w", "j", "wtimeout", "fsync", "provenance"}); err != nil {
		return err
	}
	k.wc.given = true
	w := a.get("w")
	switch {
	case value.IsMissing(w):
	case value.IsString(w):
		k.wc.majority = value.Str(w) == "majority"
		if !k.wc.majority {
			k.wc.mode = value.Str(w)
		}
	case value.IsNumber(w):
		n := a.integer("w", 1)
		if n < 0 || n > 50 {
			return errorf(codeFailedToParse, "w has to be a non-negative number and not greater than 50; found: %d", n)
		}
		k.wc.majority, k.wc.count = false, int(n)
	default:
		return errorf(codeFailedToParse, "w has to be a number, string, or object")
	}
	a.boolean("j", false)
	a.boolean("fsync", false)
	k.wc.timeout = time.Duration(max(0, a.integer("wtimeout", 0))) * time.Millisecond
	return a.err
}

// ready waits for what the read concern demands, before anything is read.
func (k *call) ready() error {
	if k.rc.level == "linearizable" {
		if !k.role.Writable {
			return errorf(codeNotPrimary, "cannot satisfy linearizable read concern on non-primary node")
		}
		if !k.s.o.LinearizableByWrite && k.s.o.Defect != defect.ReadWithoutQuorum {
			return k.s.m.ReadIndex(k.ctx)
		}
	}
	wait := max(k.rc.after, k.rc.at)
	if wait == 0 {
		return nil
	}
	if known := k.s.hear(k.s.m.Store.Stamp()); wait > known {
		return errorf(codeInvalidOptions, "readConcern afterClusterTime value must not be greater than the current clusterTime. Requested clusterTime: %d; current clusterTime: %d", wait, known)
	}
	return k.s.waits.wait(k.ctx, k.s.m.Store, wait)
}

// view is what the command reads from: the transaction's, or that of its read
// concern. done releases it.
func (k *call) view() (v *view, done func(), err error) {
	if k.txn != nil {
		k.txn.view.ctx = k.ctx
		return k.txn.view, func() {}, nil
	}
	if err := k.ready(); err != nil {
		return nil, nil, err
	}
	if k.rc.at != 0 {
		v, err = k.s.past(k.ctx, k.rc.at)
	} else {
		v = k.s.now(k.ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return v, v.release, nil
}

// confirm makes a linearizable read certain by a write, after the read.
func (k *call) confirm() error {
	if !k.s.o.LinearizableByWrite {
		return nil
	}
	data, err := (&store.Effects{}).Encode()
	if err != nil {
		return err
	}
	ctx, cancel := k.ctx, func() {}
	if k.wc.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, k.wc.timeout)
	}
	defer cancel()
	wait, err := k.s.m.Begin(ctx, k.role.Term, data)
	if err != nil {
		return err
	}
	_, err = wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) && k.ctx.Err() == nil {
		return errorf(codeLinearizableFailed, "Failed to confirm that read was linearizable.")
	}
	if errors.Is(err, errUnknown) {
		return errorf(codeInterruptedRole, "operation was interrupted")
	}
	return err
}

// propose enters what a writer has gathered into the log and waits for it as
// the write concern asks. The latches, and the session's, are released when the
// entry's fate is known, which may be after the answer.
//
// An error means that nothing was written. A failed write concern is no error:
// it is in wcError, and no further batch may follow.
func (k *call) propose(w *writer) error {
	effects, err := w.build()
	if err != nil {
		w.hold.release()
		return err
	}
	if w.empty() && len(effects.Sessions) == 0 {
		w.hold.release()
		return nil
	}
	data, err := effects.Encode()
	if err != nil {
		w.hold.release()
		return err
	}
	ctx, cancel := k.patience, func() {}
	if k.wc.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, k.wc.timeout)
	}
	defer cancel()
	wait, err := k.s.m.Begin(k.patience, w.term, data)
	if errors.Is(err, errNotLeader) {
		err = interrupted()
	}
	if err != nil {
		w.hold.release()
		return err
	}
	done, err := wait(ctx)
	switch {
	case err == nil:
		w.hold.release()
		k.stamp, k.index = done.Timestamp, done.Index
		return nil
	case errors.Is(err, errNotLeader):
		w.hold.release()
		return interrupted()
	case errors.Is(err, errUnknown):
		w.hold.release()
		k.wcError = &Error{Code: codePrimarySteppedDown, Message: "Primary stepped down while waiting for replication"}
		return nil
	}
	session := k.hold
	k.hold = nil
	k.s.group.Go(func() {
		if _, err := wait(k.s.ctx); errors.Is(err, context.Canceled) {
			// The server closes and the entry may still be applied. Its latches
			// are never free again, or somebody could write on what it was
			// before, while the member can still propose.
			return
		}
		w.hold.release()
		if session != nil {
			session.release()
		}
	})
	k.timedOut()
	return nil
}

func (k *call) timedOut() {
	if k.s.ctx.Err() != nil {
		k.wcError = &Error{Code: codeInterruptedStop, Message: "interrupted at shutdown"}
		return
	}
	if k.patience.Err() != nil {
		k.wcError = &Error{Code: codeMaxTimeMSExpired, Message: "operation exceeded time limit"}
		return
	}
	wc := newDoc()
	switch {
	case k.wc.majority:
		wc.AppendString("w", "majority")
	default:
		wc.AppendInt32("w", int32(k.wc.count))
	}
	wc.AppendInt32("wtimeout", int32(k.wc.timeout.Milliseconds())).AppendString("provenance", "clientSupplied")
	info := newDoc().AppendBoolean("wtimeout", true).AppendDocument("writeConcern", wc.Build()).Build()
	k.wcError = &Error{
		Code: codeWriteConcernFailed, Message: "waiting for replication timed out",
		Extra: newDoc().AppendDocument("errInfo", info).Build(),
	}
}

// replicate waits for a write concern of more members than a majority. It is
// called once, after the command's last entry.
func (k *call) replicate() {
	if k.wcError != nil {
		return
	}
	switch n := len(k.s.m.Hosts); {
	case k.wc.mode != "":
		k.wcError = &Error{Code: codeUnknownReplWC, Message: "No write concern mode named '" + k.wc.mode + "' found in replica set configuration"}
	case k.wc.count > n:
		k.wcError = &Error{Code: codeUnsatisfiableWC, Message: "Not enough data-bearing nodes"}
	case k.wc.count > n/2+1 && k.index > 0:
		ctx, cancel := k.patience, func() {}
		if k.wc.timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, k.wc.timeout)
		}
		defer cancel()
		switch err := k.s.m.Replicated(ctx, k.index, k.wc.count); {
		case err == nil:
		case errors.Is(err, errNotLeader):
			k.wcError = &Error{Code: codePrimarySteppedDown, Message: "Primary stepped down while waiting for replication"}
		default:
			k.timedOut()
		}
	}
}

func (k *call) appendWriteConcernError() {
	if k.cmd != nil && (k.cmd.write || k.cmd.endsTxn) && (!k.inTxn || k.cmd.endsTxn) {
		k.replicate()
	}
	if k.wcError == nil {
		return
	}
	d := newDoc().AppendInt32("code", k.wcError.Code).AppendString("codeName", codeName(k.wcError.Code)).AppendString("errmsg", k.wcError.Message)
	k.wcError.appendExtra(d)
	k.out.AppendDocument("writeConcernError", d.Build())
}
