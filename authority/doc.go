// Package authority answers "may this person do this, now?" from a MongoDB replica
// set, so that a role whose revocation a majority has acknowledged is never honoured
// again.
//
//	reader, err := authority.NewReader(client.Database("app").Collection("people"), authority.Options{})
//	guard := authority.Guard{Source: reader.Shared(), Subject: subjectOf}
//	mux.Handle("POST /reviews", guard.Require("reviewer")(reviews))
//
// A read is one uncached linearizable read of one document on the primary, bounded by
// the server and by the client. It gives a record or a refusal; there is no cache, no
// weaker read concern and no secondary to fall back to, and no option that adds one.
// Writers change records by compare-and-swap and treat every error as an outcome that
// nobody knows.
//
// DESIGN.md has the obligations by number, each with its test. The package knows
// people, roles and revisions; it must never know what a role is for, nor who asks.
package authority
