package authority_test

import (
	"errors"
	"log"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/assaylab/assay/authority"
)

// Ten lines mount the middleware.
func ExampleGuard() {
	var client *mongo.Client // connected elsewhere

	reader, err := authority.NewReader(client.Database("app").Collection("people"), authority.Options{})
	if err != nil {
		log.Fatal(err)
	}
	guard := authority.Guard{Source: reader.Shared(), Subject: func(r *http.Request) (authority.ID, error) {
		user, _, ok := r.BasicAuth() // in place of your own authentication
		if !ok {
			return authority.ID{}, errors.New("not logged in")
		}
		return authority.ParseID(user)
	}}
	reviews := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	http.Handle("POST /reviews", guard.Require("reviewer")(reviews))
}
