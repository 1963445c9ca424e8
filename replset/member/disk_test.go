package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/assaylab/assay/replset/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

func config(t *testing.T, dir string) Config {
	return Config{
		Name: "rs0", Hosts: []string{freeAddress(t)}, Peers: []string{freeAddress(t)}, Token: link.NewToken(), Dir: dir,
		Tick: 15 * time.Millisecond, ElectionTicks: 10, HeartbeatTicks: 1, SegmentBytes: 256 << 10,
	}
}

// alone starts a set of one member and a client of it.
func alone(t *testing.T, c Config, fs vfs.FS) (*Member, *mongo.Client) {
	t.Helper()
	m, err := Start(c, fs, func() {})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	must(t, m.StepUp(within(t)))
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + c.Hosts[0] + "/?directConnection=true").SetTimeout(patience).SetRetryWrites(false))
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the member may be gone
		_ = client.Disconnect(ctx)
	})
	return m, client
}

// disk is a file system whose room the test decides, and that can be full at once.
type disk struct {
	vfs.FS
	left   atomic.Uint64
	full   atomic.Bool
	looked atomic.Int64 // how often it was asked what is left
}

func newDisk() *disk {
	d := &disk{}
	d.left.Store(1 << 40)
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	return d
}

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.looked.Add(1)
	return vfs.DiskUsage{AvailBytes: d.left.Load()}, nil
}

func codeOf(err error) int32 {
	var c mongo.CommandError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// until tries until it is done.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestWithoutRoomWritesAreRefusedAndReadsGoOn(t *testing.T) {
	d := newDisk()
	_, client := alone(t, config(t, "data"), d)
	ctx := within(t)
	col := client.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": 0})
	must(t, err)
	d.left.Store(diskReserve - 1)
	acknowledged := int64(1)
	var refused error
	until(t, "a refusal", func() bool {
		_, refused = col.InsertOne(ctx, bson.M{})
		if refused == nil {
			acknowledged++
		}
		return refused != nil
	})
	if codeOf(refused) != 14031 || !strings.Contains(refused.Error(), "127 MiB are left in data") {
		t.Errorf("without room an insert gave %v", refused)
	}
	for what, err := range map[string]error{
		"update":           col.FindOneAndUpdate(ctx, bson.M{"_id": 0}, bson.M{"$set": bson.M{"x": 1}}).Err(),
		"createCollection": client.Database("db").CreateCollection(ctx, "other"),
		"transaction": client.UseSession(ctx, func(ctx context.Context) error {
			s := mongo.SessionFromContext(ctx)
			if err := s.StartTransaction(); err != nil {
				return err
			}
			if _, err := col.InsertOne(ctx, bson.M{}); err != nil {
				return err
			}
			return s.CommitTransaction(ctx)
		}),
	} {
		if codeOf(err) != 14031 {
			t.Errorf("without room %s gave %v", what, err)
		}
	}
	n, err := col.CountDocuments(ctx, bson.M{})
	must(t, err)
	if n != acknowledged {
		t.Errorf("there are %d documents, %d were acknowledged", n, acknowledged)
	}
	d.left.Store(1 << 40)
	until(t, "a write after there is room", func() bool {
		_, err := col.InsertOne(ctx, bson.M{})
		return err == nil
	})
}

// A member that lacks a state and has no room for it stays behind, and costs nobody anything.
func TestWithoutRoomNoStateIsTakenIn(t *testing.T) {
	var configs []Config
	hub := link.NewHub()
	for i := range 3 {
		c := config(t, "data")
		c.Index, c.KeepEntries, c.Hub = i, 4, hub
		configs = append(configs, c)
	}
	disks := make([]*disk, 3)
	members := make([]*Member, 3)
	begin := func(i int) {
		t.Helper()
		c := configs[i]
		c.Hosts, c.Peers, c.Token = nil, nil, configs[0].Token
		for _, o := range configs {
			c.Hosts, c.Peers = append(c.Hosts, o.Hosts[0]), append(c.Peers, o.Peers[0])
		}
		var err error
		members[i], err = Start(c, disks[i], func() {})
		must(t, err)
		t.Cleanup(func() { _ = members[i].Close() })
	}
	for i := range 3 {
		disks[i] = newDisk()
		begin(i)
	}
	must(t, members[0].StepUp(within(t)))
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + configs[0].Hosts[0] + "/?directConnection=true").SetTimeout(patience))
	must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	col := client.Database("db").Collection("c")
	insert := func(n int) {
		t.Helper()
		for range n {
			_, err := col.InsertOne(within(t), bson.M{})
			must(t, err)
		}
	}
	insert(1)
	must(t, members[2].Close())
	insert(40)
	disks[2].left.Store(diskReserve - 1)
	begin(2)
	looked := disks[2].looked.Load()
	until(t, "states to be refused", func() bool {
		insert(1)
		return disks[2].looked.Load() > looked+2
	})
	if now := members[2].node.Applied(); now > 10 {
		t.Errorf("without room it went on to entry %d", now)
	}
	if err := members[2].Err(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	disks[2].left.Store(1 << 40)
	until(t, "it to catch up", func() bool { return members[2].node.Applied() >= members[0].node.Applied() })
}

// A disk that is full between two looks ends the member's part; what it acknowledged
// is there after a restart.
func TestAWriteThatFailsLosesNothingAcknowledged(t *testing.T) {
	d := newDisk()
	c := config(t, "data")
	m, client := alone(t, c, d)
	ctx := within(t)
	col := client.Database("db").Collection("c")
	acknowledged := 0
	var failed error
	for i := 0; failed == nil; i++ {
		if i == 20 {
			d.full.Store(true)
		}
		if _, failed = col.InsertOne(ctx, bson.M{"_id": i}); failed == nil {
			acknowledged++
		}
	}
	if acknowledged != 20 {
		t.Fatalf("%d writes were acknowledged before the disk was full, and one failed with %v", acknowledged, failed)
	}
	until(t, "the member's end", func() bool { return m.Err() != nil })
	if !errors.Is(m.Err(), syscall.ENOSPC) && !strings.Contains(m.Err().Error(), "no space left") {
		t.Errorf("the member has failed with %v", m.Err())
	}
	n, err := col.CountDocuments(ctx, bson.M{})
	if err != nil || n < 20 {
		t.Errorf("a member that takes no writes any more reads %d documents, %v", n, err)
	}
	if _, err := col.InsertOne(ctx, bson.M{}); codeOf(err) != 10107 {
		t.Errorf("a write afterwards gave %v", err)
	}
	must(t, m.Close())
	d.full.Store(false)
	_, client = alone(t, c, d)
	col = client.Database("db").Collection("c")
	for i := range acknowledged {
		if err := col.FindOne(ctx, bson.M{"_id": i}).Err(); err != nil {
			t.Errorf("document %d was acknowledged and is lost: %v", i, err)
		}
	}
	_, err = col.InsertOne(ctx, bson.M{})
	must(t, err)
}

// fill makes a state with tables and a manifest, and a log.
func fill(t *testing.T, c Config) {
	for round := range 3 {
		m, client := alone(t, c, vfs.Default)
		var docs []any
		for i := range 50 {
			docs = append(docs, bson.M{"_id": fmt.Sprint(round, "-", i), "text": strings.Repeat(fmt.Sprint(i), 4000)})
		}
		_, err := client.Database("db").Collection("c").InsertMany(within(t), docs)
		must(t, err)
		_, err = client.Database("db").Collection("c").InsertOne(within(t), bson.M{"last": round})
		must(t, err)
		must(t, client.Disconnect(within(t)))
		must(t, m.Close())
	}
}

// One flipped bit in a file keeps the member from starting, and the error says which
// file it is.
func TestADamagedStoreIsRefused(t *testing.T) {
	c := config(t, filepath.Join(t.TempDir(), "data"))
	must(t, os.Mkdir(c.Dir, 0o755))
	fill(t, c)
	files := allFiles(t, c.Dir)
	tried := map[string]int{}
	for _, path := range files {
		name := filepath.Base(path)
		kind := filepath.Ext(name)
		for _, prefix := range []string{"MANIFEST", "log"} {
			if strings.HasPrefix(name, prefix) {
				kind = prefix
			}
		}
		if kind != ".sst" && kind != "log" && kind != "MANIFEST" {
			continue
		}
		sound, err := os.ReadFile(path)
		must(t, err)
		used := len(bytes.TrimRight(sound, "\x00"))
		places := []int{used * 3 / 10, used / 2, used * 7 / 10}
		if kind == "log" {
			if used < 1<<10 {
				continue // nothing but its head and an end
			}
			// In the head, and in the last record before the end.
			places = append(places, 3, 30, 70, used-34)
		}
		if kind == "MANIFEST" { // which is short, and everything hangs on it
			places = nil
			for at := 0; at < len(sound); at += 17 {
				places = append(places, at)
			}
		}
		for _, at := range places {
			bad := append([]byte(nil), sound...)
			bad[at] ^= 0x10
			must(t, os.WriteFile(path, bad, 0o644))
			copyDir := copyOf(t, c.Dir)
			must(t, os.WriteFile(path, sound, 0o644))
			damaged := c
			damaged.Dir = copyDir
			m, err := Start(damaged, vfs.Default, func() {})
			switch {
			case err == nil:
				_ = m.Close()
				t.Errorf("%s of %d bytes was damaged at %d, and the member has started", name, len(sound), at)
			case !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), copyDir):
				t.Errorf("%s was damaged, and the error is %v", name, err)
			}
			tried[kind]++
		}
	}
	if tried[".sst"] == 0 || tried["log"] < 7 || tried["MANIFEST"] == 0 {
		t.Errorf("only %v were damaged; this shows too little", tried)
	}
	m, _ := alone(t, c, vfs.Default)
	must(t, m.Close())
}

func allFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// A folder that misses a part, or has that of another member or of an earlier version, is
// no empty one: a member that forgets its votes may elect a second primary.
func TestAFolderThatIsNotWholeIsRefused(t *testing.T) {
	c := config(t, filepath.Join(t.TempDir(), "data"))
	must(t, os.Mkdir(c.Dir, 0o755))
	fill(t, c)
	for what, change := range map[string]func(dir string) error{
		"log":   func(dir string) error { return os.RemoveAll(filepath.Join(dir, logFolder)) },
		"state": func(dir string) error { return os.RemoveAll(filepath.Join(dir, stateFolder)) },
		"earlier version": func(dir string) error {
			return os.Rename(filepath.Join(dir, stateFolder, manifestOf(t, dir)), filepath.Join(dir, manifestOf(t, dir)))
		},
	} {
		part := c
		part.Dir = copyOf(t, c.Dir)
		must(t, change(part.Dir))
		m, err := Start(part, vfs.Default, func() {})
		if err == nil {
			_ = m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), part.Dir) {
			t.Errorf("without its %s a member gave %v", what, err)
		}
	}
}

func manifestOf(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, stateFolder, "MANIFEST-*"))
	must(t, err)
	if len(found) == 0 {
		t.Fatal("there is no manifest")
	}
	return filepath.Base(found[0])
}

// The log has its room beforehand, so that the state may be what a full disk refuses first.
func TestAStateThatCannotBeWrittenEndsTheMembersPart(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && strings.Contains(op.Path, stateFolder) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	c := config(t, "data")
	began := make(chan error, 1)
	go func() {
		m, err := Start(c, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.HasSuffix(op.Path, ".sst") {
				return syscall.ENOSPC
			}
			return nil
		})), func() {})
		if err == nil {
			_ = m.Close()
		}
		began <- err
	}()
	select {
	case err := <-began:
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("without room for a first table a member has started with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("without room for a first table a member starts for ever")
	}
	m, client := alone(t, c, fs)
	ctx := within(t)
	col := client.Database("db").Collection("c")
	_, err := col.InsertOne(ctx, bson.M{"_id": "first"})
	must(t, err)
	full.Store(true)
	acknowledged := 0
	var failed error
	for i := 0; failed == nil && i < 10_000; i++ {
		if _, failed = col.InsertOne(ctx, bson.M{"_id": i, "text": strings.Repeat("x", 10_000)}); failed == nil {
			acknowledged++
		}
	}
	until(t, "the member's end", func() bool { return m.Err() != nil })
	if !errors.Is(m.Err(), syscall.ENOSPC) {
		t.Errorf("the member has failed with %v", m.Err())
	}
	n, err := col.CountDocuments(ctx, bson.M{})
	if err != nil || n < int64(acknowledged) {
		t.Errorf("a member that takes no writes any more reads %d documents, %v", n, err)
	}
	must(t, m.Close())
	full.Store(false)
	_, client = alone(t, c, fs)
	n, err = client.Database("db").Collection("c").CountDocuments(ctx, bson.M{})
	if err != nil || n < int64(acknowledged)+1 {
		t.Errorf("after a restart there are %d documents, %v; %d were acknowledged", n, err, acknowledged+1)
	}
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// A process that was killed while it wrote a table leaves a part of one, which nothing
// names. That is no damage: the log still has what it was to hold.
func TestATableThatAKillCutOffIsNoDamage(t *testing.T) {
	c := config(t, filepath.Join(t.TempDir(), "data"))
	must(t, os.Mkdir(c.Dir, 0o755))
	fill(t, c)
	tables, err := filepath.Glob(filepath.Join(c.Dir, stateFolder, "*.sst"))
	must(t, err)
	if len(tables) == 0 {
		t.Fatal("there is no table")
	}
	b, err := os.ReadFile(tables[0])
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.Dir, stateFolder, "000999.sst"), b[:len(b)/2], 0o644))
	_, client := alone(t, c, vfs.Default)
	n, err := client.Database("db").Collection("c").CountDocuments(within(t), bson.M{})
	if err != nil || n != 153 {
		t.Errorf("%d documents, %v; 153 were written", n, err)
	}
}
