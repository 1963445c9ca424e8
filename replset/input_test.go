package replset_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/replset"
)

// nested is an insert of a document with so many levels.
func nested(t *testing.T, levels int) []byte {
	t.Helper()
	var doc []byte
	for i := range levels - 1 {
		doc = binary.LittleEndian.AppendUint32(doc, uint32(5+8*(levels-1-i)))
		doc = append(doc, 3, 'a', 0)
	}
	doc = append(doc, 5, 0, 0, 0)
	doc = append(doc, make([]byte, levels)...)
	body, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.Raw(doc)}}, {Key: "$db", Value: "db"}})
	must(t, err)
	return messageOf(body)
}

// Each input is answered with an error, or ends the connection it came on. Nobody
// else notices.
func TestBadInputHurtsNobody(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	addr := addrOf(t, s, s.Primary())
	big := make([]byte, 17<<20)
	for _, bad := range []struct {
		what string
		send []byte
		code int32 // 0: the connection ends
	}{
		{"another protocol", []byte("GET / HTTP/1.1\r\n\r\n"), 0},
		{"an unknown opcode", []byte("\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xff\x00\x00\x00"), 0},
		{"a length beyond the limit", []byte("\xff\xff\xff\x7f1234567890123"), 0},
		{"a negative length", []byte("\xff\xff\xff\xff1234567890123"), 0},
		{"half a message", helloMessage(t)[:40], 0},
		{"half a header", []byte("\x20\x00\x00\x00half"), 0},
		{"a body that is no BSON", messageOf([]byte("\x20\x00\x00\x00garbage garbage garbage garbage\x00")), 0},
		{"a document of 17 MB", message(t, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"b": big}}}, {Key: "$db", Value: "db"}}), 10334},
		{"101 levels", nested(t, 101), 15},
		{"100,000 levels", nested(t, 100_000), 15},
		{"2,000,000 levels", nested(t, 2_000_000), 15},
		{"no command", message(t, bson.D{{Key: "$db", Value: "db"}}), 59},
		{"an unknown command", message(t, bson.D{{Key: "fly", Value: 1}, {Key: "$db", Value: "db"}}), 59},
	} {
		rc := dialRaw(t, addr)
		_, err := rc.Write(bad.send)
		if err == nil && bad.code == 0 {
			err = rc.Conn.(*net.TCPConn).CloseWrite()
		}
		if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: sending: %v", bad.what, err)
		}
		a, err := rc.answer()
		switch {
		case bad.code == 0 && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)):
			t.Errorf("%s keeps its connection: %v, %v", bad.what, a, err)
		case bad.code != 0 && (err != nil || a["code"] != bad.code):
			t.Errorf("%s gave %v, %v; want error %d", bad.what, a, err, bad.code)
		}
		_, err = col.InsertOne(ctx, bson.M{"after": bad.what})
		must(t, err)
	}
	// 100 levels are fine.
	rc := dialRaw(t, addr)
	_, err := rc.Write(nested(t, 99))
	must(t, err)
	if a, err := rc.answer(); err != nil || a["n"] != int32(1) {
		t.Errorf("99 levels gave %v, %v", a, err)
	}
}

// A client that asks and never reads has its own answers waiting, and no more: the
// server stops reading from it. Others and Close do not wait for it.
func TestAClientThatNeverReadsHurtsNobody(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "text": strings.Repeat("x", 1<<20)})
	must(t, err)
	find := message(t, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})
	var group sync.WaitGroup
	var conns []net.Conn
	for range 8 {
		nc, err := net.Dial("tcp", addrOf(t, s, s.Primary()))
		must(t, err)
		conns = append(conns, nc)
		must(t, nc.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		group.Go(func() {
			for range 1_000_000 {
				if _, err := nc.Write(find); err != nil {
					return // the server reads no more
				}
			}
			t.Error("the server goes on reading from a client that never reads")
		})
	}
	for i := range 20 {
		_, err := col.InsertOne(ctx, bson.M{"i": i})
		must(t, err)
	}
	group.Wait()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 512<<20 {
		t.Errorf("the heap has %d MiB", m.HeapAlloc>>20)
	}
	must(t, col.FindOne(ctx, bson.M{"i": 0}).Err())
	must(t, s.Close())
	for _, nc := range conns {
		nc.Close()
	}
}

// A command whose client goes away while it waits is interrupted: what it holds is
// free again, long before it would have got what it waits for.
func TestAClientThatGoesAwayInterruptsItsCommand(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	db := c.Database("db")
	_, err := db.Collection("c").InsertOne(ctx, bson.M{"_id": 1})
	must(t, err)
	session, err := c.StartSession()
	must(t, err)
	defer session.EndSession(ctx)
	must(t, session.StartTransaction())
	_, err = db.Collection("c").UpdateOne(mongo.NewSessionContext(ctx, session), bson.M{"_id": 1}, bson.M{"$set": bson.M{"by": "transaction"}})
	must(t, err)
	rc := dialRaw(t, addrOf(t, s, s.Primary()))
	hello := helloThatWaits(t, rc)
	before := connections(t, c)
	for what, command := range map[string]bson.D{
		"a write that waits for a transaction": {{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{"_id": 1}, "u": bson.M{"$set": bson.M{"by": "gone"}}}}}, {Key: "$db", Value: "db"}},
		"a hello that waits for a change":      hello,
		"a read of a time to come":             {{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"afterClusterTime": bson.Timestamp{T: uint32(time.Now().Unix()) + 1000, I: 1}}}, {Key: "$db", Value: "db"}},
	} {
		nc, err := net.Dial("tcp", addrOf(t, s, s.Primary()))
		must(t, err)
		_, err = nc.Write(message(t, command))
		must(t, err)
		waitFor(t, what+" to begin", func() bool { return connections(t, c) > before })
		must(t, nc.Close())
		waitFor(t, "the end of "+what, func() bool { return connections(t, c) <= before })
	}
	must(t, session.CommitTransaction(ctx))
	var d struct{ By string }
	must(t, db.Collection("c").FindOne(ctx, bson.M{"_id": 1}).Decode(&d))
	if d.By != "transaction" {
		t.Errorf("the document is by %q", d.By)
	}
}

func helloThatWaits(t *testing.T, rc *rawConn) bson.D {
	a := rc.ask(t, bson.D{{Key: "hello", Value: 1}})
	return bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: a["topologyVersion"]}, {Key: "maxAwaitTimeMS", Value: 600_000}, {Key: "$db", Value: "admin"}}
}

// connections is how many clients' connections the primary has.
func connections(t *testing.T, c *mongo.Client) int32 {
	t.Helper()
	var st struct{ Connections struct{ Current int32 } }
	must(t, c.Database("admin").RunCommand(within(t), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&st))
	return st.Connections.Current
}

// Ten thousand clients have their connections, and everybody is answered.
func TestTenThousandConnections(t *testing.T) {
	const count = 10_000
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	// The members are a process, so that each end has its own descriptors.
	if need := uint64(count + 500); limit.Cur < need {
		if limit.Max < need {
			t.Skipf("this test needs %d open files and may have %d (ulimit -n)", need, limit.Max)
		}
		raised := syscall.Rlimit{Cur: need, Max: limit.Max}
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised))
		defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	o := forms()["as processes"]
	o.Members = 1
	s, c := start(t, o)
	ctx := within(t)
	resident := func() int64 { return residentMemory(t, s.Pids()[0]) }
	before := resident()
	hello := helloMessage(t)
	conns := make([]net.Conn, count)
	defer func() {
		for _, nc := range conns {
			if nc != nil {
				nc.Close()
			}
		}
	}()
	var group sync.WaitGroup
	const dialers = 16
	for d := range dialers {
		group.Go(func() {
			for i := d; i < count; i += dialers {
				nc, err := net.Dial("tcp", addrOf(t, s, 0))
				if err != nil {
					t.Error(err)
					return
				}
				conns[i] = nc
				rc := &rawConn{nc}
				_ = nc.SetDeadline(time.Now().Add(patience))
				if _, err := nc.Write(hello); err != nil {
					t.Error(err)
					return
				}
				if _, err := rc.answer(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{})
	must(t, err)
	if n := connections(t, c); n < count {
		t.Errorf("the member has %d connections", n)
	}
	t.Logf("%d idle connections take %d KiB each", count, (resident()-before)/count>>10)
	if a := dialRaw(t, addrOf(t, s, 0)).ask(t, bson.D{{Key: "ping", Value: 1}}); a["ok"] != float64(1) {
		t.Errorf("one more was answered %v", a)
	}
}

func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skipf("memory is measured where /proc is: %v", err)
	}
	var size, pages int64
	_, err = fmt.Fscan(bytes.NewReader(b), &size, &pages)
	must(t, err)
	return pages * int64(os.Getpagesize())
}

// A port that another set has taken over gets none of the first one's messages.
func TestAPortOfAnotherSetHearsNothing(t *testing.T) {
	first, c := start(t, replset.Options{})
	ctx := within(t)
	const away = 0 // whose place the second set's member 0 has, among members of the same numbers
	// Of a later term, whose leader a member obeys at once.
	for i := range 6 {
		must(t, first.StepUp(ctx, 1+i%2))
	}
	must(t, first.Kill(away))
	second := replset.StartAtPeer(t, first, away)
	term := second.Members()[away].Term
	// Both go on, and what the first one writes does not come to the second.
	for i := range 20 {
		_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"i": i})
		must(t, err)
	}
	if now := second.Members()[away].Term; now > term+1 {
		t.Errorf("the second set went from term %d to %d", term, now)
	}
	other := connect(t, second.URI())
	_, err := other.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": "second"})
	must(t, err)
	n, err := other.Database("db").Collection("c").CountDocuments(ctx, bson.M{})
	must(t, err)
	if n != 1 {
		t.Errorf("the second set has %d documents", n)
	}
	if err := first.Restart(away); err == nil {
		t.Error("a member started at an address that another set has")
	}
	must(t, other.Disconnect(ctx))
	must(t, second.Close())
	must(t, first.Restart(away))
	awaitDocument(t, connect(t, first.MemberURI(away)), bson.M{"i": 19})
}
