package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/wire"
)

// call is one command while it runs.
type call struct {
	args
	s    *Server
	conn *conn
	req  *wire.Request
	cmd  *command
	db   string
	name string // as it was sent, which may be an alias

	// ctx ends with the client's patience and, for a write, when this member stops
	// being the primary that the write began on. patience is without the latter: who
	// waits for an entry under way is told its fate by the log.
	ctx      context.Context
	patience context.Context
	cancel   context.CancelFunc

	reign context.Context
	out   *builder
	role  Role
	hold  *holder // the session's latch
	maxMS int64

	rc      readConcern
	wc      writeConcern
	lsid    []byte
	number  int64 // transaction number, -1 if none
	inTxn   bool
	start   bool
	session *session
	txn     *transaction
	record  *record // of retryable writes

	stamp   uint64 // of the last entry written
	index   uint64
	wcError *Error
	labels  []string // that a fail point attached
	more    bool     // another answer follows by itself
	failed  bool     // a statement failed inside an answer that is ok
	stream  bool     // it reads a change stream
}

// dispatch runs one request. hangUp closes the connection without an answer.
func (s *Server) dispatch(c *conn, req *wire.Request) (out document, more, hangUp bool) {
	k := &call{s: s, conn: c, req: req, db: req.Database, name: req.Command(), number: -1, out: newDoc(), ctx: c.ctx, patience: c.ctx, cancel: func() {}}
	k.args = args{what: k.name, doc: req.Body}
	k.takeApart()
	k.role, k.reign = s.topology.writes()
	err := k.safely(k.serve)
	defer func() { k.cancel() }()
	if err == errHangUp {
		return nil, false, true
	}
	return k.finish(err), k.more && err == nil, false
}

// safely turns a defect of one command into its error, so that other clients of
// the process do not suffer, and gives back the session in any case.
func (k *call) safely(run func() error) (err error) {
	defer func() {
		if k.hold != nil {
			k.hold.release()
		}
		if p := recover(); p != nil {
			err = errorf(codeInternalError, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run()
}

// serve runs a command that a client has sent.
func (k *call) serve() error {
	k.cmd = k.s.commands[k.name]
	if k.cmd == nil {
		return errorf(codeCommandNotFound, "no such command: '%s'", k.name)
	}
	if err := k.validate(); err != nil {
		return err
	}
	if k.s.access != nil && k.conn.user == "" && !k.cmd.public {
		return errorf(codeUnauthorized, "Command %s requires authentication", k.cmd.name)
	}
	k.introduce()
	point, err := k.s.points.check(k)
	if err != nil {
		return err
	}
	if err := k.prepare(); err != nil {
		return err
	}
	k.s.count(k.cmd.name)
	if err := k.run(); err != nil {
		return err
	}
	if point != nil {
		k.wcError, k.labels = point.wcError, point.labels
	}
	return nil
}

// validate checks the form and the nesting of all that the command was sent, on
// which everything else relies. The message itself was checked at the top level
// only, so that this answers a client and not its connection.
func (k *call) validate() error {
	if k.req.TooDeep {
		return errorf(15, "BSON nested deeper than the maximum of %d levels", wire.MaxNesting)
	}
	for _, f := range k.fields {
		if !value.IsDocument(f.value) && !value.IsArray(f.value) {
			continue
		}
		if err := query.Validate(f.value.Data); err != nil {
			return err
		}
	}
	for _, s := range k.req.Sections {
		for _, d := range s.Documents {
			if err := query.Validate(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// introduce takes note of what a client says about itself, before fail points
// ask for its name.
func (k *call) introduce() {
	if k.cmd.name != "hello" {
		return
	}
	if d := value.Lookup(k.doc, "client"); value.IsDocument(d) {
		k.conn.client = d.Data
		if app := value.Lookup(d.Data, "application"); value.IsDocument(app) {
			k.conn.app = value.Str(value.Lookup(app.Data, "name"))
		}
	}
}

func (k *call) run() error {
	if k.inTxn && !k.cmd.endsTxn {
		return k.runInTransaction()
	}
	if err := k.cmd.run(k); err != nil {
		return err
	}
	if k.rc.level == "linearizable" {
		return k.confirm()
	}
	return nil
}

func (k *call) prepare() error {
	known := k.cmd.fields
	if !k.cmd.anyField {
		if err := k.only(generic, []string{k.name}, known, k.sectionNames()); err != nil {
			return err
		}
	}
	if k.cmd.admin && k.db != "admin" {
		return errorf(codeUnauthorized, "%s may only be run against the admin database.", k.cmd.name)
	}
	k.maxMS = k.count("maxTimeMS", 0)
	if v := k.text("apiVersion"); v != "" && v != "1" {
		return errorf(322, "API version must be \"1\"")
	}
	k.refuse("help", "coordinator")
	if d := k.document("$clusterTime"); d != nil {
		a := &args{what: "$clusterTime", doc: d}
		if t := a.get("clusterTime"); t.Type == bsoncore.TypeTimestamp {
			k.s.hear(stampOf(t.Timestamp()))
		}
	}
	if k.err != nil {
		return k.err
	}
	if err := k.parseSession(); err != nil {
		return err
	}
	if err := k.checkRole(); err != nil {
		return err
	}
	k.setDeadline()
	if err := k.parseConcerns(); err != nil {
		return err
	}
	return k.checkout()
}

// setDeadline gives the command its time. A hello and a getMore see to their own.
func (k *call) setDeadline() {
	if k.cmd.name == "hello" || k.cmd.name == "getMore" {
		return
	}
	k.patience, k.cancel = deadline(k.conn.ctx, k.maxMS)
	k.ctx = k.patience
	if k.role.Writable && (k.cmd.write || k.inTxn) {
		ctx, interrupt := context.WithCancel(k.patience)
		stop := context.AfterFunc(k.reign, interrupt)
		patient := k.cancel
		k.ctx, k.cancel = ctx, func() { stop(); interrupt(); patient() }
	}
}

// ownCall is a command that the server gives itself.
func (s *Server) ownCall(ctx context.Context, role Role) *call {
	return &call{s: s, ctx: ctx, patience: ctx, cancel: func() {}, role: role, number: -1, out: newDoc(), wc: writeConcern{majority: true}}
}

func (k *call) sectionNames() []string {
	var out []string
	for _, s := range k.req.Sections {
		if !slices.Contains(k.cmd.sections, s.Name) {
			continue
		}
		out = append(out, s.Name)
	}
	return out
}

// checkRole lets writes run on the primary only, and reads elsewhere only where
// the client said that it may be a secondary.
func (k *call) checkRole() error {
	if k.cmd.anywhere || k.role.Writable {
		return nil
	}
	if k.cmd.write || k.number >= 0 {
		return errorf(codeNotPrimary, "not primary")
	}
	mode := ""
	if p := k.document("$readPreference"); p != nil {
		a := &args{what: "$readPreference", doc: p}
		mode = a.text("mode")
		if a.err != nil {
			return a.err
		}
	}
	if mode == "" || mode == "primary" {
		return errorf(codeNotPrimaryNoOk, "not primary and secondaryOk=false")
	}
	return nil
}

// finish completes the answer.
func (k *call) finish(err error) document {
	var e *Error
	if err != nil {
		if errors.Is(err, context.Canceled) && k.s.ctx.Err() == nil {
			err = interrupted()
		}
		e = asError(err)
		k.out = newDoc()
		k.out.AppendDouble("ok", 0)
		e.append(k.out)
	} else {
		k.appendWriteConcernError()
		k.out.AppendDouble("ok", 1)
	}
	if labels := k.errorLabels(e); labels != nil {
		k.out.AppendArray("errorLabels", textArray(labels))
	}
	if e.movesTopology() || k.wcError.movesTopology() {
		_, counter := k.s.topology.version()
		k.s.topology.appendVersion(k.out, counter)
	}
	return k.appendTimes(k.out).Build()
}

func (k *call) appendTimes(b *builder) *builder {
	stamp := k.s.m.Store.Stamp()
	known := k.s.hear(stamp)
	op := max(k.stamp, 1)
	if k.stamp == 0 {
		op = stamp
	}
	t := timestamp(max(known, 1))
	sig := newDoc().AppendBinary("hash", 0, make([]byte, 20)).AppendInt64("keyId", 0).Build()
	b.AppendDocument("$clusterTime", newDoc().AppendTimestamp("clusterTime", t.T, t.I).AppendDocument("signature", sig).Build())
	at := timestamp(op)
	return b.AppendTimestamp("operationTime", at.T, at.I)
}

// hear takes note of a cluster time and returns the highest known.
func (s *Server) hear(stamp uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = max(s.known, stamp)
	return s.known
}

// errorLabels are the labels that MongoDB gives, see the labels of section 4 in its
// specifications of transactions and retryable writes.
func (k *call) errorLabels(e *Error) []string {
	if e != nil && e.Labels != nil {
		return e.Labels
	}
	if e == nil && k.labels != nil {
		return k.labels
	}
	code := int32(0)
	if e != nil {
		code = e.Code
	}
	if e == nil && k.wcError == nil {
		return nil
	}
	if k.stream && isResumable(code) {
		return []string{"ResumableChangeStreamError"}
	}
	ends := k.cmd != nil && k.cmd.endsTxn
	if k.inTxn {
		transient := false
		switch {
		case code == codeWriteConflict, code == codeLockTimeout, code == 267, code == 239, code == 246, code == 250:
			transient = true
		case ends:
			transient = code == codeNoSuchTransaction && k.wcError == nil
		default:
			transient = code != 0 && (isRetriable(code) || code == codeNoSuchTransaction)
		}
		if transient {
			return []string{"TransientTransactionError"}
		}
	}
	if k.number >= 0 && (!k.inTxn || ends) {
		wc := int32(0)
		if k.wcError != nil {
			wc = k.wcError.Code
		}
		if isRetriable(code) || isRetriable(wc) || code == codeInterruptedStop || wc == codeInterruptedStop {
			labels := []string{"RetryableWriteError"}
			if e != nil && k.stamp == 0 && !ends {
				labels = append(labels, "NoWritesPerformed")
			}
			return labels
		}
	}
	return nil
}

// system is what expressions see of the world.
func (k *call) vars(let document, by *query.Collation) (*query.Vars, error) { return k.s.vars(let, by) }

func (s *Server) vars(let document, by *query.Collation) (*query.Vars, error) {
	sys := query.System{Now: time.Now().UTC().Truncate(time.Millisecond), Rand: randFloat, Collation: by}
	t := timestamp(s.m.Store.Stamp())
	sys.ClusterTime.T, sys.ClusterTime.I = t.T, t.I
	return query.NewVars(let, sys)
}

func (k *call) applyInput(index query.Position) query.ApplyInput {
	return query.ApplyInput{Position: index, NewID: bson.NewObjectID}
}

// target is the collection that the command names in its first field.
func (k *call) target() (ns string, err error) {
	v := k.get(k.name)
	if !value.IsString(v) {
		return "", errorf(codeInvalidNamespace, "collection name has invalid type %s", value.TypeName(v))
	}
	if err := checkCollection(k.db, value.Str(v)); err != nil {
		return "", err
	}
	return k.db + "." + value.Str(v), nil
}

func (k *call) String() string { return fmt.Sprintf("%s on %s", k.name, k.db) }
