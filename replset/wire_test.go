package replset_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// message is a command as a client sends it.
func message(t *testing.T, command bson.D) []byte {
	t.Helper()
	body, err := bson.Marshal(command)
	must(t, err)
	payload := wiremessage.AppendMsgFlags(nil, 0)
	payload = wiremessage.AppendMsgSectionType(payload, wiremessage.SingleDocument)
	payload = append(payload, body...)
	return append(wiremessage.AppendHeader(nil, int32(16+len(payload)), 1, 0, wiremessage.OpMsg), payload...)
}

func helloMessage(t *testing.T) []byte {
	return message(t, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
}
