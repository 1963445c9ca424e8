package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/trial"
)

// Kind says what a record holds.
type Kind string

// The kinds of record.
const (
	KindBegin  Kind = "begin"
	KindTrial  Kind = "trial"
	KindCheck  Kind = "check"
	KindHost   Kind = "host"
	KindRound  Kind = "round"
	KindResume Kind = "resume"
	KindNote   Kind = "note"
	KindEnd    Kind = "end"
)

// Record is one line of the chain. Exactly the field of its kind is set.
type Record struct {
	Kind   Kind               `json:"kind"`
	Begin  *Begin             `json:"begin,omitempty"`
	Trial  *trial.Observation `json:"trial,omitempty"`
	Check  *Judgement         `json:"check,omitempty"`
	Host   *HostWindow        `json:"host,omitempty"`
	Round  *RoundMark         `json:"round,omitempty"`
	Resume *Resumption        `json:"resume,omitempty"`
	Note   *Note              `json:"note,omitempty"`
	End    *End               `json:"end,omitempty"`
}

// Begin is the first record.
type Begin struct {
	Schema      int       `json:"schema"`
	Lock        string    `json:"lock"`        // digest of the lock
	Environment string    `json:"environment"` // SHA-256 of environment.json
	Time        time.Time `json:"time"`
}

// Judgement is a check's result in a scope wider than a trial.
type Judgement struct {
	Scope  string       `json:"scope"`
	Cell   string       `json:"cell,omitempty"`
	Round  int          `json:"round,omitempty"`
	Result check.Result `json:"result"`
}

// HostWindow is the state of the machine over a stretch of the run: one round
// where rounds are long, several where they are short.
type HostWindow struct {
	When     string         `json:"when"` // before, during, after
	Time     time.Time      `json:"time"` // end of the stretch
	Cell     string         `json:"cell,omitempty"`
	From     int            `json:"from,omitempty"` // first round
	To       int            `json:"to,omitempty"`   // last round
	Readings []host.Reading `json:"readings"`
	Breaches []host.Breach  `json:"breaches,omitempty"`
}

// RoundMark says that a round is complete.
type RoundMark struct {
	Cell    string `json:"cell"`
	Round   int    `json:"round"`
	Warmup  bool   `json:"warmup,omitempty"`
	Durable int    `json:"durable,omitempty"` // number of records that were on disk, with their samples
}

// Resumption says that the run went on after a stop.
type Resumption struct {
	Time    time.Time `json:"time"`
	Tool    string    `json:"tool"`
	Dropped int64     `json:"dropped_bytes,omitempty"` // of what the stop cut off
	Durable int       `json:"durable,omitempty"`       // as in RoundMark
}

// Note is a remark about the run as a whole, such as an interrupt.
type Note struct {
	Time        time.Time `json:"time"`
	Text        string    `json:"text"`
	Exploratory bool      `json:"exploratory,omitempty"` // what happened makes the run exploratory for ever
}

// End is the last record of a run that ran to its end.
type End struct {
	Time time.Time `json:"time"`
}

// A line is the record with its place in the chain around it:
//
//	{"prev":"<sum of the line before>","seq":12,"kind":…,…,"sum":"<SHA-256>"}
//
// sum is over all bytes of the line before `,"sum":`. It covers prev, so each
// sum stands for everything up to it, and a line's own bytes are checked even
// where no later line follows. The first line's prev is the lock's digest.
// Everything needed to check the chain stands at fixed places, so that
// checking reads no JSON.
const (
	hashLen   = 2 * sha256.Size
	prevStart = `{"prev":"`
	seqStart  = `","seq":`
	sumStart  = `,"sum":"`
	sumEnd    = `"}`
)

// maxLine bounds one record; an observation with 1,000 values and 20 notes is
// far below.
const maxLine = 4 << 20

func encodeLine(prev string, seq int, rec *Record) (line []byte, sum string, err error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, "", fmt.Errorf("ledger: record %d: %w", seq, err)
	}
	b := make([]byte, 0, len(body)+2*hashLen+48)
	b = append(b, prevStart...)
	b = append(b, prev...)
	b = append(b, seqStart...)
	b = strconv.AppendInt(b, int64(seq), 10)
	b = append(b, ',')
	b = append(b, body[1:len(body)-1]...)
	digest := sha256.Sum256(b)
	sum = hex.EncodeToString(digest[:])
	b = append(b, sumStart...)
	b = append(b, sum...)
	b = append(b, sumEnd...)
	b = append(b, '\n')
	if len(b) > maxLine {
		return nil, "", fmt.Errorf("ledger: record %d has %d bytes; at most %d can be read back", seq, len(b), maxLine)
	}
	return b, sum, nil
}

// link is a line's place in the chain.
type link struct {
	prev string
	seq  int
	sum  string
}

// readLink takes a line apart, without its newline, and checks its own sum.
func readLink(line []byte) (link, error) {
	tail := len(sumStart) + hashLen + len(sumEnd)
	head := len(prevStart) + hashLen + len(seqStart)
	if len(line) < head+tail+1 || !bytes.HasPrefix(line, []byte(prevStart)) ||
		!bytes.HasPrefix(line[len(prevStart)+hashLen:], []byte(seqStart)) ||
		!bytes.HasPrefix(line[len(line)-tail:], []byte(sumStart)) || !bytes.HasSuffix(line, []byte(sumEnd)) {
		return link{}, errMalformed
	}
	l := link{
		prev: string(line[len(prevStart) : len(prevStart)+hashLen]),
		sum:  string(line[len(line)-len(sumEnd)-hashLen : len(line)-len(sumEnd)]),
	}
	digest := sha256.Sum256(line[:len(line)-tail])
	var hexed [hashLen]byte
	hex.Encode(hexed[:], digest[:])
	if l.sum != string(hexed[:]) {
		return l, errChanged
	}
	comma := bytes.IndexByte(line[head:], ',')
	if comma < 0 {
		return l, errMalformed
	}
	seq, err := strconv.Atoi(string(line[head : head+comma]))
	if err != nil {
		return l, errMalformed
	}
	l.seq = seq
	return l, nil
}
