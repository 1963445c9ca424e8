package replset_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func as(name, password string) *options.ClientOptions {
	return options.Client().SetAuth(options.Credential{Username: name, Password: password, AuthMechanism: "SCRAM-SHA-256"})
}

func codeOf(err error) int32 {
	var c mongo.CommandError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// theDriverKnows returns the code that the server answered a login with: the driver
// keeps it in the text.
func loginFailed(err error) bool {
	return err != nil && strings.Contains(err.Error(), "(AuthenticationFailed) Authentication failed.")
}

func TestUsersMustLogIn(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		o.Users = map[string]string{"ada": "pässword", "bob": "b"}
		s := replset.Start(t, o)
		ctx := within(t)
		for name, password := range o.Users {
			c := connect(t, s.URI(), as(name, password))
			_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{"by": name})
			must(t, err)
			var who struct {
				AuthInfo struct{ AuthenticatedUsers []struct{ User, DB string } }
			}
			must(t, c.Database("admin").RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}}).Decode(&who))
			if u := who.AuthInfo.AuthenticatedUsers; len(u) != 1 || u[0].User != name || u[0].DB != "admin" {
				t.Errorf("%s is logged in as %v", name, u)
			}
		}
		// Without naming a mechanism the driver asks which there are.
		c := connect(t, s.URI(), options.Client().SetAuth(options.Credential{Username: "ada", Password: "pässword"}))
		must(t, c.Database("db").Collection("c").FindOne(ctx, bson.M{"by": "bob"}).Err())

		var said []string
		for what, wrong := range map[string]*options.ClientOptions{
			"a wrong password": as("ada", "b"), "another's password": as("bob", "pässword"), "an unknown user": as("eve", "b"),
			"a user of another database": as("ada", "pässword").SetAuth(options.Credential{Username: "ada", Password: "pässword", AuthSource: "db", AuthMechanism: "SCRAM-SHA-256"}),
		} {
			c := connect(t, s.URI(), wrong)
			err := c.Database("db").Collection("c").FindOne(ctx, bson.M{}).Err()
			if !loginFailed(err) {
				t.Errorf("%s gave %v", what, err)
				continue
			}
			said = append(said, err.Error()[strings.Index(err.Error(), "(Auth"):])
		}
		for _, m := range said {
			if m != said[0] {
				t.Errorf("the errors tell what was wrong: %q, %q", m, said[0])
			}
		}
		err := connect(t, s.URI(), options.Client().SetAuth(options.Credential{Username: "ada", Password: "pässword", AuthMechanism: "SCRAM-SHA-1"})).Ping(ctx, nil)
		if err == nil {
			t.Error("a mechanism that is not offered was accepted")
		}

		// Who is not logged in is told so, whatever is asked.
		anon := connect(t, s.URI())
		must(t, anon.Ping(ctx, nil))
		must(t, anon.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Err())
		for _, cmd := range []bson.D{
			{{Key: "find", Value: "c"}}, {{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}}, {{Key: "listDatabases", Value: 1}},
			{{Key: "serverStatus", Value: 1}}, {{Key: "replSetStepDown", Value: 1}}, {{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}},
			{{Key: "killAllSessions", Value: bson.A{}}}, {{Key: "dropDatabase", Value: 1}}, {{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "c"}},
		} {
			if err := anon.Database("admin").RunCommand(ctx, cmd).Err(); codeOf(err) != 13 {
				t.Errorf("%s without a login gave %v", cmd[0].Key, err)
			}
		}
		// The set's own work needs none.
		must(t, s.Clean(ctx))
	})
}

// A conversation that is not held as it must be ends in the same error as a wrong
// password, and leaves the connection without a user.
func TestATamperedLoginFails(t *testing.T) {
	s := replset.Start(t, replset.Options{Members: 1, Users: map[string]string{"ada": "secret"}})
	client, err := scram.SHA256.NewClient("ada", "secret", "")
	must(t, err)
	other, err := scram.SHA256.NewClient("ada", "wrong", "")
	must(t, err)
	proof := func(c *scram.Client, alter func(string) string) func(*rawConn) bson.M {
		return func(rc *rawConn) bson.M {
			talk := c.NewConversation()
			first, err := talk.Step("")
			must(t, err)
			a := rc.ask(t, bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}, {Key: "payload", Value: []byte(first)}, {Key: "options", Value: bson.M{"skipEmptyExchange": true}}})
			final, err := talk.Step(string(a["payload"].(bson.Binary).Data))
			must(t, err)
			return rc.ask(t, bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: a["conversationId"]}, {Key: "payload", Value: []byte(alter(final))}})
		}
	}
	same := func(m string) string { return m }
	ok := proof(client, same)
	rc := dialRaw(t, addrOf(t, s, 0))
	if a := ok(rc); a["ok"] != float64(1) || a["done"] != true {
		t.Fatalf("a login that is right gave %v", a)
	}
	if a := rc.ask(t, bson.D{{Key: "count", Value: "c"}}); a["ok"] != float64(1) {
		t.Fatalf("a command after it gave %v", a)
	}
	start := func(payload any) func(*rawConn) bson.M {
		return func(rc *rawConn) bson.M {
			return rc.ask(t, bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}, {Key: "payload", Value: payload}})
		}
	}
	for what, try := range map[string]func(*rawConn) bson.M{
		"a wrong proof":      proof(other, same),
		"a cut proof":        proof(client, func(m string) string { return m[:len(m)-4] }),
		"another nonce":      proof(client, func(m string) string { return strings.Replace(m, "r=", "r=x", 1) }),
		"another binding":    proof(client, func(m string) string { return strings.Replace(m, "c=biws", "c=eSws", 1) }),
		"an empty message":   proof(client, func(string) string { return "" }),
		"garbage":            start([]byte("\xff\x00garbage")),
		"channel binding":    start([]byte("p=tls-unique,,n=ada,r=abc")),
		"somebody else's id": start([]byte("n,a=bob,n=ada,r=abcdefgh")),
		"going on from nothing": func(rc *rawConn) bson.M {
			return rc.ask(t, bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1}, {Key: "payload", Value: []byte("c=biws,r=x,p=x")}})
		},
	} {
		// On a connection that was logged in: a failed login takes that away.
		rc := dialRaw(t, addrOf(t, s, 0))
		ok(rc)
		a := try(rc)
		if a["code"] != int32(18) || a["errmsg"] != "Authentication failed." {
			t.Errorf("%s gave %v", what, a)
		}
		if strings.HasPrefix(what, "going on") {
			continue
		}
		if a := rc.ask(t, bson.D{{Key: "count", Value: "c"}}); a["code"] != int32(13) {
			t.Errorf("after %s, a command gave %v", what, a)
		}
	}
}

func TestUsersThatCannotBeAreRefused(t *testing.T) {
	for _, users := range []map[string]string{{"": "x"}, {"ada": ""}, {"ada": "\x00"}} {
		if _, err := replset.New(within(t), replset.Options{Users: users}); err == nil {
			t.Errorf("the users %q were accepted", users)
		}
	}
}

// certificate is one for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "replset"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestClientsSpeakTLS(t *testing.T) {
	cert, pool := certificate(t)
	inEachForm(t, func(t *testing.T, o replset.Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		o.Users = map[string]string{"ada": "secret"}
		s := replset.Start(t, o)
		ctx := within(t)
		c := connect(t, s.URI(), as("ada", "secret"), options.Client().SetTLSConfig(&tls.Config{RootCAs: pool}))
		_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{})
		must(t, err)

		plain := connect(t, strings.Replace(s.URI(), "&tls=true", "", 1), as("ada", "secret"), options.Client().SetServerSelectionTimeout(300*time.Millisecond))
		if err := plain.Ping(ctx, nil); err == nil {
			t.Error("a plain client was answered at a TLS port")
		}
		stranger := connect(t, s.URI(), as("ada", "secret"), options.Client().SetTLSConfig(&tls.Config{RootCAs: x509.NewCertPool()}).SetServerSelectionTimeout(300*time.Millisecond))
		if err := stranger.Ping(ctx, nil); err == nil {
			t.Error("a client that trusts nobody trusted the set")
		}
		nc, err := net.Dial("tcp", addrOf(t, s, 0))
		must(t, err)
		defer nc.Close()
		_, err = nc.Write(helloMessage(t))
		must(t, err)
		must(t, nc.SetReadDeadline(time.Now().Add(patience)))
		b, err := io.ReadAll(nc)
		if errors.Is(err, net.ErrClosed) || len(b) > 100 || strings.Contains(string(b), "setName") {
			t.Errorf("a plain hello to a TLS port was answered with %d bytes: %q, %v", len(b), b, err)
		}
		must(t, c.Ping(ctx, nil))
	})
}

func TestTLSThatCannotBeIsRefused(t *testing.T) {
	cert, pool := certificate(t)
	for want, o := range map[string]replset.Options{
		"no certificate":    {TLS: &tls.Config{}},
		"sent to a process": {TLS: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, Command: []string{"true"}},
	} {
		if _, err := replset.New(within(t), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it gave %v; want word of %q", err, want)
		}
	}
}

// Members in this process take every setting of TLS, such as clients' certificates.
func TestClientsCanBeAskedForCertificates(t *testing.T) {
	cert, pool := certificate(t)
	s := replset.Start(t, replset.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}})
	ctx := within(t)
	good := connect(t, s.URI(), options.Client().SetTLSConfig(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}))
	must(t, good.Ping(ctx, nil))
	bad := connect(t, s.URI(), options.Client().SetTLSConfig(&tls.Config{RootCAs: pool}).SetServerSelectionTimeout(300*time.Millisecond))
	if err := bad.Ping(ctx, nil); err == nil {
		t.Error("a client without a certificate was served")
	}
}

func TestMessagesAreCompressedIfAsked(t *testing.T) {
	s := replset.Start(t, replset.Options{})
	ctx := within(t)
	text := strings.Repeat("the same again and ", 5000)
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		count := &countingDialer{}
		c := connect(t, s.URI(), options.Client().SetCompressors([]string{name}).SetDialer(count))
		col := c.Database("db").Collection(name)
		_, err := col.InsertOne(ctx, bson.M{"_id": 1, "text": text})
		must(t, err)
		var d struct{ Text string }
		must(t, col.FindOne(ctx, bson.M{"_id": 1}).Decode(&d))
		if d.Text != text {
			t.Errorf("%s: the text came back as %d bytes", name, len(d.Text))
		}
		must(t, c.Disconnect(ctx))
		if in, out := count.in.Load(), count.out.Load(); in > int64(len(text))/2 || out > int64(len(text))/2 {
			t.Errorf("%s: a text of %d bytes took %d bytes out and %d in", name, len(text), out, in)
		}
	}
	// One that is not known, and none.
	a := dialRaw(t, addrOf(t, s, 0)).ask(t, bson.D{{Key: "hello", Value: 1}, {Key: "compression", Value: bson.A{"lzo", "zlib"}}})
	if list, _ := a["compression"].(bson.A); len(list) != 1 || list[0] != "zlib" {
		t.Errorf("of lzo and zlib it chose %v", a["compression"])
	}
	if a := dialRaw(t, addrOf(t, s, 0)).ask(t, bson.D{{Key: "hello", Value: 1}}); a["compression"] != nil {
		t.Errorf("unasked it chose %v", a["compression"])
	}
}
