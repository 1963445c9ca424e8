package server

import (
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/wire"
)

const maxWireVersion = 21 // of 7.0

func cmdHello(k *call) error {
	if err := k.awaitTopology(); err != nil {
		return err
	}
	role, counter := k.s.topology.version()
	k.conn.streamSeen = counter
	k.s.appendHello(k, role, counter)
	if err := k.negotiate(); err != nil {
		return err
	}
	return k.speculate()
}

// negotiate answers what a handshake asks for.
func (k *call) negotiate() error {
	if k.has("compression") {
		var common []string
		for v := range value.Elements(k.array("compression").Data) {
			if name := value.Str(v); slices.Contains(wire.Compressors(), name) {
				common = append(common, name)
			}
		}
		k.out.AppendArray("compression", textArray(common))
	}
	// The same for every name: whether there is such a user is nobody's business.
	if k.text("saslSupportedMechs") != "" && k.s.access != nil {
		k.out.AppendArray("saslSupportedMechs", textArray([]string{mechanism}))
	}
	return k.err
}

// awaitTopology waits as the client asks until the member's role is another one
// than it knows, and arranges for the answers that follow.
func (k *call) awaitTopology() error {
	known := k.document("topologyVersion")
	wait := k.count("maxAwaitTimeMS", 0)
	if k.err != nil {
		return k.err
	}
	if (known == nil) != !k.has("maxAwaitTimeMS") {
		return errorf(51758, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS', and the other way round")
	}
	if known == nil {
		return nil
	}
	process, counter := value.Lookup(known, "processId"), value.Lookup(known, "counter")
	if process.Type != bsoncore.TypeObjectID || counter.Type != bsoncore.TypeInt64 {
		return errorf(codeTypeMismatch, "topologyVersion needs an ObjectId and a long")
	}
	seen := counter.Int64()
	if k.conn.stream {
		seen = k.conn.streamSeen
	}
	k.more = k.req.Exhaust()
	if process.ObjectID() != k.s.topology.process {
		if k.conn.stream {
			seen = k.conn.streamSeen
		} else {
			return nil
		}
	}
	if most := k.s.o.LongestHello.Milliseconds(); most > 0 {
		wait = min(wait, most)
	}
	ctx, cancel := deadline(k.conn.ctx, max(1, wait))
	defer cancel()
	k.s.topology.await(ctx, seen)
	return k.conn.ctx.Err()
}

func (s *Server) appendHello(k *call, role Role, counter int64) {
	b := k.out
	s.topology.appendVersion(b, counter)
	b.AppendArray("hosts", textArray(s.m.Hosts)).AppendString("setName", s.m.SetName).AppendInt32("setVersion", 1)
	if k.name == "hello" {
		b.AppendBoolean("isWritablePrimary", role.Writable)
	} else {
		b.AppendBoolean("ismaster", role.Writable)
	}
	// A member that is about to become primary takes no writes yet and is a
	// secondary until it does.
	b.AppendBoolean("secondary", !role.Writable)
	if role.Primary >= 0 && (role.Primary != s.m.Self || role.Writable) {
		b.AppendString("primary", s.m.Hosts[role.Primary])
	}
	b.AppendString("me", s.m.Hosts[s.m.Self])
	if role.Writable {
		b.AppendObjectID("electionId", electionID(role.Term))
	}
	b.AppendDocument("lastWrite", s.lastWrite(role))
	b.AppendInt32("maxBsonObjectSize", wire.MaxDocumentSize).AppendInt32("maxMessageSizeBytes", wire.MaxMessageSize).
		AppendInt32("maxWriteBatchSize", wire.MaxBatchSize).AppendDateTime("localTime", time.Now().UnixMilli()).
		AppendInt32("logicalSessionTimeoutMinutes", 30).AppendInt32("connectionId", k.conn.id).
		AppendInt32("minWireVersion", 0).AppendInt32("maxWireVersion", maxWireVersion).AppendBoolean("readOnly", false)
	if k.name != "hello" {
		b.AppendBoolean("helloOk", true)
	}
}

func (s *Server) lastWrite(role Role) document {
	stamp := s.m.Store.Stamp()
	at := timestamp(stamp)
	op := newDoc().AppendTimestamp("ts", at.T, at.I).AppendInt64("t", int64(role.Term)).Build()
	date := time.Unix(int64(at.T), 0).UnixMilli()
	return newDoc().AppendDocument("opTime", op).AppendDateTime("lastWriteDate", date).
		AppendDocument("majorityOpTime", op).AppendDateTime("majorityWriteDate", date).Build()
}

func cmdStartSession(k *call) error {
	id := bson.NewObjectID()
	uuid := append(append(make([]byte, 0, 16), id[:]...), 0, 0, 0, 0)
	k.out.AppendDocument("id", newDoc().AppendBinary("id", 4, uuid).Build()).AppendInt32("timeoutMinutes", 30)
	return nil
}

// cmdEndSessions ends transactions and cursors of sessions.
func cmdEndSessions(k *call) error {
	list := k.array(k.name)
	if k.err != nil {
		return k.err
	}
	var ids []string
	for v := range value.Elements(list.Data) {
		if !value.IsDocument(v) {
			return errorf(codeTypeMismatch, "%s takes an array of session ids", k.name)
		}
		id, err := parseLSID(v.Data)
		if err != nil {
			return err
		}
		ids = append(ids, string(id))
	}
	return k.endEach(ids)
}

func (k *call) endSession(id string) error {
	k.s.cursors.kill(k.s.cursors.matching(func(c *cursor) bool { return c.lsid == id }))
	ss := k.s.sessions.get([]byte(id), false)
	if ss == nil {
		return nil
	}
	h := k.s.latches.holder()
	if err := h.acquire(k.ctx, sessionLatch(ss.id), false); err != nil {
		return err
	}
	defer h.release()
	k.s.abortTransaction(ss)
	k.s.sessions.forget(ss.id)
	return nil
}

func cmdRefreshSessions(k *call) error {
	k.array(k.name)
	return k.err
}

func cmdKillAllSessions(k *call) error {
	k.array(k.name)
	if k.err != nil {
		return k.err
	}
	return k.endEach(k.s.sessions.ids())
}

// endEach ends sessions side by side: one may wait for a document that another's
// transaction holds.
func (k *call) endEach(ids []string) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { errs[i] = k.endSession(id) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
