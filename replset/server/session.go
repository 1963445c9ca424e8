package server

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

func randFloat() float64 { return rand.Float64() }

// sessions are the sessions with a transaction on this member. What must survive
// the member is in the session's record in the store.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

// session is used by whoever holds its latch.
type session struct {
	id     []byte
	number int64 // of the transaction that it has or had last
	txn    *transaction
	state  txnState
	used   time.Time // guarded by the sessions' mutex
}

func newSessions() *sessions { return &sessions{byID: map[string]*session{}} }

func (ss *sessions) get(id []byte, make bool) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[string(id)]
	if s == nil && make {
		s = &session{id: id, number: -1}
		ss.byID[string(id)] = s
	}
	if s != nil {
		s.used = time.Now()
	}
	return s
}

func (ss *sessions) forget(id []byte) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.byID, string(id))
}

// forgetUnused forgets a session that nobody has asked for since.
func (ss *sessions) forgetUnused(s *session, since time.Time) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.used.Before(since) {
		delete(ss.byID, string(s.id))
	}
}

func (ss *sessions) all() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	out := make([]*session, 0, len(ss.byID))
	for _, s := range ss.byID {
		out = append(out, s)
	}
	return out
}

func (ss *sessions) ids() []string {
	var ids []string
	for _, s := range ss.all() {
		ids = append(ids, string(s.id))
	}
	return ids
}

// abandonAll ends the transactions of a server in which nothing runs any more.
func (ss *sessions) abandonAll() {
	for _, s := range ss.all() {
		s.abort()
	}
}

func sessionLatch(id []byte) string { return string(rune(sessionKind)) + string(id) }

// record is what a session remembers of its last retryable write or
// transaction, on all members.
type record struct {
	Number    int64  `bson:"n"`
	Committed bool   `bson:"c,omitempty"` // a transaction of that number was
	Done      []stmt `bson:"s,omitempty"`
}

// stmt is an executed statement and what it answered.
type stmt struct {
	ID    int32    `bson:"i"`
	Reply bson.Raw `bson:"r,omitempty"`
}

func (s *Server) readRecord(id []byte) (*record, error) {
	b, _, err := s.m.Store.Session(id)
	if err != nil || b == nil {
		return &record{Number: -1}, err
	}
	return decodeRecord(b)
}

// decodeRecord and encode are bson's own, without its reflection: each retryable write
// does both. The replies alias b.
func decodeRecord(b document) (*record, error) {
	a := &args{what: "session record", doc: b}
	r := &record{Number: a.integer("n", -1), Committed: a.boolean("c", false)}
	for v := range value.Elements(a.array("s").Data) {
		if !value.IsDocument(v) {
			a.wrong("s", v, "array of objects")
			break
		}
		s := &args{what: "session record.s", doc: v.Data}
		r.Done = append(r.Done, stmt{ID: int32(s.integer("i", 0)), Reply: bson.Raw(s.document("r"))})
		if s.err != nil {
			return nil, s.err
		}
	}
	return r, a.err
}

func (r *record) encode(id []byte) store.SessionRecord {
	size := 64
	for _, s := range r.Done {
		size += len(s.Reply) + 32
	}
	at, b := bsoncore.AppendDocumentStart(make([]byte, 0, size))
	b = bsoncore.AppendInt64Element(b, "n", r.Number)
	if r.Committed {
		b = bsoncore.AppendBooleanElement(b, "c", true)
	}
	if len(r.Done) > 0 {
		var list int32
		list, b = bsoncore.AppendArrayElementStart(b, "s")
		for i, s := range r.Done {
			var one int32
			one, b = bsoncore.AppendDocumentElementStart(b, digits(i))
			b = bsoncore.AppendInt32Element(b, "i", s.ID)
			if len(s.Reply) > 0 {
				b = bsoncore.AppendDocumentElement(b, "r", bsoncore.Document(s.Reply))
			}
			b, _ = bsoncore.AppendDocumentEnd(b, one)
		}
		b, _ = bsoncore.AppendArrayEnd(b, list)
	}
	b, _ = bsoncore.AppendDocumentEnd(b, at)
	return store.SessionRecord{ID: id, Record: b}
}

// done finds a statement that was executed before.
func (r *record) done(id int32) *stmt {
	if r == nil {
		return nil
	}
	for i := range r.Done {
		if r.Done[i].ID == id {
			return &r.Done[i]
		}
	}
	return nil
}

// parseLSID takes a session's id out of its document.
func parseLSID(d document) ([]byte, error) {
	a := &args{what: "lsid", doc: d}
	id := a.get("id")
	if id.Type != bsoncore.TypeBinary {
		return nil, errorf(codeTypeMismatch, "BSON field 'lsid.id' is missing or no binary")
	}
	sub, b, ok := id.BinaryOK()
	if !ok || sub != 4 || len(b) != 16 {
		return nil, errorf(codeInvalidOptions, "lsid.id must be a UUID")
	}
	return b, a.only([]string{"id", "uid"})
}

func (k *call) parseSession() error {
	if d := k.document("lsid"); d != nil {
		var err error
		if k.lsid, err = parseLSID(d); err != nil {
			return err
		}
	}
	auto := k.get("autocommit")
	k.inTxn = auto.Type == bsoncore.TypeBoolean && !auto.Boolean()
	k.start = k.boolean("startTransaction", false)
	if k.has("txnNumber") {
		v := k.get("txnNumber")
		if v.Type != bsoncore.TypeInt64 {
			k.wrong("txnNumber", v, "long")
			return k.err
		}
		k.number = v.Int64()
	}
	switch {
	case k.number < -1:
		return errorf(codeInvalidOptions, "Transaction number cannot be negative")
	case k.number >= 0 && k.lsid == nil:
		return errorf(codeInvalidOptions, "Transaction number requires a session ID to also be specified")
	case !value.IsMissing(auto) && !k.inTxn:
		return errorf(codeInvalidOptions, "Specifying autocommit=true is not allowed.")
	case k.inTxn && k.number < 0:
		return errorf(codeInvalidOptions, "'autocommit' field requires a transaction number to also be specified")
	case k.start && !k.inTxn:
		return errorf(codeInvalidOptions, "Specifying startTransaction=true requires autocommit=false")
	case k.cmd.endsTxn && !k.inTxn:
		return errorf(codeInvalidOptions, "%s must be run within a transaction", k.name)
	case k.inTxn && !k.cmd.inTxn:
		return errorf(codeNotInTransaction, "Cannot run '%s' in a multi-document transaction.", k.name)
	case k.number >= 0 && !k.inTxn && !k.cmd.retry:
		return errorf(50768, "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", k.name)
	}
	return nil
}

// checkout takes the latch of a session with a transaction number: its commands
// run one after the other, also those of a client that gave up waiting.
func (k *call) checkout() error {
	if k.number < 0 {
		return nil
	}
	k.hold = k.s.latches.holder()
	if err := k.hold.acquire(k.ctx, sessionLatch(k.lsid), false); err != nil {
		return err
	}
	var err error
	if k.record, err = k.s.readRecord(k.lsid); err != nil {
		return err
	}
	k.session = k.s.sessions.get(k.lsid, k.inTxn)
	newest := k.record.Number
	if k.session != nil {
		newest = max(newest, k.session.number)
	}
	if k.number < newest {
		return errorf(codeTransactionTooOld, "Cannot start transaction %d on session because a newer transaction with txnNumber %d has already started on this session.", k.number, newest)
	}
	if k.inTxn {
		err := k.checkoutTransaction()
		k.record = nil // of an earlier retryable write; no affair of the transaction's
		return err
	}
	if k.session != nil && k.session.number == k.number {
		return errorf(50911, "Cannot run a retryable write with the number of a transaction")
	}
	if k.record.Committed && k.record.Number == k.number {
		return errorf(codeTxnCommitted, "Transaction %d has been committed.", k.number)
	}
	if k.session != nil {
		k.session.abort() // a new number ends the old transaction
	}
	if k.record.Number < k.number {
		k.record = &record{Number: k.number}
	}
	return nil
}

// remember adds an executed statement to the entry that holds its effects.
func (k *call) remember(id int32, reply document) {
	if k.record == nil || k.inTxn {
		return
	}
	k.record.Done = append(k.record.Done, stmt{ID: id, Reply: bson.Raw(reply)})
}

// stmtIDs numbers the statements of a command.
func (k *call) stmtIDs() (func(i int) int32, error) {
	base := int32(0)
	if k.has("stmtId") {
		base = int32(k.integer("stmtId", 0))
	}
	var list []query.Value
	if v := k.array("stmtIds"); !value.IsMissing(v) {
		list = value.List(v.Data)
	}
	return func(i int) int32 {
		if i < len(list) {
			n, _ := value.Integer(list[i])
			return int32(n)
		}
		return base + int32(i)
	}, k.err
}
