package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

// lifecycle is what a test pays for a set: to start three members to the first
// write that they take, to reset it between tests, to close it.
func lifecycle(ctx context.Context, w io.Writer, dir string, runs int) error {
	var starts, cleans, closes []time.Duration
	for i := range runs {
		begin := time.Now()
		set, err := replset.New(ctx, replset.Options{Dir: filepath.Join(dir, fmt.Sprintf("life%d", i))})
		if err != nil {
			return err
		}
		client, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
		if err != nil {
			return err
		}
		if _, err := client.Database("a").Collection("a").InsertOne(ctx, bson.M{"_id": 1}); err != nil {
			return err
		}
		starts = append(starts, time.Since(begin))
		for c := range 3 {
			if _, err := client.Database("b").Collection(fmt.Sprint(c)).InsertMany(ctx, []any{bson.M{"_id": 1}, bson.M{"_id": 2}}); err != nil {
				return err
			}
		}
		begin = time.Now()
		if err := set.Clean(ctx); err != nil {
			return err
		}
		cleans = append(cleans, time.Since(begin))
		if err := client.Disconnect(ctx); err != nil {
			return err
		}
		begin = time.Now()
		if err := set.Close(); err != nil {
			return err
		}
		closes = append(closes, time.Since(begin))
	}
	line := func(name, what string, v []time.Duration, bar float64) {
		fmt.Fprintf(w, "%-34s p50 %6.1f ms, p95 %6.1f ms  (bar %3.0f ms: %s)\n", what, ms(quantile(v, .5)), ms(quantile(v, .95)), bar, met(ms(quantile(v, .5)) <= bar))
		fmt.Fprintf(w, "figure: life.%s %.2f ms\n", name, ms(quantile(v, .5)))
	}
	line("start", "start to the first write done", starts, 300)
	line("clean", "reset between tests (Clean)", cleans, 5)
	line("close", "close", closes, 100)
	return nil
}

// resident is the memory of a process in MiB.
func resident(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var kib float64
	for line := range strings.SplitSeq(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
	}
	return kib / 1024
}
