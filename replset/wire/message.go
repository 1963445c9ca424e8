// Package wire reads and writes MongoDB's wire messages: OP_MSG, OP_COMPRESSED,
// and OP_QUERY with OP_REPLY for the first handshake. It knows framing and its
// limits and must never know what a command means.
//
// The formats themselves are the driver's own packages (wiremessage, bsoncore),
// which promise no stability; nothing else of the server uses the former.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Limits that hello tells and that hold here.
const (
	MaxMessageSize  = 48_000_000
	MaxDocumentSize = 16 << 20
	MaxBatchSize    = 100_000
	// MaxNesting is how deep a document of a message may nest: deeper than one that is
	// stored, which is the commands' affair, but not so deep that walking it is a
	// danger.
	MaxNesting = 200
	headerSize = 16
)

// ErrProtocol is wrapped by every error about what a peer sent. The connection
// cannot go on: where one message ends is no longer known.
var ErrProtocol = errors.New("not a message of the wire protocol")

// Request is one command as it came in.
type Request struct {
	ID       int32
	Body     bsoncore.Document
	Sections []Section // document sequences, in order
	Database string    // $db, or that of an OP_QUERY
	TooDeep  bool      // a document exceeds MaxNesting; it must be answered and not read

	legacy     bool // came as OP_QUERY, and is answered by OP_REPLY
	quiet      bool // wants no answer
	exhaust    bool // allows a stream of answers
	compressor wiremessage.CompressorID
}

// Section is a sequence of documents beside the body, which belongs to the
// body's field of that name.
type Section struct {
	Name      string
	Documents []bsoncore.Document
}

// Quiet says that the peer wants no answer (moreToCome on a request).
func (r *Request) Quiet() bool { return r.quiet }

// Exhaust says that the peer takes several answers to this request.
func (r *Request) Exhaust() bool { return r.exhaust }

// Legacy says that the request came as OP_QUERY.
func (r *Request) Legacy() bool { return r.legacy }

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Read reads one request. io.EOF means that the peer ended the connection
// between two messages. The request's documents are its own and are well-formed
// at the top level.
func Read(in *bufio.Reader) (*Request, error) {
	head, err := in.Peek(headerSize)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			return nil, protocolError("a header of %d bytes", len(head))
		}
		return nil, err
	}
	length := int32(binary.LittleEndian.Uint32(head))
	if length < headerSize || length > MaxMessageSize {
		return nil, protocolError("a message of %d bytes; it has %d to %d", length, headerSize, MaxMessageSize)
	}
	b, err := readFull(in, int(length))
	if err != nil {
		return nil, protocolError("a message that ends in the middle: %v", err)
	}
	_, id, _, op, rest, ok := wiremessage.ReadHeader(b)
	if !ok {
		return nil, protocolError("an unreadable header")
	}
	r := &Request{ID: id}
	if op == wiremessage.OpCompressed {
		if op, rest, err = r.decompress(rest); err != nil {
			return nil, err
		}
	}
	switch op {
	case wiremessage.OpMsg:
		err = r.readMsg(rest)
	case wiremessage.OpQuery:
		err = r.readQuery(rest)
	default:
		err = protocolError("opcode %d", op)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readFull grows with what arrives, so that a length alone costs no memory.
func readFull(in io.Reader, n int) ([]byte, error) {
	const first = 64 << 10
	b := make([]byte, min(n, first))
	got := 0
	for {
		k, err := io.ReadFull(in, b[got:])
		got += k
		if err != nil {
			return nil, err
		}
		if got == n {
			return b, nil
		}
		grown := make([]byte, min(n, 4*len(b)))
		copy(grown, b)
		b = grown
	}
}

func (r *Request) decompress(b []byte) (wiremessage.OpCode, []byte, error) {
	op, b, ok1 := wiremessage.ReadCompressedOriginalOpCode(b)
	size, b, ok2 := wiremessage.ReadCompressedUncompressedSize(b)
	id, b, ok3 := wiremessage.ReadCompressedCompressorID(b)
	if !ok1 || !ok2 || !ok3 || size < 0 || size > MaxMessageSize-headerSize {
		return 0, nil, protocolError("a compressed message with an unreadable header or a size of %d", size)
	}
	if op == wiremessage.OpCompressed {
		return 0, nil, protocolError("a compressed message in a compressed message")
	}
	out, err := unpack(b, id, size)
	if err != nil || len(out) != int(size) {
		return 0, nil, protocolError("a compressed message that does not decompress to its %d bytes", size)
	}
	r.compressor = id
	return op, out, nil
}

const (
	sectionBody     = wiremessage.SingleDocument
	sectionSequence = wiremessage.DocumentSequence
)

func (r *Request) readMsg(b []byte) error {
	flags, b, ok := wiremessage.ReadMsgFlags(b)
	if !ok {
		return protocolError("a message without flags")
	}
	const known = wiremessage.ChecksumPresent | wiremessage.MoreToCome | wiremessage.ExhaustAllowed
	// Of the lower 16 bits, those that are not known must be refused.
	if unknown := flags & 0xffff &^ known; unknown != 0 {
		return protocolError("unknown flags %#x", uint32(unknown))
	}
	r.quiet, r.exhaust = flags&wiremessage.MoreToCome != 0, flags&wiremessage.ExhaustAllowed != 0
	if flags&wiremessage.ChecksumPresent != 0 {
		// The checksum is optional to verify; TCP has its own.
		if len(b) < 4 {
			return protocolError("a message without its checksum")
		}
		b = b[:len(b)-4]
	}
	for len(b) > 0 {
		var kind wiremessage.SectionType
		if kind, b, ok = wiremessage.ReadMsgSectionType(b); !ok {
			return protocolError("a section without a kind")
		}
		switch kind {
		case sectionBody:
			if r.Body != nil {
				return protocolError("two bodies")
			}
			if r.Body, b, ok = wiremessage.ReadMsgSectionSingleDocument(b); !ok {
				return protocolError("an unreadable body")
			}
		case sectionSequence:
			var s Section
			if s.Name, s.Documents, b, ok = wiremessage.ReadMsgSectionDocumentSequence(b); !ok {
				return protocolError("an unreadable document sequence")
			}
			for _, o := range r.Sections {
				if o.Name == s.Name {
					return protocolError("two sequences %q", s.Name)
				}
			}
			r.Sections = append(r.Sections, s)
		default:
			return protocolError("a section of kind %d", kind)
		}
	}
	if r.Body == nil {
		return protocolError("a message without a body")
	}
	if err := r.validate(); err != nil {
		return err
	}
	r.Database, _ = r.Body.Lookup("$db").StringValueOK()
	return nil
}

func (r *Request) readQuery(b []byte) error {
	_, b, ok1 := wiremessage.ReadQueryFlags(b)
	ns, b, ok2 := wiremessage.ReadQueryFullCollectionName(b)
	_, b, ok3 := wiremessage.ReadQueryNumberToSkip(b)
	_, b, ok4 := wiremessage.ReadQueryNumberToReturn(b)
	doc, b, ok5 := wiremessage.ReadQueryQuery(b)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(b) > 0 {
		return protocolError("an unreadable OP_QUERY")
	}
	const suffix = ".$cmd"
	if len(ns) <= len(suffix) || ns[len(ns)-len(suffix):] != suffix {
		return protocolError("OP_QUERY on %q; only the handshake comes that way", ns)
	}
	r.legacy, r.Database, r.Body = true, ns[:len(ns)-len(suffix)], doc
	if q, ok := doc.Lookup("$query").DocumentOK(); ok {
		r.Body = q
	}
	return r.validate()
}

// validate makes sure that every document can be walked at the top level: its lengths
// are right. What the fields say is the commands' affair.
func (r *Request) validate() error {
	if err := r.Body.Validate(); err != nil {
		return protocolError("a body that is no BSON: %v", err)
	}
	r.TooDeep = tooDeep(r.Body)
	for _, s := range r.Sections {
		for i, d := range s.Documents {
			if err := d.Validate(); err != nil {
				return protocolError("document %d of %q is no BSON: %v", i, s.Name, err)
			}
			r.TooDeep = r.TooDeep || tooDeep(d)
		}
	}
	return nil
}

// Documents are those of a field that may come as an array in the body or as a
// sequence beside it; ok is false where it comes neither way.
func (r *Request) Documents(name string) (docs []bsoncore.Document, ok bool) {
	for _, s := range r.Sections {
		if s.Name == name {
			return s.Documents, true
		}
	}
	arr, isArray := r.Body.Lookup(name).ArrayOK()
	if !isArray {
		return nil, false
	}
	values, err := arr.Values()
	if err != nil {
		return nil, false
	}
	for _, v := range values {
		d, isDoc := v.DocumentOK()
		if !isDoc {
			return nil, false
		}
		docs = append(docs, d)
	}
	return docs, true
}

// Command is the command's name: the first key of the body.
func (r *Request) Command() string {
	e, err := r.Body.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// Reply encodes an answer. more says that another one follows by itself, for a
// request that allows it; then responseTo of that one must be this one's id. It
// returns the bytes and the answer's own id.
func Reply(r *Request, responseTo int32, body bsoncore.Document, more bool) ([]byte, int32, error) {
	id := wiremessage.NextRequestID()
	if len(body)+64 > MaxMessageSize || len(body) > math.MaxInt32 {
		return nil, 0, fmt.Errorf("an answer of %d bytes does not fit a message", len(body))
	}
	if r.legacy {
		at, b := wiremessage.AppendHeaderStart(make([]byte, 0, len(body)+64), id, responseTo, wiremessage.OpReply)
		b = wiremessage.AppendReplyFlags(b, wiremessage.AwaitCapable)
		b = wiremessage.AppendReplyCursorID(b, 0)
		b = wiremessage.AppendReplyStartingFrom(b, 0)
		b = wiremessage.AppendReplyNumberReturned(b, 1)
		return bsoncore.UpdateLength(append(b, body...), at, int32(headerSize+20+len(body))), id, nil
	}
	var flags wiremessage.MsgFlag
	if more {
		flags |= wiremessage.MoreToCome
	}
	var payload []byte
	payload = wiremessage.AppendMsgFlags(make([]byte, 0, len(body)+64), flags)
	payload = wiremessage.AppendMsgSectionType(payload, sectionBody)
	payload = append(payload, body...)
	if r.compressor == wiremessage.CompressorNoOp {
		b := wiremessage.AppendHeader(make([]byte, 0, headerSize+len(payload)), int32(headerSize+len(payload)), id, responseTo, wiremessage.OpMsg)
		return append(b, payload...), id, nil
	}
	packed, err := driver.CompressPayload(payload, driver.CompressionOpts{Compressor: r.compressor, ZlibLevel: 6, ZstdLevel: 6})
	if err != nil {
		return nil, 0, err
	}
	const extra = 9 // opcode, size, compressor
	b := wiremessage.AppendHeader(make([]byte, 0, headerSize+extra+len(packed)), int32(headerSize+extra+len(packed)), id, responseTo, wiremessage.OpCompressed)
	b = wiremessage.AppendCompressedOriginalOpCode(b, wiremessage.OpMsg)
	b = wiremessage.AppendCompressedUncompressedSize(b, int32(len(payload)))
	b = wiremessage.AppendCompressedCompressorID(b, r.compressor)
	return append(b, packed...), id, nil
}
