package replset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/replset/internal/defect"
	"github.com/assaylab/assay/replset/internal/history"
)

func long() bool { return os.Getenv("ASSAY_LONG") == "1" }

const (
	registerKeys = 3
	listKeys     = 3
	epoch        = 300 * time.Millisecond // after which other documents are used, so that each history stays short
	opTimeout    = time.Second
)

// trial is one run of clients against a set with a nemesis.
type trial struct {
	set    *replset.Set
	began  time.Time
	epochs int
	values atomic.Int64

	mu        sync.Mutex
	registers []history.Op // linearizable reads, and all writes
	majority  []history.Op // reads of that concern and the swaps of the same session, by client
	txns      []history.Txn
}

func (t *trial) now() time.Duration { return time.Since(t.began) }

func (t *trial) epoch() int { return int(t.now()/epoch) % t.epochs }

func registerKey(epoch, i int) string { return fmt.Sprintf("r%d-%d", epoch, i) }
func listKey(epoch, i int) string     { return fmt.Sprintf("l%d-%d", epoch, i) }

// open makes the documents and indexes over everything that changes.
func (t *trial) open(ctx context.Context, c *mongo.Client) error {
	db := c.Database("h")
	for coll, keys := range map[string]int{"r": registerKeys, "l": listKeys} {
		var docs []any
		for e := range t.epochs {
			for i := range keys {
				if coll == "r" {
					docs = append(docs, bson.M{"_id": registerKey(e, i), "v": int64(0), "n": int64(0)})
				} else {
					docs = append(docs, bson.M{"_id": listKey(e, i), "l": bson.A{}})
				}
			}
		}
		if _, err := db.Collection(coll).InsertMany(ctx, docs); err != nil {
			return err
		}
	}
	_, err := db.Collection("r").Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.M{"v": 1}}, {Keys: bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 1}}}})
	if err == nil {
		_, err = db.Collection("l").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"l": 1}})
	}
	return err
}

// outcome is what an error of a write leaves open. Without retries, what was refused
// has certainly not happened; a driver that tried twice may tell of the second time.
func outcome(err error, retries bool) history.Outcome {
	if err == nil {
		return history.OK
	}
	var cmd mongo.CommandError
	var sel topology.ServerSelectionError
	switch {
	case retries:
	case errors.As(err, &sel):
		return history.Failed
	case errors.As(err, &cmd) && (cmd.Code == 10107 || cmd.Code == 11602 || cmd.Code == 13435):
		return history.Failed
	}
	return history.Maybe
}

type register struct{ V, N int64 }

// registerClient reads, writes and swaps in a session of its own until ctx ends.
func (t *trial) registerClient(ctx context.Context, c *mongo.Client, id int, retries bool, rng *rand.Rand) {
	coll := c.Database("h").Collection("r")
	lin := c.Database("h").Collection("r", options.Collection().SetReadConcern(readconcern.Linearizable()))
	maj := c.Database("h").Collection("r", options.Collection().SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Nearest()))
	s, err := c.StartSession()
	if err != nil {
		return
	}
	defer s.EndSession(context.Background())
	seen := map[string]int64{}
	for ctx.Err() == nil {
		key := registerKey(t.epoch(), rng.IntN(registerKeys))
		limit, cancel := context.WithTimeout(ctx, opTimeout)
		inSession := mongo.NewSessionContext(limit, s)
		op := history.Op{Client: id, Key: key, Call: t.now()}
		var doc register
		list := &t.registers
		switch dice := rng.IntN(100); {
		case dice < 35:
			err := lin.FindOne(limit, bson.M{"_id": key}).Decode(&doc)
			op.Value, op.Number, op.Outcome = doc.V, doc.N, outcome(err, true)
		case dice < 50:
			err := maj.FindOne(inSession, bson.M{"_id": key}).Decode(&doc)
			op.Value, op.Number, op.Outcome = doc.V, doc.N, outcome(err, true)
			list = &t.majority
		case dice < 80:
			op.Kind, op.Expect, op.Value = history.Swap, seen[key], t.values.Add(1)
			err := coll.FindOneAndUpdate(inSession, bson.M{"_id": key, "v": op.Expect},
				bson.M{"$set": bson.M{"v": op.Value}, "$inc": bson.M{"n": int64(1)}},
				options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&doc)
			if errors.Is(err, mongo.ErrNoDocuments) {
				op.Outcome = history.OK
			} else {
				op.Outcome = outcome(err, retries)
				op.Swapped, op.Number = op.Outcome == history.OK, doc.N
			}
		default:
			op.Kind, op.Value = history.Write, t.values.Add(1)
			res, err := coll.UpdateOne(inSession, bson.M{"_id": key}, bson.M{"$set": bson.M{"v": op.Value}, "$inc": bson.M{"n": int64(1)}})
			op.Outcome = outcome(err, retries)
			if err == nil && res.MatchedCount != 1 {
				op.Outcome = history.Failed // which the document's later state would contradict
			}
		}
		op.Return = t.now()
		cancel()
		if op.Outcome == history.OK && (op.Kind == history.Read || op.Swapped) {
			seen[key] = op.Value
		}
		t.mu.Lock()
		*list = append(*list, op)
		if op.Kind == history.Swap {
			t.majority = append(t.majority, op)
		}
		t.mu.Unlock()
		if op.Outcome != history.OK {
			delete(seen, key)
			pause(ctx, 5*time.Millisecond)
		}
	}
}

// directReader asks one member for linearizable reads, whatever clients of the set
// know of it.
func (t *trial) directReader(ctx context.Context, c *mongo.Client, id int, rng *rand.Rand) {
	lin := c.Database("h").Collection("r", options.Collection().SetReadConcern(readconcern.Linearizable()))
	for ctx.Err() == nil {
		key := registerKey(t.epoch(), rng.IntN(registerKeys))
		op := history.Op{Client: id, Key: key, Call: t.now()}
		limit, cancel := context.WithTimeout(ctx, opTimeout)
		var doc register
		err := lin.FindOne(limit, bson.M{"_id": key}).Decode(&doc)
		cancel()
		op.Return = t.now()
		if err == nil {
			op.Value, op.Number, op.Outcome = doc.V, doc.N, history.OK
			t.mu.Lock()
			t.registers = append(t.registers, op)
			t.mu.Unlock()
		}
		pause(ctx, 4*time.Millisecond)
	}
}

// listClient runs transactions on lists until ctx ends.
func (t *trial) listClient(ctx context.Context, c *mongo.Client, id int, rng *rand.Rand) {
	coll := c.Database("h").Collection("l")
	s, err := c.StartSession()
	if err != nil {
		return
	}
	defer s.EndSession(context.Background())
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, opTimeout)
		tx := history.Txn{Client: id, Outcome: history.Failed, Call: t.now()}
		if err := s.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())); err != nil {
			cancel()
			return
		}
		inTxn := mongo.NewSessionContext(limit, s)
		e, n := t.epoch(), 1+rng.IntN(4)
		var err error
		for i := 0; i < n && err == nil; i++ {
			step := history.Step{Key: listKey(e, rng.IntN(listKeys))}
			if rng.IntN(2) == 0 {
				var doc struct{ L []int64 }
				err = coll.FindOne(inTxn, bson.M{"_id": step.Key}).Decode(&doc)
				step.Read = doc.L
			} else {
				step.Append = t.values.Add(1)
				_, err = coll.UpdateOne(inTxn, bson.M{"_id": step.Key}, bson.M{"$push": bson.M{"l": step.Append}})
			}
			if err == nil || step.Append != 0 {
				tx.Steps = append(tx.Steps, step)
			}
		}
		switch {
		case err != nil:
			_ = s.AbortTransaction(limit)
		case rng.IntN(20) == 0:
			err = s.AbortTransaction(limit)
		default:
			tx.Outcome = commit(limit, s)
		}
		tx.Return = t.now()
		cancel()
		t.mu.Lock()
		t.txns = append(t.txns, tx)
		t.mu.Unlock()
		if err != nil {
			pause(ctx, 2*time.Millisecond)
		}
	}
}

// commit tries until the outcome is known or the time is over.
func commit(ctx context.Context, s *mongo.Session) history.Outcome {
	for {
		err := s.CommitTransaction(ctx)
		var le mongo.LabeledError
		switch {
		case err == nil:
			return history.OK
		case errors.As(err, &le) && le.HasErrorLabel("TransientTransactionError"):
			return history.Failed // drivers run the whole transaction again on the strength of this
		case ctx.Err() != nil, !errors.As(err, &le) || !le.HasErrorLabel("UnknownTransactionCommitResult"):
			return history.Maybe
		}
	}
}

// judge compares what clients saw with what there is in the end.
func (t *trial) judge(final map[string][]int64) error {
	var errs []error
	// Whether there was enough to judge is asked in the end, so that what is wrong is
	// said even if there was not.
	if err := history.Registers(t.registers, 20*time.Second); !errors.Is(err, history.ErrEmpty) {
		errs = append(errs, err)
	}
	_, err := history.Sessions(t.majority)
	errs = append(errs, err, history.Sources(t.majority, t.registers))
	for i, a := range history.Lists(t.txns, final) {
		if a.Name != history.Empty && i < 3 {
			errs = append(errs, errors.New(a.String()))
		}
	}
	return errors.Join(errs...)
}

// enough says whether there is something to judge.
func (t *trial) enough() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	swapped, committed := 0, 0
	for _, o := range t.registers {
		if o.Swapped {
			swapped++
		}
	}
	for _, x := range t.txns {
		if x.Outcome == history.OK {
			committed++
		}
	}
	compared, err := history.Sessions(t.majority)
	return err != nil || swapped >= 10 && committed >= 10 && compared > 0
}

func (t *trial) String() string {
	count := map[string]int{}
	for _, o := range t.registers {
		count[fmt.Sprintf("%v %v", o.Kind, o.Outcome)]++
		if o.Swapped {
			count["swapped"]++
		}
	}
	for _, o := range t.majority {
		if o.Kind == history.Read {
			count[fmt.Sprintf("majority read %v", o.Outcome)]++
		}
	}
	for _, x := range t.txns {
		count[fmt.Sprintf("transaction %v", x.Outcome)]++
	}
	return fmt.Sprint(count)
}

// final reads all lists from every member. They agree as soon as what clients had
// under way when they stopped has come to an end.
func (t *trial) final(ctx context.Context) (map[string][]int64, error) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		out, err := t.allLists(limit)
		if err == nil || !errors.Is(err, errDiffer) || limit.Err() != nil {
			return out, err
		}
		pause(limit, 20*time.Millisecond)
	}
}

var errDiffer = errors.New("members ended with different lists")

func (t *trial) allLists(ctx context.Context) (map[string][]int64, error) {
	var out map[string][]int64
	for i := range 3 {
		c, err := mongo.Connect(options.Client().ApplyURI(t.set.MemberURI(i)).SetServerSelectionTimeout(patience))
		if err != nil {
			return nil, err
		}
		defer c.Disconnect(context.Background())
		// What a member has of the last write, it has of all.
		coll := c.Database("h").Collection("l", options.Collection().SetReadPreference(readpref.Nearest()))
		for coll.FindOne(ctx, bson.M{"_id": "last"}).Err() != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("member %d did not catch up", i)
			}
			pause(ctx, 5*time.Millisecond)
		}
		cur, err := coll.Find(ctx, bson.M{"l": bson.M{"$type": "array"}})
		if err != nil {
			return nil, err
		}
		var docs []struct {
			ID string `bson:"_id"`
			L  []int64
		}
		if err := cur.All(ctx, &docs); err != nil {
			return nil, err
		}
		mine := map[string][]int64{}
		for _, d := range docs {
			mine[d.ID] = d.L
		}
		if out == nil {
			out = mine
		} else if fmt.Sprint(out) != fmt.Sprint(mine) {
			return nil, fmt.Errorf("%w: member %d has\n%v\nmember 0 has\n%v", errDiffer, i, mine, out)
		}
	}
	return out, nil
}

// plan is what a run does.
type plan struct {
	options replset.Options
	seed    uint64
	last    time.Duration // at least
	wait    time.Duration // longer than that for enough to happen, at most
	only    []string      // faults; nil is all
	log     func(string, ...any)
}

var errTooLittle = errors.New("too little was done to show anything")

// run runs clients and nemesis for a while. The error is what was found wrong.
func (p plan) run() (err error) {
	seed, log := p.seed, p.log
	ctx, cancel := context.WithTimeout(context.Background(), p.last+p.wait+2*patience)
	defer cancel()
	set, err := replset.New(ctx, p.options)
	if err != nil {
		return err
	}
	var closers []*mongo.Client
	defer func() {
		var group sync.WaitGroup
		for _, c := range closers {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				_ = c.Disconnect(ctx)
			})
		}
		group.Wait()
		err = errors.Join(err, set.Close())
	}()
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &trial{set: set, epochs: int(p.last/epoch) + 2}
	connect := func(uri string, retries bool) (*mongo.Client, error) {
		c, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(opTimeout).SetRetryWrites(retries))
		if err == nil {
			closers = append(closers, c)
		}
		return c, err
	}
	var clients []*mongo.Client
	for _, retries := range []bool{false, true} {
		c, err := connect(set.URI(), retries)
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}
	if err := t.open(ctx, clients[1]); err != nil {
		return err
	}
	clientCtx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	t.began = time.Now()
	for id := range 5 {
		r := rand.New(rand.NewPCG(seed, uint64(id)+1))
		group.Go(func() { t.registerClient(clientCtx, clients[id%2], id, id%2 == 1, r) })
	}
	for id := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(id)+100))
		group.Go(func() { t.listClient(clientCtx, clients[1], id, r) })
	}
	for id := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(id)+200))
		direct, err := connect(set.MemberURI(id), false)
		if err != nil {
			stop()
			group.Wait()
			return err
		}
		group.Go(func() { t.directReader(clientCtx, direct, 100+id, r) })
	}
	n := &nemesis{set: set, rng: rng, only: p.only, fired: map[string]int{}}
	err = n.rage(ctx, p.last, p.wait, t.enough)
	stop()
	group.Wait()
	if err != nil {
		return fmt.Errorf("the nemesis: %w", err)
	}
	log("%v; %v", n, t)
	if _, err = set.AwaitPrimary(ctx); err != nil {
		return err
	}
	last, err := connect(set.URI(), true)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = last.Database("h").Collection("l").InsertOne(limit, bson.M{"_id": "last"})
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("the set takes no more writes: %w", err)
	}
	final, err := t.final(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(t.judge(final), set.Check()); err != nil {
		return err
	}
	if !t.enough() {
		return fmt.Errorf("%w: %v", errTooLittle, t)
	}
	return nil
}

func TestHistories(t *testing.T) {
	seeds := 5
	if long() {
		seeds = 60
	}
	first := rand.Uint64N(1 << 32)
	if s := os.Getenv("ASSAY_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &first); err != nil {
			t.Fatal(err)
		}
		seeds = 1
	}
	sound := 0
	for i := range seeds {
		seed := first + uint64(i)
		o := replset.Options{LoseUnsynced: seed%2 == 0, LinearizableByWrite: seed%5 == 4}.With(replset.Hooks{KeepEntries: 64})
		p := plan{options: o, seed: seed, last: 1500 * time.Millisecond, wait: patience, log: t.Logf}
		if err := p.run(); err != nil {
			t.Errorf("%v\nreplay: ASSAY_SEED=%d go test ./replset -run TestHistories", err, seed)
			continue
		}
		sound++
	}
	t.Logf("figure: histories.sound %d histories", sound)
}

// TestPlantedDefectsAreFound plants one mistake at a time, for each guarantee, and
// runs the same as TestHistories until it is found.
func TestPlantedDefectsAreFound(t *testing.T) {
	const most = 20
	// The faults that bring the mistake to light soonest.
	faults := map[defect.Defect][]string{
		defect.ReadWithoutQuorum: {awake}, defect.AckBeforeSync: {"kill all"},
		defect.SecondUpdaterWins: {"delay"}, defect.LostRetryRecord: {"answers that call for a retry"},
	}
	for _, d := range defect.All() {
		t.Run(strings.ReplaceAll(d.String(), " ", "-"), func(t *testing.T) {
			first := rand.Uint64N(1 << 32)
			for i := range uint64(most) {
				o := replset.Options{LoseUnsynced: true}.With(replset.Hooks{Defect: d, KeepEntries: 64})
				p := plan{options: o, seed: first + i, last: time.Second, wait: time.Second, only: faults[d], log: func(string, ...any) {}}
				if err := p.run(); err != nil && !errors.Is(err, errTooLittle) {
					text := err.Error()
					t.Logf("found with seed %d, the %d. tried: %.500s", first+i, i+1, text)
					return
				}
			}
			t.Errorf("not found with %d seeds from %d on", most, first)
		})
	}
}
