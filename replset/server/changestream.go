package server

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// place is where a change stream stands: everything up to it has been told. Places
// are ordered by their fields in order.
type place struct {
	stamp uint64 // of the entry
	event uint32 // in the entry; allEvents is behind all of them
	after byte   // 1: the invalidation that follows the event, too
}

const allEvents = math.MaxUint32

func (p place) before(q place) bool {
	switch {
	case p.stamp != q.stamp:
		return p.stamp < q.stamp
	case p.event != q.event:
		return p.event < q.event
	}
	return p.after < q.after
}

// upTo is the place behind everything of a timestamp.
func upTo(stamp uint64) place { return place{stamp, allEvents, 0} }

// tokenVersion is the first byte of a resume token. The rest is the place, so that
// tokens compare as places do and mean the same on every member.
const tokenVersion = 0x82

func (p place) token() document {
	b := binary.BigEndian.AppendUint64([]byte{tokenVersion}, p.stamp)
	b = append(binary.BigEndian.AppendUint32(b, p.event), p.after)
	return newDoc().AppendString("_data", strings.ToUpper(hex.EncodeToString(b))).Build()
}

func parseToken(d document) (place, error) {
	bad := errorf(codeInvalidResumeToken, "Bad resume token: %s", value.Show(value.Doc(d)))
	v := value.Lookup(d, "_data")
	if value.Len(d) != 1 || !value.IsString(v) {
		return place{}, bad
	}
	b, err := hex.DecodeString(value.Str(v))
	if err != nil || len(b) != 14 || b[0] != tokenVersion || b[13] > 1 {
		return place{}, bad
	}
	return place{binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[9:]), b[13]}, nil
}

// changeStream tells what happened, in the order of the log, from the store's
// history. It belongs to one cursor.
//
// It reads up to the timestamp that is visible, and visible entries are a
// prefix of the log (invariant I2 of docs/replset.md): nothing can appear at or before
// a place that it has passed. So a place is all that a stream must remember, also
// for another member, and nothing is told twice or left out between the two.
type changeStream struct {
	s        *Server
	db, coll string // "" is all

	full, pre string // fullDocument, fullDocumentBeforeChange
	expanded  bool

	at    place  // what has been read from the history
	told  place  // what has been given out
	queue []told // read and not given out
	over  bool   // an invalidation was given out
	cur   *query.Cursor
}

// told is an event that is ready.
type told struct {
	place
	doc  document
	last bool // an invalidation
}

const changeStreamStage = "$changeStream"

// streamStages are the stages that may follow $changeStream.
var streamStages = []string{"$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact"}

var streamFields = []string{"fullDocument", "fullDocumentBeforeChange", "resumeAfter", "startAfter", "startAtOperationTime", "allChangesForCluster", "showExpandedEvents"}

// parseChangeStream reads the first stage; the rest of the pipeline is parsed.
func (k *call) parseChangeStream(agg *aggregation) (*changeStream, error) {
	spec := agg.pipeline.SourceStage().Spec
	if !value.IsDocument(spec) {
		return nil, errorf(50808, "$changeStream must take a nested object but found: %s", value.Show(spec))
	}
	a := &args{what: changeStreamStage, doc: spec.Data}
	if err := a.only(streamFields); err != nil {
		return nil, err
	}
	cs := &changeStream{s: k.s, full: a.text("fullDocument"), pre: a.text("fullDocumentBeforeChange"), expanded: a.boolean("showExpandedEvents", false)}
	cs.db, cs.coll = splitNS(agg.ns)
	cluster := a.boolean("allChangesForCluster", false)
	resume, after, start := a.document("resumeAfter"), a.document("startAfter"), a.get("startAtOperationTime")
	if a.err != nil {
		return nil, a.err
	}
	whole := cs.coll == "$cmd.aggregate"
	switch {
	case cluster && (cs.db != "admin" || !whole):
		return nil, errorf(codeInvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name")
	case !cluster && slices.Contains([]string{"admin", "config", "local"}, cs.db):
		return nil, errorf(codeInvalidNamespace, "$changeStream may not be opened on the internal %s database", cs.db)
	case !slices.Contains([]string{"", "default", "updateLookup", "whenAvailable", "required"}, cs.full):
		return nil, errorf(codeBadValue, "Enumeration value '%s' for field '$changeStream.fullDocument' is not a valid value.", cs.full)
	case !slices.Contains([]string{"", "off", "whenAvailable", "required"}, cs.pre):
		return nil, errorf(codeBadValue, "Enumeration value '%s' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.", cs.pre)
	}
	if cluster {
		cs.db = ""
	}
	if whole {
		cs.coll = ""
	}
	if col, err := k.s.find(agg.ns); err != nil || col.notAView() != nil {
		return nil, orErr(err, col.notAView())
	}
	stages := value.List(k.get("pipeline").Data)
	for _, s := range stages[1:] {
		if name, _, _ := value.First(s.Data); !slices.Contains(streamStages, name) {
			return nil, errorf(codeIllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		}
	}
	return cs, cs.begin(resume, after, start)
}

// begin sets the place at which the stream starts.
func (cs *changeStream) begin(resume, after document, start query.Value) (err error) {
	given := 0
	for _, is := range []bool{resume != nil, after != nil, !value.IsMissing(start)} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return errorf(50674, "Only one of 'startAtOperationTime', 'resumeAfter' and 'startAfter' may be specified")
	case resume != nil:
		if cs.at, err = parseToken(resume); err == nil && cs.at.after != 0 {
			err = errorf(codeInvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
		}
	case after != nil:
		cs.at, err = parseToken(after)
	case given == 0:
		cs.at = upTo(cs.s.m.Store.Stamp())
	default:
		t, i, ok := start.TimestampOK()
		if !ok {
			return errorf(codeTypeMismatch, "BSON field '$changeStream.startAtOperationTime' is the wrong type '%s', expected type 'timestamp'", value.TypeName(start))
		}
		cs.at = upTo(max(stampOf(t, i), 1) - 1)
	}
	if err != nil {
		return err
	}
	cs.told = cs.at
	// Whether the history reaches back that far is answered now, not by getMore.
	_, err = cs.read(cs.s.m.Store.Stamp())
	return err
}

// read gets the next entries up to a timestamp that is visible.
func (cs *changeStream) read(visible uint64) ([]store.Record, error) {
	from := cs.at.stamp
	if cs.at.event == allEvents {
		from++
	}
	if from > visible {
		return nil, nil
	}
	records, err := cs.s.m.Store.History(from, visible)
	if errors.Is(err, store.ErrHistoryLost) {
		return nil, &Error{
			Code: codeHistoryLost, Labels: []string{"NonResumableChangeStreamError"},
			Message: "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
		}
	}
	return records, err
}

// fill reads on until there is something to tell, or nothing more to read.
func (cs *changeStream) fill(ctx context.Context) error {
	for len(cs.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		visible := cs.s.m.Store.Stamp()
		records, err := cs.read(visible)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			if end := upTo(visible); cs.at.before(end) {
				cs.at = end
			}
			return nil
		}
		for _, r := range records {
			if err := cs.take(r); err != nil {
				return err
			}
			cs.at = upTo(r.Stamp)
		}
	}
	return nil
}

// next gives the events one after the other, and io.EOF when there are no more as
// of now.
func (cs *changeStream) next() (document, error) {
	if len(cs.queue) == 0 || cs.over {
		return nil, io.EOF
	}
	e := cs.queue[0]
	cs.queue = cs.queue[1:]
	cs.told, cs.over = e.place, e.last
	return e.doc, nil
}

// batch reads up to n documents without waiting.
func (cs *changeStream) batch(ctx context.Context, n int64, held *document) (docs []document, err error) {
	size := 0
	for int64(len(docs)) < n {
		doc := *held
		*held = nil
		if doc == nil {
			doc, err = cs.cur.Next()
			if err == io.EOF {
				if cs.over {
					return docs, nil
				}
				if err := cs.fill(ctx); err != nil || len(cs.queue) == 0 {
					return docs, err
				}
				continue
			}
			if err != nil {
				return nil, err
			}
			if id := value.Lookup(doc, "_id"); !value.Same(id, value.Doc(cs.told.token())) {
				return nil, &Error{
					Code: codeChangeStreamFatal, Labels: []string{"NonResumableChangeStreamError"},
					Message: "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed.",
				}
			}
		}
		if size += len(doc) + 16; size > maxBatchBytes && len(docs) > 0 {
			*held = doc
			return docs, nil
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// resume is the place from which a client goes on that has seen all batches.
func (cs *changeStream) resume(held bool) place {
	if held || len(cs.queue) > 0 || cs.over {
		return cs.told
	}
	return cs.at
}

// await waits until there may be something new.
func (cs *changeStream) await(ctx context.Context) error {
	return cs.s.waits.wait(ctx, cs.s.m.Store, cs.at.stamp+1)
}

// openChangeStream answers an aggregate that begins with $changeStream.
func (k *call) openChangeStream(agg *aggregation) error {
	switch {
	case k.inTxn:
		return errorf(codeNotInTransaction, "Stage not supported inside of a multi-document transaction: $changeStream")
	case k.rc.level != "" && k.rc.level != "majority":
		return errorf(codeInvalidOptions, "$changeStream cannot run with a readConcern other than 'majority', the current readConcern is '%s'", k.rc.level)
	}
	if err := k.ready(); err != nil {
		return err
	}
	cs, err := k.parseChangeStream(agg)
	if err != nil {
		return err
	}
	cs.cur = agg.pipeline.Run(cs.next, nil)
	c := &cursor{ns: agg.ns, lsid: string(k.lsid), txn: -1, stream: cs, close: cs.cur.Close}
	c.ctx, c.cancel = context.WithCancel(k.s.ctx)
	docs, err := cs.batch(k.ctx, agg.batch, &c.held)
	if err != nil {
		c.end()
		return err
	}
	return k.answerStream(c, "firstBatch", docs)
}

// answerStream writes a batch and keeps the cursor unless it is at its end.
func (k *call) answerStream(c *cursor, batch string, docs []document) error {
	over := c.stream.over && c.held == nil
	switch {
	case over:
		k.s.cursors.take(c.id)
		c.id = 0
		defer c.cancel()
	case c.id == 0:
		k.s.cursors.add(c)
	}
	b := newDoc()
	b.AppendArray(batch, docArray(docs))
	b.AppendDocument("postBatchResumeToken", c.stream.resume(c.held != nil).token())
	k.out.AppendDocument("cursor", b.AppendInt64("id", c.id).AppendString("ns", c.ns).Build())
	return nil
}

// awaitDefault is how long a getMore waits for something new.
const awaitDefault = time.Second

// getMoreStream waits for events, maxTimeMS at most; then an empty batch is the
// answer. The cursor is locked.
func (k *call) getMoreStream(c *cursor, n int64) error {
	k.stream = true
	wait := awaitDefault
	if k.maxMS > 0 {
		wait = time.Duration(k.maxMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(c.ctx, wait)
	defer cancel()
	defer context.AfterFunc(k.conn.ctx, cancel)() // nobody waits any more
	for {
		docs, err := c.stream.batch(c.ctx, n, &c.held)
		if err == nil && len(docs) == 0 && !c.stream.over {
			err = c.stream.await(ctx)
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil, errors.Is(err, context.DeadlineExceeded):
			return k.answerStream(c, "nextBatch", docs)
		case errors.Is(err, context.Canceled) && k.s.ctx.Err() == nil:
			return errorf(codeCursorKilled, "cursor %d was killed while it waited", c.id)
		}
		k.s.cursors.take(c.id)
		c.cancel()
		return err
	}
}

// isResumable says whether a driver may open a change stream again after an error.
func isResumable(code int32) bool {
	return slices.Contains([]int32{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}, code)
}
