package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

func body(name string) bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendInt32(name, 1).AppendString("$db", "shop").Build()
}

func message(op wiremessage.OpCode, payload []byte) []byte {
	return append(wiremessage.AppendHeader(nil, int32(headerSize+len(payload)), 7, 0, op), payload...)
}

func msg(flags wiremessage.MsgFlag, sections ...[]byte) []byte {
	p := wiremessage.AppendMsgFlags(nil, flags)
	for _, s := range sections {
		p = append(p, s...)
	}
	return message(wiremessage.OpMsg, p)
}

func bodySection(d bsoncore.Document) []byte { return append([]byte{0}, d...) }

func sequence(name string, docs ...bsoncore.Document) []byte {
	b := []byte{1}
	at, b := bsoncore.ReserveLength(b)
	b = append(append(b, name...), 0)
	for _, d := range docs {
		b = append(b, d...)
	}
	return bsoncore.UpdateLength(b, at, int32(len(b))-at)
}

func query(ns string, doc bsoncore.Document) []byte {
	p := wiremessage.AppendQueryFlags(nil, 0)
	p = wiremessage.AppendQueryFullCollectionName(p, ns)
	p = wiremessage.AppendQueryNumberToSkip(p, 0)
	p = wiremessage.AppendQueryNumberToReturn(p, -1)
	return message(wiremessage.OpQuery, append(p, doc...))
}

func compressed(t testing.TB, id wiremessage.CompressorID, inner []byte, size int32) []byte {
	t.Helper()
	packed, err := driver.CompressPayload(inner, driver.CompressionOpts{Compressor: id, ZlibLevel: 6, ZstdLevel: 6})
	if err != nil {
		t.Fatal(err)
	}
	p := wiremessage.AppendCompressedOriginalOpCode(nil, wiremessage.OpMsg)
	p = wiremessage.AppendCompressedUncompressedSize(p, size)
	p = wiremessage.AppendCompressedCompressorID(p, id)
	return message(wiremessage.OpCompressed, append(p, packed...))
}

func read(b []byte) (*Request, error) { return Read(bufio.NewReader(bytes.NewReader(b))) }

func TestReadsWhatDriversSend(t *testing.T) {
	r, err := read(msg(wiremessage.ExhaustAllowed, bodySection(body("insert")), sequence("documents", body("a"), body("b"))))
	if err != nil {
		t.Fatal(err)
	}
	docs, ok := r.Documents("documents")
	if r.Command() != "insert" || r.Database != "shop" || !ok || len(docs) != 2 || !r.Exhaust() || r.Quiet() || r.ID != 7 {
		t.Errorf("read %+v with %d documents", r, len(docs))
	}
	r, err = read(query("admin.$cmd", body("isMaster")))
	if err != nil || !r.Legacy() || r.Database != "admin" || r.Command() != "isMaster" {
		t.Errorf("read %+v, %v", r, err)
	}
	r, err = read(msg(wiremessage.MoreToCome, bodySection(body("insert"))))
	if err != nil || !r.Quiet() {
		t.Errorf("read %+v, %v", r, err)
	}
	inner := msg(0, bodySection(body("find")))[headerSize:]
	for _, id := range []wiremessage.CompressorID{wiremessage.CompressorSnappy, wiremessage.CompressorZLib, wiremessage.CompressorZstd} {
		r, err := read(compressed(t, id, inner, int32(len(inner))))
		if err != nil || r.Command() != "find" {
			t.Fatalf("compressor %d: %v", id, err)
		}
		reply, _, err := Reply(r, r.ID, body("ok"), false)
		if err != nil {
			t.Fatal(err)
		}
		if op := binary.LittleEndian.Uint32(reply[12:]); op != uint32(wiremessage.OpCompressed) {
			t.Errorf("a compressed request was answered with opcode %d", op)
		}
	}
}

func TestRefusesWhatIsNoMessage(t *testing.T) {
	good := msg(0, bodySection(body("ping")))
	big := bytes.Clone(good)
	binary.LittleEndian.PutUint32(big, MaxMessageSize+1)
	small := bytes.Clone(good)
	binary.LittleEndian.PutUint32(small, 15)
	negative := bytes.Clone(good)
	binary.LittleEndian.PutUint32(negative, 1<<31)
	broken := bytes.Clone(body("ping"))
	broken[4] = 0xee
	inner := good[headerSize:]
	for name, b := range map[string][]byte{
		"half a header":        good[:9],
		"half a message":       good[:len(good)-3],
		"too big":              big,
		"too small":            small,
		"negative length":      negative,
		"unknown opcode":       message(2004+100, nil),
		"old insert":           message(wiremessage.OpInsert, make([]byte, 20)),
		"unknown flag":         msg(1<<5, bodySection(body("ping"))),
		"no sections":          msg(0),
		"two bodies":           msg(0, bodySection(body("a")), bodySection(body("b"))),
		"unknown section":      msg(0, []byte{9}),
		"sequence alone":       msg(0, sequence("documents", body("a"))),
		"two of one sequence":  msg(0, bodySection(body("a")), sequence("d"), sequence("d")),
		"broken BSON":          msg(0, bodySection(broken)),
		"broken in sequence":   msg(0, bodySection(body("a")), sequence("d", broken)),
		"query on a namespace": query("shop.orders", body("find")),
		"compressed twice":     message(wiremessage.OpCompressed, append(wiremessage.AppendCompressedOriginalOpCode(nil, wiremessage.OpCompressed), make([]byte, 20)...)),
		"wrong size":           compressed(t, wiremessage.CompressorSnappy, inner, int32(len(inner))+1),
		"bomb":                 compressed(t, wiremessage.CompressorZLib, make([]byte, 1<<20), MaxMessageSize),
		"garbage":              bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 4),
	} {
		if r, err := read(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: read %+v, %v", name, r, err)
		}
	}
	if _, err := read(nil); !errors.Is(err, io.EOF) || errors.Is(err, ErrProtocol) {
		t.Errorf("the end of a connection is %v", err)
	}
}

func TestRepliesSayWhatTheyAnswer(t *testing.T) {
	legacy, err := read(query("admin.$cmd", body("isMaster")))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := Reply(legacy, legacy.ID, body("ok"), false)
	if err != nil {
		t.Fatal(err)
	}
	length, _, to, op, _, _ := wiremessage.ReadHeader(b)
	if int(length) != len(b) || to != 7 || op != wiremessage.OpReply {
		t.Errorf("length %d of %d, to %d, opcode %d", length, len(b), to, op)
	}
	r, err := read(msg(wiremessage.ExhaustAllowed, bodySection(body("hello"))))
	if err != nil {
		t.Fatal(err)
	}
	b, id, err := Reply(r, r.ID, body("ok"), true)
	if err != nil {
		t.Fatal(err)
	}
	length, got, _, op, rest, _ := wiremessage.ReadHeader(b)
	flags, _, _ := wiremessage.ReadMsgFlags(rest)
	if int(length) != len(b) || got != id || op != wiremessage.OpMsg || flags&wiremessage.MoreToCome == 0 {
		t.Errorf("length %d of %d, id %d, opcode %d, flags %d", length, len(b), got, op, flags)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(msg(0, bodySection(body("ping"))))
	f.Add(msg(0, bodySection(body("insert")), sequence("documents", body("a"))))
	f.Add(query("admin.$cmd", body("isMaster")))
	inner := msg(0, bodySection(body("find")))[headerSize:]
	f.Add(compressed(f, wiremessage.CompressorSnappy, inner, int32(len(inner))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := read(b)
		if err != nil {
			return
		}
		if _, _, err := Reply(r, r.ID, body("ok"), false); err != nil {
			t.Fatalf("a request that was read cannot be answered: %v", err)
		}
		r.Command()
		r.Documents("documents")
	})
}
