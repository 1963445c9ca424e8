package link

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// Two ends of a connection prove to each other that they belong to the same set
// before anything else is said: a port that was this set's and is another's now
// gets none of its messages, and sends it none. Neither end shows the token.
//
//	dialler  → listener   nonce D (16)
//	listener → dialler    nonce L (16), MAC(token, "listener", D, L)
//	dialler  → listener   member (8), MAC(token, "dialler", D, L, member)
//
// It is challenge and response with a shared key as in ISO/IEC 9798-4: the role's
// name is in each MAC, so that neither can be sent back to whoever made it. It says
// who is at the other end and hides nothing: links run on loopback, where whoever
// could listen in could read the members' files as well.

// Token is what the members of one set share and nobody else has.
type Token [32]byte

// NewToken draws a token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // never fails, see its documentation
	return t
}

const (
	nonceSize    = 16
	macSize      = sha256.Size
	greetTimeout = 5 * time.Second
)

var errStranger = errors.New("the other end is not of this set")

func (t Token) mac(role string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte(role))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// introduce is the dialler's part.
func (t Token) introduce(c net.Conn, id uint64) error {
	if err := c.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return err
	}
	mine := make([]byte, nonceSize)
	_, _ = rand.Read(mine)
	if _, err := c.Write(mine); err != nil {
		return err
	}
	answer := make([]byte, nonceSize+macSize)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	theirs := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], t.mac("listener", mine, theirs)) {
		return errStranger
	}
	who := binary.BigEndian.AppendUint64(nil, id)
	if _, err := c.Write(append(who, t.mac("dialler", mine, theirs, who)...)); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// admit is the listener's part; it returns which member it is.
func (t Token) admit(c net.Conn) (uint64, error) {
	if err := c.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return 0, err
	}
	theirs := make([]byte, nonceSize)
	if _, err := io.ReadFull(c, theirs); err != nil {
		return 0, err
	}
	mine := make([]byte, nonceSize)
	_, _ = rand.Read(mine)
	if _, err := c.Write(append(append([]byte(nil), mine...), t.mac("listener", theirs, mine)...)); err != nil {
		return 0, err
	}
	answer := make([]byte, 8+macSize)
	if _, err := io.ReadFull(c, answer); err != nil {
		return 0, err
	}
	who := answer[:8]
	if !hmac.Equal(answer[8:], t.mac("dialler", theirs, mine, who)) {
		return 0, errStranger
	}
	return binary.BigEndian.Uint64(who), c.SetDeadline(time.Time{})
}
