package server

import (
	"errors"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// What insert, update and delete have in common: a list of statements on one collection,
// which are carried out one after the other, each of which may fail by itself.

const maxStatements = 100_000

// statement is one of a write command.
type statement struct {
	id   int32 // by which a retry knows it
	ns   string
	doc  document
	vars *query.Vars
}

// shape is what a statement's document must look like.
type shape struct{ known, required []string }

// statements runs those of the command's field. exec runs one of them, by way of
// batch.statement; add takes its reply into account, or that of an earlier attempt. A
// statement that does not have the shape, if there is one, is refused before the first
// is carried out.
func (k *call) statements(field string, form *shape, exec func(b *batch, st *statement) (document, error), add func(i int, reply document)) (*outcome, error) {
	st := &statement{}
	var err error
	if st.ns, err = k.target(); err != nil {
		return nil, err
	}
	ordered := k.boolean("ordered", true)
	k.boolean("bypassDocumentValidation", false) // which newBatch reads
	docs, err := k.documents(field)
	if err != nil {
		return nil, err
	}
	if form != nil {
		for _, d := range docs {
			a := &args{what: k.statementName(field), doc: d}
			if err := a.only(form.known); err != nil {
				return nil, err
			}
			if a.must(form.required...); a.err != nil {
				return nil, a.err
			}
		}
	}
	if st.vars, err = k.vars(k.document("let"), nil); err != nil {
		return nil, err
	}
	ids, err := k.stmtIDs()
	if err != nil {
		return nil, err
	}
	out := &outcome{k: k}
	b := k.newBatch()
	defer b.close()
	for i := range docs {
		st.doc, st.id = docs[i], ids(i)
		if was := k.record.done(st.id); was != nil {
			out.again = append(out.again, st.id)
			add(i, document(was.Reply))
			continue
		}
		reply, err := exec(b, st)
		if err != nil {
			if k.fatal(err) {
				return nil, err
			}
			out.fail(i, err)
			if ordered || k.inTxn {
				break
			}
			b.forget()
			continue
		}
		if reply != nil {
			add(i, reply)
		}
		if b.stopped() {
			return out, nil
		}
	}
	return out, b.flush()
}

// statementName is what messages call a statement.
func (k *call) statementName(field string) string { return k.cmd.name + "." + field }

// documents are the statements of a write command.
func (k *call) documents(name string) ([]document, error) {
	docs, ok := k.req.Documents(name)
	if !ok {
		if k.has(name) {
			return nil, errorf(codeTypeMismatch, "BSON field '%s.%s' is no array of objects", k.name, name)
		}
		return nil, errorf(codeMissingField, "BSON field '%s.%s' is missing but a required field", k.name, name)
	}
	if len(docs) == 0 || len(docs) > maxStatements {
		return nil, errorf(16, "Write batch sizes must be between 1 and %d. Got %d operations.", maxStatements, len(docs))
	}
	return docs, k.err
}

// fatal says whether an error ends the whole command rather than a statement.
func (k *call) fatal(err error) bool {
	var own *Error
	var other *query.Error
	if !errors.As(err, &own) && !errors.As(err, &other) {
		return true
	}
	code := asError(err).Code
	return code == codeWriteConflict || code == codeLockTimeout || isRetriable(code) || code == codeMaxTimeMSExpired
}

// outcome is what a write command answers beside its counts.
type outcome struct {
	k      *call
	failed []document
	again  []int32 // statements that were executed by an earlier attempt
}

func (o *outcome) fail(i int, err error) {
	e := asError(err)
	b := newDoc().AppendInt32("index", int32(i)).AppendInt32("code", e.Code).AppendString("errmsg", e.Message)
	e.appendExtra(b)
	o.failed = append(o.failed, b.Build())
	o.k.failed = true
}

func (o *outcome) append(b *builder) {
	if len(o.failed) > 0 {
		appendArray(b, "writeErrors", o.failed)
	}
	appendRetried(b, o.again)
}

func appendRetried(b *builder, ids []int32) {
	if len(ids) == 0 {
		return
	}
	var list value.Builder
	for _, id := range ids {
		list.Push(value.Int32(id))
	}
	b.AppendValue("retriedStmtIds", list.Array())
}
