// Command replset (in bench) compares the embedded replica set with FerretDB on
// PostgreSQL: pairs of find and findOneAndReplace on 200 documents of 450 bytes,
// both with fsync on, the set with three members against FerretDB's one node.
//
//	cd bench/replset && go run . [-runs 5] [-for 3s] [-workers 1,8,64] [-profile DIR]
//
// Lines that begin with "figure:" are for bench/bars in the module above.
//
// Each server is a process of its own and stays up; the rounds alternate
// between them. It needs Debian's postgresql; without one only the set runs,
// and no ratio is printed. It must never know how either server works inside.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func main() {
	serve := flag.String("serve", "", "be a `server` (used by the program itself)")
	runs := flag.Int("runs", 5, "`rounds` per server and number of workers")
	length := flag.Duration("for", 3*time.Second, "how long one round lasts")
	workers := flag.String("workers", "1,8,64", "`numbers` of workers")
	dir := flag.String("dir", "", "`folder` on the disk to be measured (default a temporary one in /var/tmp)")
	profile := flag.String("profile", "", "write CPU profiles of the set into this `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *serve != "" {
		err = beServer(ctx, *serve, *dir, *profile)
	} else {
		err = bench(ctx, *dir, *profile, *workers, *runs, *length)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/replset:", err)
		os.Exit(1)
	}
}

// side is one of the compared servers and what was measured of it.
type side struct {
	name   string
	client *mongo.Client
	coll   *mongo.Collection
	rate   map[int][]float64 // pairs/s per round, by workers
	lat    map[int][]time.Duration
	cpu    map[int][]float64 // CPU seconds of the server per 1,000 pairs
	server *server
}

func bench(ctx context.Context, dir, profile, workers string, runs int, length time.Duration) (err error) {
	var counts []int
	for s := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-workers %q: numbers, such as 1,8,64", workers)
		}
		counts = append(counts, n)
	}
	if dir == "" {
		// /var/tmp is on a disk where /tmp may be memory.
		if dir, err = os.MkdirTemp("/var/tmp", "bench-replset-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as its own user
			return err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := lifecycle(ctx, os.Stdout, dir, max(5*runs, 10)); err != nil {
		return err
	}
	var sides []*side
	for _, name := range []string{serverSet, serverFerret} {
		s, err := startServer(ctx, name, filepath.Join(dir, name), profile)
		if errors.Is(err, errNoPeer) {
			fmt.Printf("%s left out: %v\n", name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer s.end()
		if name == serverSet {
			mib := resident(s.cmd.Process.Pid)
			fmt.Printf("%-34s %10.1f MiB              (bar 60 MiB: %s)\n", "process of an idle set, on disk", mib, met(mib > 0 && mib <= 60))
			if mib > 0 {
				fmt.Printf("figure: life.memory %.1f MiB\n", mib)
			}
		}
		sd := &side{name: name, server: s, rate: map[int][]float64{}, lat: map[int][]time.Duration{}, cpu: map[int][]float64{}}
		if err := sd.open(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer sd.client.Disconnect(context.WithoutCancel(ctx))
		sides = append(sides, sd)
	}
	sync, err := syncTimes(dir, 300)
	if err != nil {
		return err
	}
	fmt.Printf("one sync of this disk, S: p50 %.3f ms, p95 %.3f ms\n", ms(quantile(sync, .5)), ms(quantile(sync, .95)))
	for r := range runs {
		for _, n := range counts {
			for i := range sides {
				if err := sides[(i+r)%len(sides)].round(ctx, n, length); err != nil {
					return err
				}
			}
		}
	}
	report(os.Stdout, sides, counts)
	return nil
}

// document is 450 bytes.
type document struct {
	ID  string `bson:"_id"`
	V   int64  `bson:"v"`
	Bal int64  `bson:"bal"`
	Pad string `bson:"pad"`
}

const documents = 200

func (s *side) open(ctx context.Context) (err error) {
	s.client, err = mongo.Connect(options.Client().ApplyURI(s.server.uri).SetMaxPoolSize(200))
	if err != nil {
		return err
	}
	s.coll = s.client.Database("bench").Collection("pairs", options.Collection().SetWriteConcern(writeconcern.Majority()))
	if err := s.coll.Drop(ctx); err != nil {
		return err
	}
	var docs []any
	for i := range documents {
		docs = append(docs, document{ID: fmt.Sprintf("k%03d", i), Pad: strings.Repeat("x", 400)})
	}
	if _, err := s.coll.InsertMany(ctx, docs); err != nil {
		return err
	}
	return s.round(ctx, 4, time.Second/2)
}

// round lets workers make pairs for a time. A lost compare-and-swap is a pair
// too: both servers were asked twice.
func (s *side) round(ctx context.Context, workers int, length time.Duration) error {
	warm := s.rate[workers] == nil
	if warm { // connections are opened outside the measured time
		s.rate[workers] = []float64{}
		if err := s.round(ctx, workers, length/10); err != nil {
			return err
		}
		s.rate[workers], s.lat[workers], s.cpu[workers] = nil, nil, nil
	}
	all := make([][]time.Duration, workers)
	errs := make([]error, workers)
	before := s.server.cpu()
	start := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := 0; time.Since(start) < length; i++ {
				begin := time.Now()
				if errs[w] = s.pair(ctx, fmt.Sprintf("k%03d", (i*7+w*31)%documents)); errs[w] != nil {
					return
				}
				all[w] = append(all[w], time.Since(begin))
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	pairs := slices.Concat(all...)
	s.rate[workers] = append(s.rate[workers], float64(len(pairs))/took.Seconds())
	s.lat[workers] = append(s.lat[workers], pairs...)
	s.cpu[workers] = append(s.cpu[workers], (s.server.cpu()-before).Seconds()/float64(len(pairs))*1000)
	return nil
}

func (s *side) pair(ctx context.Context, id string) error {
	var d document
	if err := s.coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&d); err != nil {
		return err
	}
	v := d.V
	d.V++
	err := s.coll.FindOneAndReplace(ctx, bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}, d).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil
	}
	return err
}

func report(w io.Writer, sides []*side, counts []int) {
	fmt.Fprintf(w, "%-10s %8s %12s %9s %9s %9s %14s\n", "server", "workers", "pairs/s", "p50 ms", "p95 ms", "p99 ms", "CPU s/1k pairs")
	for _, n := range counts {
		for _, s := range sides {
			fmt.Fprintf(w, "%-10s %8d %12.0f %9.2f %9.2f %9.2f %14.2f\n", s.name, n, median(s.rate[n]),
				ms(quantile(s.lat[n], .5)), ms(quantile(s.lat[n], .95)), ms(quantile(s.lat[n], .99)), median(s.cpu[n]))
		}
	}
	if len(sides) < 2 {
		return
	}
	set, peer := sides[0], sides[1]
	bars := map[int]float64{1: 2, 8: 3}
	for _, n := range counts {
		ratio := median(set.rate[n]) / median(peer.rate[n])
		p95 := float64(quantile(set.lat[n], .95)) / float64(quantile(peer.lat[n], .95))
		line := fmt.Sprintf("%d workers: throughput %.2f x %s, p95 %.2f x", n, ratio, peer.name, p95)
		if bar, ok := bars[n]; ok {
			line += fmt.Sprintf("  (bars %.1f x: %s, 0.6 x: %s)", bar, met(ratio >= bar), met(p95 <= 0.6))
		}
		fmt.Fprintln(w, line)
		fmt.Fprintf(w, "figure: pairs.%d.rate %.3f ×\nfigure: pairs.%d.p95 %.3f ×\n", n, ratio, n, p95)
	}
	if a, b := median(set.rate[8]), median(set.rate[64]); a > 0 && b > 0 {
		fmt.Fprintf(w, "from 8 to 64 workers the set does %.2f x as much\n", b/a)
		fmt.Fprintf(w, "figure: pairs.growth %.3f ×\n", b/a)
	}
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(v []float64) float64 { return quantile(v, .5) }

func quantile[T cmp.Ordered](v []T, q float64) (zero T) {
	if len(v) == 0 {
		return zero
	}
	s := slices.Sorted(slices.Values(v))
	return s[int(q*float64(len(s)-1))]
}
