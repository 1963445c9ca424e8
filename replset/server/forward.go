package server

import (
	"context"
	"errors"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/wire"
)

// A pipeline that ends with $out or $merge may be sent to a secondary. That reads and
// computes, and has the primary write: docs/replset.md, section 8, says what holds then
// and why. The question to the primary is a document, of which forwarded is the command
// that the primary runs; its answer is what a client would be answered.

// forwarded is not in the table of commands, so that no client can send it.
var forwarded = &command{
	name:   "forwarded",
	fields: []string{"term", "stage", "let", "now", "clusterTime", "bypassDocumentValidation", "documents"},
	write:  true, run: runForwarded,
}

// forward has the primary carry out the pipeline's last stage.
func (k *call) forward(next query.Source, agg *aggregation) error {
	w := agg.pipeline.Write()
	var docs []document
	size := 0
	for {
		doc, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		docs, size = append(docs, doc), size+len(doc)
		// $merge is as many entries as it likes; $out is one.
		if !w.Replace && (size > maxEntryBytes || len(docs) >= maxEntryDocs) {
			if err := k.askPrimary(agg, docs); err != nil || k.wcError != nil {
				return err
			}
			docs, size = nil, 0
		}
	}
	if len(docs) == 0 && !w.Replace {
		return nil
	}
	return k.askPrimary(agg, docs)
}

// question is the writing of some documents, as a primary of that term is asked for it.
// It has all that the stage may depend on as it is here, so that a pipeline's $$NOW and
// its let have one value wherever they are used.
func (k *call) question(term uint64, agg *aggregation, docs []document) document {
	stages := k.array("pipeline").Data
	sys := agg.vars.System()
	b := newDoc().AppendInt32(forwarded.name, 1).AppendString("$db", k.db).AppendInt64("term", int64(term)).
		AppendValue("stage", value.At(stages, value.Len(stages)-1)).
		AppendDocument("let", agg.vars.Let()).AppendDateTime("now", sys.Now.UnixMilli()).
		AppendTimestamp("clusterTime", sys.ClusterTime.T, sys.ClusterTime.I).
		AppendBoolean("bypassDocumentValidation", k.boolean("bypassDocumentValidation", false))
	if d := k.document("writeConcern"); d != nil {
		b.AppendDocument("writeConcern", d)
	}
	if end, limited := k.patience.Deadline(); limited {
		b.AppendInt64("maxTimeMS", max(1, time.Until(end).Milliseconds()))
	}
	appendArray(b, "documents", docs)
	return b.Build()
}

// askPrimary has whoever is primary now write some documents, and takes over what is
// answered.
func (k *call) askPrimary(agg *aggregation, docs []document) error {
	role := k.s.topology.role()
	if role.Primary < 0 {
		return errorf(codePrimarySteppedDown, "no primary is known that could write")
	}
	q := k.question(role.Term, agg, docs)
	if role.Primary == k.s.m.Self { // since this command began
		return k.take(k.s.Answer(k.ctx, q))
	}
	ctx, cancel := k.s.topology.during(k.ctx, role)
	defer cancel()
	answer, err := k.s.m.Ask(ctx, role.Primary, q)
	switch {
	case errors.Is(err, errSuperseded):
		return errorf(codePrimarySteppedDown, "the primary was replaced while it wrote; what it was sent may or may not be written")
	case errors.Is(err, ErrSilent):
		return errorf(codeHostUnreachable, "the primary, %s, does not answer; what it was sent may or may not be written", k.s.m.Hosts[role.Primary])
	case err != nil:
		return err
	}
	return k.take(answer)
}

// errSuperseded: another member became primary, or the same one again.
var errSuperseded = errors.New("the primary was replaced")

// during is a context that ends, with the cause errSuperseded, when somebody else has
// become primary, or the same member in another term. That none is known for a moment
// ends nothing.
func (t *topology) during(ctx context.Context, role Role) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			now, changed := t.next()
			if now.Term > role.Term || now.Primary >= 0 && now.Primary != role.Primary {
				cancel(errSuperseded)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// take makes the primary's answer this command's: its error, its write concern error,
// and the time of its writes, which a causally consistent session reads after.
func (k *call) take(answer document) error {
	a := &args{what: forwarded.name, doc: answer}
	stamp := func(v query.Value) uint64 {
		if v.Type != bsoncore.TypeTimestamp {
			return 0
		}
		return stampOf(v.Timestamp())
	}
	k.s.hear(stamp(value.Lookup(a.document("$clusterTime"), "clusterTime")))
	if !value.Truth(a.get("ok")) {
		return foreignError(answer)
	}
	k.stamp = max(k.stamp, stamp(a.get("operationTime")))
	if d := a.document("writeConcernError"); d != nil {
		k.wcError = foreignError(d)
	}
	return nil
}

// foreignError is the error that another member has answered.
func foreignError(d document) *Error {
	a := &args{doc: d}
	e := &Error{Code: int32(a.integer("code", codeInternalError)), Message: a.text("errmsg")}
	extra, any := newDoc(), false
	for name, v := range value.Fields(d) {
		switch name {
		case "ok", "errmsg", "code", "codeName", "errorLabels", "topologyVersion", "$clusterTime", "operationTime":
		default:
			extra.AppendValue(name, v)
			any = true
		}
	}
	if any {
		e.Extra = extra.Build()
	}
	return e
}

// Answer runs what another member's forward asks for. Members trust each other: the
// link has proved that it is one.
func (s *Server) Answer(ctx context.Context, question []byte) []byte {
	k := &call{
		s: s, conn: &conn{ctx: ctx}, req: &wire.Request{Body: question}, cmd: forwarded, name: forwarded.name,
		number: -1, out: newDoc(), ctx: ctx, patience: ctx, cancel: func() {},
	}
	k.args = args{what: k.name, doc: question}
	k.role, k.reign = s.topology.writes()
	err := k.safely(func() error {
		if err := document(question).Validate(); err != nil {
			return errorf(codeInternalError, "a question of another member that is no BSON: %v", err)
		}
		k.db = k.text("$db")
		if err := k.prepare(); err != nil {
			return err
		}
		return k.run()
	})
	defer func() { k.cancel() }()
	return k.finish(err)
}

func runForwarded(k *call) error {
	// What was meant for another term may come late, after its sender has given it up.
	if term := k.integer("term", -1); k.role.Term != uint64(term) {
		return errorf(codeNotPrimary, "not primary in term %d", term)
	}
	docs, ok := k.req.Documents("documents")
	if !ok {
		return errorf(codeMissingField, "BSON field 'forwarded.documents' is missing but a required field")
	}
	sys := query.System{Rand: randFloat}
	if v := k.get("now"); v.Type == bsoncore.TypeDateTime {
		sys.Now = time.UnixMilli(v.DateTime()).UTC()
	}
	if v := k.get("clusterTime"); v.Type == bsoncore.TypeTimestamp {
		sys.ClusterTime.T, sys.ClusterTime.I = v.Timestamp()
	}
	vars, err := query.NewVars(k.document("let"), sys)
	if err != nil {
		return err
	}
	var stages value.Builder
	stages.Push(k.get("stage"))
	p, err := query.ParsePipeline(stages.Array(), query.PipelineOptions{Vars: vars})
	if err != nil {
		return err
	}
	w := p.Write()
	if w == nil {
		return errorf(codeInternalError, "a forwarded stage that does not write")
	}
	return k.writeResults(query.FromSlice(docs), w)
}
