package server

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query/value"
)

func cmdSaslStart(k *call) error {
	d, err := k.startLogin(&k.args, k.db)
	if err != nil {
		return err
	}
	return k.answerWith(d)
}

func cmdSaslContinue(k *call) error {
	id, payload := k.integer("conversationId", 0), k.binary("payload")
	if k.err != nil {
		return k.err
	}
	d, err := k.conn.proceed(int32(id), payload)
	if err != nil {
		return err
	}
	return k.answerWith(d)
}

func cmdLogout(k *call) error {
	k.conn.user, k.conn.login = "", nil
	return nil
}

func (k *call) answerWith(d document) error {
	for name, v := range value.Fields(d) {
		k.out.AppendValue(name, v)
	}
	return nil
}

// startLogin reads the fields of saslStart, which hello may bring along too.
func (k *call) startLogin(a *args, db string) (document, error) {
	name, payload := a.text("mechanism"), a.binary("payload")
	options := &args{what: "saslStart.options", doc: a.document("options")}
	skip := options.boolean("skipEmptyExchange", false)
	switch {
	case a.err != nil:
		return nil, a.err
	case options.err != nil:
		return nil, options.err
	case name != mechanism:
		return nil, errorf(codeMechanismUnavailable, "Received authentication for mechanism %s which is not enabled", name)
	case db != "admin": // where all users are
		k.conn.user, k.conn.login = "", nil
		return nil, errLogin()
	}
	return k.conn.begin(k.s.access, payload, skip)
}

// speculate begins a login with the handshake, which saves a round trip. Where it
// fails the handshake goes on without, and the client logs in by itself.
func (k *call) speculate() error {
	d := k.document("speculativeAuthenticate")
	if k.err != nil || d == nil || k.s.access == nil {
		return k.err
	}
	a := &args{what: "speculativeAuthenticate", doc: d}
	if answer, err := k.startLogin(a, a.text("db")); err == nil {
		k.out.AppendDocument("speculativeAuthenticate", answer)
	}
	return nil
}

// binary is the payload of a BinData field, or of a string, which old shells send.
func (a *args) binary(name string) []byte {
	v := a.get(name)
	if v.Type == bsoncore.TypeBinary {
		if _, b, ok := v.BinaryOK(); ok {
			return b
		}
	}
	a.wrong(name, v, "binData")
	return nil
}
