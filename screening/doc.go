// Package screening stores a review project, whose reviewers include or exclude
// studies, and keeps its statistics by one of three protocols: not at all, in the
// same transaction as the decision, or folded in later from entries that the
// decision left in its study.
//
//	err := screening.Initialise(ctx, db)
//	store, err := screening.Open(ctx, db, screening.Options{})
//	out, err := store.Save(ctx, screening.Fold, screening.Decision{
//		Submission: screening.Submission{Project: "p", Study: "s"}, Reviewer: "r", Stage: "title", Include: true,
//	})
//	n, err := store.Drain(ctx, "p")
//	view, err := store.Read(ctx, "p", tally.ProjectScreening)
//
// It runs on any MongoDB replica set. It must never know who measures it, nor what
// a row counts, which is tally's to say.
//
// # Reading the source
//
// Start with docs/screening.md, which argues the protocols; comments refer to it by
// section and number. Then: save.go is the loop of attempts, load.go what an attempt
// reads, write.go how it writes; transactional.go and worker.go are the two ways to
// statistics, resolve.go settles unknown outcomes, read.go what is shown and what is right.
package screening
