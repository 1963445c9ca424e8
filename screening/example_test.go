package screening_test

import (
	"context"
	"fmt"
	"log"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

func Example() {
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	check(err)
	defer client.Disconnect(ctx)
	db := client.Database("example")
	defer db.Drop(ctx)

	check(screening.Initialise(ctx, db))
	store, err := screening.Open(ctx, db, screening.Options{})
	check(err)
	check(store.AddProject(ctx, screening.NewProject{ID: "sleep", Mode: screening.ModeFold}))
	check(store.AddStudies(ctx, "sleep", screening.NewStudy{ID: "doi:1"}, screening.NewStudy{ID: "doi:2"}))

	for _, reviewer := range []string{"ada", "ben"} {
		_, err = store.Save(ctx, screening.Fold, screening.Decision{
			Submission: screening.Submission{Project: "sleep", Study: "doi:1"}, Reviewer: reviewer, Stage: "title", Include: true,
		})
		check(err)
	}
	before, err := store.Read(ctx, "sleep", tally.ProjectScreening)
	check(err)
	_, err = store.Drain(ctx, "sleep")
	check(err)
	after, err := store.Read(ctx, "sleep", tally.ProjectScreening)
	check(err)
	fmt.Println(before.Rows[tally.Scope{}], before.Pending, before.Exact)
	fmt.Println(after.Rows[tally.Scope{}], after.Pending, after.Exact)
	// Output:
	// map[included:1 includes:2] 2 true
	// map[included:1 includes:2] 0 true
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
