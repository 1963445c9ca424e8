// Package reviews is a service's test that brings its own replica set: a door that a
// role opens, and that stays shut once the role was revoked.
package reviews

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/replset"
)

// door lets reviewers through. It is what a service has in its main.
func door(people *mongo.Collection, next http.Handler) (http.Handler, error) {
	reader, err := authority.NewReader(people, authority.Options{Deadline: time.Second})
	if err != nil {
		return nil, err
	}
	guard := authority.Guard{Source: reader.Shared(), Subject: func(r *http.Request) (authority.ID, error) {
		user, _, ok := r.BasicAuth() // in place of your own authentication
		if !ok {
			return authority.ID{}, errors.New("not logged in")
		}
		return authority.ParseID(user)
	}}
	return guard.Require("reviewer")(next), nil
}

const alice = "0f8fad5b-d9cb-469f-a165-70867728950e"

func TestARevokedReviewerIsKeptOut(t *testing.T) {
	set := replset.Start(t, replset.Options{})
	client, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
	must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })

	people := client.Database("app").Collection("people")
	handler, err := door(people, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	must(t, err)
	writer, err := authority.NewWriter(people, authority.Options{})
	must(t, err)
	id, err := authority.ParseID(alice)
	must(t, err)

	ask := func(what string, want int) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/reviews", nil)
		r.SetBasicAuth(alice, "")
		if handler.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", what, w.Code, want)
		}
	}
	change := func(outcome authority.Outcome, err error) {
		t.Helper()
		if err != nil || outcome != authority.Applied {
			t.Fatal(outcome, err)
		}
	}
	ask("nobody knows her", http.StatusForbidden)
	change(writer.Grant(t.Context(), id, "reviewer", 0)) // she has no record yet
	ask("she is a reviewer", http.StatusNoContent)
	change(writer.Revoke(t.Context(), id, "reviewer", 1))
	ask("she was one", http.StatusForbidden)

	// A primary that cannot reach the others vouches for nobody.
	must(t, set.Partition([]int{0}, []int{1}, []int{2}))
	ask("nobody can tell", http.StatusServiceUnavailable)
	must(t, set.Heal())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
