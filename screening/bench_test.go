package screening_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

// BenchmarkSave is one uncontended save by each path, on three members that sync.
func BenchmarkSave(b *testing.B) {
	set := replset.Start(b, replset.Options{})
	c, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	ctx := context.Background()
	for path, mode := range map[screening.SavePath]screening.Mode{screening.SourceOnly: screening.ModeOff, screening.Fold: screening.ModeFold, screening.Transactional: screening.ModeTransactional} {
		s := benchProject(b, c, mode)
		b.Run(path.String(), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := s.Save(ctx, path, decision("s0", fmt.Sprint("r", i%10), i/10%2 == 0)); err != nil {
					b.Fatal(err)
				}
				if i%10 == 9 { // as a worker would
					b.StopTimer()
					if _, err := s.Drain(ctx, project); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkDrain has ten reviewers save as fast as they can, each a study, and then a
// worker fold what they left: both per second.
func BenchmarkDrain(b *testing.B) {
	set := replset.Start(b, replset.Options{})
	c, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	ctx := context.Background()
	s := benchProject(b, c, screening.ModeFold)
	entries := 0
	var saving, draining time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		var wg sync.WaitGroup
		for r := range 10 {
			wg.Go(func() {
				for j := range 10 {
					if _, err := s.Save(ctx, screening.Fold, decision(fmt.Sprint("s", r), fmt.Sprint("r", j), i%2 == 0)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		saving += time.Since(began)
		began = time.Now()
		d, err := s.Drain(ctx, project)
		if err != nil {
			b.Fatal(err)
		}
		draining += time.Since(began)
		entries += d.Entries
	}
	b.ReportMetric(float64(entries)/saving.Seconds(), "saves/s")
	b.ReportMetric(float64(entries)/draining.Seconds(), "entries/s")
}

func benchProject(b *testing.B, c *mongo.Client, mode screening.Mode) *screening.Store {
	b.Helper()
	ctx := context.Background()
	db := c.Database("b" + bson.NewObjectID().Hex())
	s, err := screening.Open(ctx, db, screening.Options{})
	if err == nil {
		err = screening.Initialise(ctx, db)
	}
	if err == nil {
		err = s.AddProject(ctx, screening.NewProject{ID: project, Mode: mode, Families: []tally.Family{tally.ProjectScreening}})
	}
	var studies []screening.NewStudy
	for i := range 10 {
		studies = append(studies, screening.NewStudy{ID: fmt.Sprint("s", i)})
	}
	if err == nil {
		err = s.AddStudies(ctx, project, studies...)
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}
