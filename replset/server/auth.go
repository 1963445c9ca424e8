package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/xdg-go/scram"
)

// User may log in. Of the password there is only what SCRAM-SHA-256 (RFC 7677)
// compares with, from which it cannot be had back.
type User struct {
	Name                 string
	Salt                 []byte
	Iterations           int
	StoredKey, ServerKey []byte
}

const (
	mechanism  = "SCRAM-SHA-256"
	iterations = 15000 // MongoDB's
	saltSize   = 28    // MongoDB's for this mechanism
)

// NewUser makes a user of a name and a password, with a salt of its own. The error
// says what of them SCRAM cannot carry.
func NewUser(name, password string) (User, error) {
	if name == "" || password == "" {
		return User{}, fmt.Errorf("user %q: a user needs a name and a password", name)
	}
	// The client prepares the password and leaves the name as it is, as drivers do.
	c, err := scram.SHA256.NewClient("-", password, "")
	if err != nil {
		return User{}, fmt.Errorf("the password of user %q: %w", name, err)
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt)
	s, err := c.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", name, err)
	}
	return User{Name: name, Salt: salt, Iterations: s.Iters, StoredKey: s.StoredKey, ServerKey: s.ServerKey}, nil
}

// access says who may use the server.
type access struct {
	users  map[string]User
	secret [32]byte // of the salts of users that do not exist
	scram  *scram.Server
}

// newAccess is nil without users: everybody may do everything.
func newAccess(users []User) *access {
	if len(users) == 0 {
		return nil
	}
	a := &access{users: map[string]User{}}
	for _, u := range users {
		a.users[u.Name] = u
	}
	_, _ = rand.Read(a.secret[:])
	a.scram, _ = scram.SHA256.NewServer(a.credentials) // never fails, see its source
	return a
}

// credentials are those of a user. One that does not exist has some that no password
// fits, with a salt that stays, so that neither the answer nor the time it takes
// tells that there is no such user.
func (a *access) credentials(name string) (scram.StoredCredentials, error) {
	u, ok := a.users[name]
	if !ok {
		h := hmac.New(sha256.New, a.secret[:])
		h.Write([]byte(name))
		no := h.Sum(nil)
		u = User{Salt: no[:saltSize], Iterations: iterations, StoredKey: no, ServerKey: no}
	}
	return scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: string(u.Salt), Iters: u.Iterations}, StoredKey: u.StoredKey, ServerKey: u.ServerKey}, nil
}

// login is a conversation under way on a connection.
type login struct {
	id        int32
	talk      *scram.ServerConversation
	skipEmpty bool // the client wants no empty exchange at the end
	proved    bool
}

// errLogin says nothing of what was wrong.
func errLogin() error { return errorf(codeAuthenticationFailed, "Authentication failed.") }

// begin starts a login with the client's first message. What ran before is given up.
func (c *conn) begin(a *access, payload []byte, skipEmpty bool) (document, error) {
	c.user, c.login = "", nil
	if a == nil {
		return nil, errLogin()
	}
	c.logins++
	l := &login{id: c.logins, talk: a.scram.NewConversation(), skipEmpty: skipEmpty}
	challenge, err := l.talk.Step(string(payload))
	if err != nil || l.talk.AuthzID() != "" && l.talk.AuthzID() != l.talk.Username() {
		return nil, errLogin()
	}
	c.login = l
	return saslAnswer(l.id, false, challenge), nil
}

// proceed takes the client's next message.
func (c *conn) proceed(id int32, payload []byte) (document, error) {
	l := c.login
	c.login = nil
	if l == nil || l.id != id {
		return nil, errLogin()
	}
	if l.proved { // the empty exchange
		if len(payload) > 0 {
			return nil, errLogin()
		}
		c.user = l.talk.Username()
		return saslAnswer(l.id, true, ""), nil
	}
	signature, err := l.talk.Step(string(payload))
	if err != nil || !l.talk.Valid() {
		return nil, errLogin()
	}
	if l.skipEmpty {
		c.user = l.talk.Username()
	} else {
		l.proved, c.login = true, l
	}
	return saslAnswer(l.id, l.skipEmpty, signature), nil
}

func saslAnswer(id int32, done bool, payload string) document {
	return newDoc().AppendInt32("conversationId", id).AppendBoolean("done", done).AppendBinary("payload", 0, []byte(payload)).Build()
}
