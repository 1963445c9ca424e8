package replset_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.uber.org/goleak"

	"github.com/assaylab/assay/replset"
)

// What people complain about in the stand-ins and launchers that they test against.
// Each test is named after what cannot happen here, and says what did happen there.

func hello(t *testing.T, uri string) bson.M {
	t.Helper()
	return raw(t, uri, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
}

// The launcher says that the set is there, and the first insert fails, because an
// election is still going on.
func TestComplaint01StartDoesNotReturnBeforeWritesArePossible(t *testing.T) {
	for range 3 {
		s := replset.Start(t, replset.Options{})
		p := s.Primary()
		if p < 0 {
			t.Fatal("there is no primary")
		}
		got := raw(t, s.MemberURI(p), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": 1}}}})
		if got["ok"] != 1.0 || got["n"] != int32(1) {
			t.Errorf("the first command gave %v", got)
		}
		for i := range 3 {
			if h := hello(t, s.MemberURI(i)); h["primary"] != hello(t, s.MemberURI(p))["me"] {
				t.Errorf("member %d names the primary %v", i, h["primary"])
			}
		}
		must(t, s.Close())
	}
}

// The launcher waits for a primary for ever, and does not say what is missing.
func TestComplaint02StartDoesNotHangWithoutAPrimary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := replset.New(ctx, replset.Options{}); err == nil {
		must(t, s.Close())
		t.Error("a set started in no time at all")
	}
	s := replset.Start(t, replset.Options{})
	must(t, s.Partition([]int{0}, []int{1}, []int{2}))
	waitFor(t, "the primary to notice", func() bool { return s.Primary() < 0 })
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := s.AwaitPrimary(short)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waiting for a primary gave %v", err)
	}
	for _, member := range []string{"member 0", "member 1", "member 2"} {
		if !strings.Contains(err.Error(), member) {
			t.Errorf("the error does not say what %s lacks: %v", member, err)
		}
	}
	must(t, s.Heal())
}

// On a slow machine the primary loses its role right after the start, for want of a
// heartbeat.
func TestComplaint03ABusyMachineDoesNotCostThePrimaryItsRole(t *testing.T) {
	s, c := start(t, replset.Options{})
	before := hello(t, s.MemberURI(s.Primary()))["electionId"]
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for x := 0; ; x++ {
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // it makes the machine slow itself
	defer cancel()
	col := c.Database("db").Collection("c")
	for i := range 5 {
		_, err := col.InsertOne(ctx, bson.M{"_id": i})
		must(t, err)
	}
	runtime.GC()
	close(done)
	group.Wait()
	if after := hello(t, s.MemberURI(s.Primary()))["electionId"]; before != after {
		t.Logf("the set held an election on a machine this busy: %v, then %v", before, after)
	}
	// Whether or not it had to, every write above went through.
	if n, err := col.CountDocuments(ctx, bson.M{}); n != 5 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
}

// The time that a launcher waits for an election is fixed, and too short or too long.
func TestComplaint04TheElectionTimeIsAnOption(t *testing.T) {
	millis := func(timing replset.Timing) int64 {
		s := replset.Start(t, replset.Options{Timing: timing})
		got := raw(t, s.MemberURI(0), bson.D{{Key: "replSetGetConfig", Value: 1}, {Key: "$db", Value: "admin"}})
		for _, e := range got["config"].(bson.D) {
			if e.Key != "settings" {
				continue
			}
			for _, e := range e.Value.(bson.D) {
				if e.Key == "electionTimeoutMillis" {
					switch v := e.Value.(type) {
					case int32:
						return int64(v)
					case int64:
						return v
					}
				}
			}
		}
		t.Fatalf("no electionTimeoutMillis in %v", got)
		return 0
	}
	fast, slow := millis(replset.Fast), millis(replset.MongoDB)
	if slow != 10_000 || fast <= 0 || fast > 1000 {
		t.Errorf("elections after %d ms and %d ms", fast, slow)
	}
}

// The first write of a transaction fails, because it waits no longer than 5 ms for a
// collection that is just being made.
func TestComplaint05ATransactionDoesNotFailForACollectionThatIsBeingMade(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			sess, err := c.StartSession()
			if err != nil {
				t.Error(err)
				return
			}
			defer sess.EndSession(ctx)
			in := mongo.NewSessionContext(ctx, sess)
			if err := sess.StartTransaction(); err != nil {
				t.Error(err)
				return
			}
			_, err = c.Database("db").Collection("new").InsertOne(in, bson.M{"_id": w})
			if err := errors.Join(err, sess.CommitTransaction(in)); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	group.Wait()
}

// The launcher looks for a free port, gives it up, and somebody else takes it before
// the server does.
func TestComplaint06NobodyElseCanTakeAPort(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := replset.New(within(t), replset.Options{})
			if err != nil {
				t.Errorf("one of several sets at once: %v", err)
				return
			}
			for i := range 3 {
				addr := hello(t, s.MemberURI(i))["me"].(string)
				if l, err := net.Listen("tcp", addr); err == nil {
					l.Close()
					t.Errorf("the address %s of a running member was free", addr)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A server that was stopped cannot be started on the same port.
func TestComplaint07AMemberComesBackAtItsAddress(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	for i := range 3 {
		uri := s.MemberURI(i)
		must(t, s.Kill(i))
		must(t, s.Restart(i))
		if s.MemberURI(i) != uri {
			t.Errorf("member %d moved from %s to %s", i, uri, s.MemberURI(i))
		}
		_, err := s.AwaitPrimary(ctx)
		must(t, err)
	}
	waitFor(t, "a write by a client that was there all the time", func() bool {
		_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{})
		return err == nil
	})
	// And so does a whole set at a fixed port.
	port := net.JoinHostPort("127.0.0.1", "0")
	l, err := net.Listen("tcp", port)
	must(t, err)
	fixed := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	if fixed > 65000 {
		t.Skip("no room above the port that was free")
	}
	for range 2 {
		again, err := replset.New(ctx, replset.Options{Members: 1, Port: fixed})
		must(t, err)
		must(t, again.Close())
	}
}

// Stopping takes ten seconds and a SIGKILL, or never ends, and a second time fails.
func TestComplaint08CloseEndsAndMayBeRepeated(t *testing.T) {
	s, err := replset.New(within(t), replset.Options{})
	must(t, err)
	c := connect(t, s.URI())
	ctx := within(t)
	// With everything that could be waited for: an open transaction, a stream that
	// waits, a cursor.
	sess, in := begin(t, c)
	_, err = c.Database("db").Collection("c").InsertOne(in, bson.M{"_id": 1})
	must(t, err)
	_ = sess
	cs, err := c.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(15*time.Second))
	must(t, err)
	waiting := make(chan struct{})
	go func() { cs.Next(ctx); close(waiting) }()
	closed := make(chan error, 2)
	began := time.Now()
	go func() { closed <- errors.Join(s.Close(), s.Close()) }()
	select {
	case err := <-closed:
		t.Logf("closed in %v", time.Since(began))
		must(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("Close did not end")
	}
	must(t, c.Disconnect(ctx))
	<-waiting
}

// Processes, handles and folders are left behind.
func TestComplaint09NothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	before := goleak.IgnoreCurrent()
	s, err := replset.New(within(t), replset.Options{})
	must(t, err)
	must(t, s.Kill(1))
	must(t, s.Restart(1))
	must(t, s.Close())
	if err := goleak.Find(before); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("in the folder for temporary files: %v", left)
	}
}

// A server must be downloaded first, and the download fails, is forbidden, or is not
// in the cache.
func TestComplaint10NothingIsDownloaded(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, pkg := range []string{`"net/http"`, `"archive/tar"`, `"archive/zip"`} {
			if strings.Contains(f.src, pkg) {
				t.Errorf("%s imports %s", f.path, pkg)
			}
		}
	}
}

// There is no binary for this processor or this system, or it asks for instructions
// that the machine has not.
func TestComplaint11AnyMachineThatGoRunsOnWillDo(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.Contains(f.src, "\nimport \"C\"") || strings.HasSuffix(f.path, ".s") {
			t.Errorf("%s is not pure Go", f.path)
		}
	}
	if testing.Short() {
		return
	}
	for _, target := range []string{"linux/arm64", "windows/amd64", "darwin/arm64"} {
		system, processor, _ := strings.Cut(target, "/")
		// list resolves every package for the target without compiling it.
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", ".")
		list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
		out, err := list.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
		if s := strings.TrimSpace(string(out)); s != "" {
			t.Errorf("%s needs a C compiler for %s", target, s)
		}
	}
}

type goFile struct{ path, src string }

func goFiles(t *testing.T) (out []goFile) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" {
			return err
		}
		src, err := os.ReadFile(path)
		out = append(out, goFile{path, string(src)})
		return err
	}))
	if len(out) < 50 {
		t.Fatalf("found only %d files", len(out))
	}
	return out
}

// The members tell clients names that cannot be reached from where the clients are, so
// that everybody writes directConnection into the URI.
func TestComplaint12TheURIWorksAsItIs(t *testing.T) {
	s := replset.Start(t, replset.Options{})
	if strings.Contains(s.URI(), "direct") {
		t.Errorf("the URI is %s", s.URI())
	}
	c := connect(t, s.URI())
	must(t, c.Ping(within(t), readpref.Primary()))
	must(t, c.Ping(within(t), readpref.Secondary()))
	for i := range 3 {
		h := hello(t, s.MemberURI(i))
		if addr := strings.TrimSuffix(strings.TrimPrefix(s.MemberURI(i), "mongodb://"), "/?directConnection=true"); h["me"] != addr {
			t.Errorf("member %d calls itself %v and is reached at %s", i, h["me"], addr)
		}
		for _, host := range h["hosts"].(bson.A) {
			if !strings.Contains(s.URI(), host.(string)) {
				t.Errorf("member %d tells of %v, which is not in %s", i, host, s.URI())
			}
		}
	}
}

// With directConnection any member takes any command, so that the code which should find
// the primary is never tested.
func TestComplaint13ASecondaryDoesNotPassForAPrimary(t *testing.T) {
	s := replset.Start(t, replset.Options{})
	uri := s.MemberURI((s.Primary() + 1) % 3)
	for want, cmds := range map[int32][]bson.D{
		10107: {
			{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}},
			{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{}, "u": bson.M{"$set": bson.M{"x": 1}}}}}},
			{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.M{"q": bson.M{}, "limit": 0}}}},
			{{Key: "findAndModify", Value: "c"}, {Key: "remove", Value: true}},
			{{Key: "create", Value: "c"}}, {{Key: "drop", Value: "c"}}, {{Key: "dropDatabase", Value: 1}},
		},
		13435: {
			{{Key: "find", Value: "c"}}, {{Key: "count", Value: "c"}}, {{Key: "distinct", Value: "c"}, {Key: "key", Value: "x"}},
			{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: bson.M{}}},
			{{Key: "listCollections", Value: 1}}, {{Key: "listIndexes", Value: "c"}},
		},
	} {
		for _, cmd := range cmds {
			if got := raw(t, uri, cmd); got["code"] != want {
				t.Errorf("%v gave %v, want %d", cmd, got["code"], want)
			}
		}
	}
}

// Transactions and retryable writes must be switched on by a replica set's or a storage
// engine's settings.
func TestComplaint14TransactionsNeedNoSetting(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	sess, err := c.StartSession()
	must(t, err)
	defer sess.EndSession(ctx)
	_, err = sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		return c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
	})
	must(t, err)
}

// A shell must be installed to send replSetInitiate, or nothing works.
func TestComplaint15NoShellInitiatesTheSet(t *testing.T) {
	t.Setenv("PATH", "")
	s := replset.Start(t, replset.Options{})
	got := raw(t, s.MemberURI(0), bson.D{{Key: "replSetGetStatus", Value: 1}, {Key: "$db", Value: "admin"}})
	if members, _ := got["members"].(bson.A); len(members) != 3 {
		t.Errorf("the status is %v", got)
	}
}

// There are no transactions at all, or they are accepted and do nothing.
func TestComplaint16AnAbortedTransactionLeavesNothing(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "x": 1})
	must(t, err)
	sess, in := begin(t, c)
	must(t, col.FindOne(in, bson.M{"_id": 1}).Err()) // begins with a read
	_, err = col.UpdateOne(in, bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 2}})
	must(t, err)
	if n, err := col.CountDocuments(ctx, bson.M{"x": 2}); n != 0 || err != nil {
		t.Errorf("others see %d documents of an open transaction, %v", n, err)
	}
	must(t, sess.AbortTransaction(in))
	if n, err := col.CountDocuments(ctx, bson.M{"x": 2}); n != 0 || err != nil {
		t.Errorf("an aborted transaction left %d documents, %v", n, err)
	}
}

// What is not supported is accepted and ignored, and the test that relies on it passes.
// TestUnsupported… has the whole table; this is one of each kind.
func TestComplaint17NothingIsIgnored(t *testing.T) {
	s := replset.Start(t, replset.Options{Members: 1})
	for _, cmd := range []bson.D{
		{{Key: "mapReduce", Value: "c"}},
		{{Key: "find", Value: "c"}, {Key: "tailable", Value: true}},
		{{Key: "find", Value: "c"}, {Key: "no", Value: 1}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.M{"$where": "true"}}},
		{{Key: "create", Value: "c"}, {Key: "capped", Value: true}, {Key: "size", Value: 1}},
		{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": "eventual"}}},
	} {
		if got := raw(t, s.MemberURI(0), cmd); got["ok"] != 0.0 {
			t.Errorf("%v gave %v", cmd, got)
		}
	}
}

// Two clients that update one document at once both win.
func TestComplaint18AnUpdateIsAtomic(t *testing.T) {
	_, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 1, "v": 0})
	must(t, err)
	const workers = 8 // as many as a probe needs to see a race at once
	var group sync.WaitGroup
	var mu sync.Mutex
	winners, open := map[int32]int{}, 0
	for range workers {
		group.Go(func() {
			for range 12 {
				var doc struct{ V int32 }
				if err := col.FindOne(ctx, bson.M{"_id": 1}).Decode(&doc); err != nil {
					t.Error(err)
					return
				}
				err := col.FindOneAndReplace(ctx, bson.M{"_id": 1, "v": doc.V}, bson.M{"v": doc.V + 1}).Err()
				mu.Lock()
				switch {
				case err == nil:
					winners[doc.V]++
				case !errors.Is(err, mongo.ErrNoDocuments):
					open++ // an election, which a busy machine may hold: it won or did not
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var last struct{ V int32 }
	must(t, col.FindOne(ctx, bson.M{"_id": 1}).Decode(&last))
	for v, n := range winners {
		if n != 1 {
			t.Errorf("version %d was replaced by %d winners", v, n)
		}
	}
	if n := int(last.V); n < len(winners) || n > len(winners)+open {
		t.Errorf("version %d after %d wins, %d open", last.V, len(winners), open)
	}
}

// Every test pays for a start of seconds, so that nobody resets between tests.
func TestComplaint19ASetIsResetWithoutAStart(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	for i := range 3 {
		_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
		must(t, err)
		began := time.Now()
		must(t, s.Clean(ctx))
		t.Logf("reset %d in %v", i, time.Since(began))
	}
	names, err := c.ListDatabaseNames(ctx, bson.M{})
	must(t, err)
	if slices.Contains(names, "db") {
		t.Errorf("after a reset there are %v", names)
	}
}

// The stand-in is slower than the server that it stands for, and nobody says why. How
// fast a set is depends on the machine, and bench/replset says it (docs/replset.md,
// section 15); what it does for a write does not: one sync of the log on each member,
// which writes at once share, and none for a read, a linearizable one included.
func TestComplaint20AWriteIsOneSyncAndARead0(t *testing.T) {
	const members = 3
	var syncs [members]atomic.Int64
	slow := make(chan struct{}) // closed: a sync takes a while, as on a disk
	pause := func() {
		select {
		case <-slow:
			<-time.After(2 * time.Millisecond)
		default:
		}
	}
	s, c := start(t, replset.Options{}.With(replset.Hooks{Disk: func(member int, fs vfs.FS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
				syncs[member].Add(1)
				pause()
			}
			return nil
		}))
	}}))
	ctx := within(t)
	col := c.Database("db").Collection("c", options.Collection().SetReadConcern(readconcern.Linearizable()))
	_, err := col.InsertOne(ctx, bson.M{"_id": -1})
	must(t, err)
	// during is how many syncs each member makes while do runs, until all members are
	// where the primary is.
	during := func(do func()) (n [members]int64) {
		_ = secondaryOf(t, s, c)
		before := [members]int64{syncs[0].Load(), syncs[1].Load(), syncs[2].Load()}
		do()
		for i := range n {
			n[i] = syncs[i].Load() - before[i]
		}
		return n
	}
	const n, at = 64, 16
	one := during(func() {
		for i := range n {
			_, err := col.InsertOne(ctx, bson.M{"_id": i})
			must(t, err)
		}
	})
	read := during(func() {
		for i := range n {
			must(t, col.FindOne(ctx, bson.M{"_id": i}).Err())
		}
	})
	close(slow)
	many := during(func() {
		var group sync.WaitGroup
		for w := range at {
			group.Go(func() {
				for i := range n {
					if _, err := col.InsertOne(ctx, bson.M{"_id": n + w*n + i}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	})
	t.Logf("syncs by member: %v for %d writes one by one, %v for %d reads, %v for %d writes, %d at a time", one, n, read, n, many, n*at, at)
	// Beside the writes there is what an election costs, which a busy machine may hold, and
	// what the database does for its own files.
	const beside = n / 8
	if sum := one[0] + one[1] + one[2]; sum < 2*n {
		t.Errorf("%d writes were acknowledged after %d syncs, fewer than a majority's", n, sum)
	}
	for i := range members {
		if one[i] > n+beside {
			t.Errorf("member %d made %d syncs for %d writes", i, one[i], n)
		}
		if read[i] > beside {
			t.Errorf("member %d made %d syncs for %d reads", i, read[i], n)
		}
		if many[i] > n*at/2 {
			t.Errorf("member %d made %d syncs for %d writes, %d at a time", i, many[i], n*at, at)
		}
	}
}

// A failover can only be provoked by a command that takes ten seconds, or not at all.
func TestComplaint21AFailoverIsOneCall(t *testing.T) {
	s, c := start(t, replset.Options{})
	ctx := within(t)
	col := c.Database("db").Collection("c")
	write := func(after string) {
		t.Helper()
		waitFor(t, "a write after "+after, func() bool {
			_, err := col.InsertOne(ctx, bson.M{"after": after})
			return err == nil
		})
	}
	p := s.Primary()
	began := time.Now()
	must(t, s.StepDown(ctx))
	t.Logf("stepped down in %v", time.Since(began))
	if s.Primary() == p {
		t.Error("the primary is the same after a step-down")
	}
	write("a step-down")
	p = s.Primary()
	must(t, s.Kill(p))
	_, err := s.AwaitPrimary(ctx)
	must(t, err)
	write("a kill")
	must(t, s.Restart(p))
	p = s.Primary()
	must(t, s.Partition([]int{p}, []int{(p + 1) % 3, (p + 2) % 3}))
	waitFor(t, "a primary on the other side", func() bool { q := s.Primary(); return q >= 0 && q != p })
	must(t, s.Heal())
	write("a partition")
	admin := c.Database("admin")
	must(t, admin.RunCommand(ctx, bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.M{"times": 1}},
		{Key: "data", Value: bson.M{"failCommands": bson.A{"insert"}, "errorCode": 11602, "errorLabels": bson.A{}}},
	}).Err())
	if _, err := col.InsertOne(ctx, bson.M{}); code(err) != 11602 {
		t.Errorf("a fail point gave %v", err)
	}
}

// A client that connects early is told too little, and decides that there are no
// sessions and no transactions.
func TestComplaint22HelloIsCompleteFromTheFirstByte(t *testing.T) {
	s, err := replset.New(within(t), replset.Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for i := range 3 {
		h := hello(t, s.MemberURI(i))
		for _, field := range []string{"setName", "hosts", "me", "primary", "logicalSessionTimeoutMinutes", "maxWireVersion", "maxMessageSizeBytes", "topologyVersion", "electionId", "setVersion"} {
			if h[field] == nil && (field != "electionId" || i == s.Primary()) {
				t.Errorf("member %d does not tell %s: %v", i, field, h)
			}
		}
	}
}
