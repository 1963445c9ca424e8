package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// LockVersion is the version of the lock file this package writes and reads.
const LockVersion = 1

// Lock is a frozen protocol: everything that could bend a result, and the
// digest that the ledger's first line carries.
type Lock struct {
	Schema      int             `json:"assay_lock"`
	Version     int             `json:"version"`  // 1 at the first freeze; each amendment adds one
	Tool        string          `json:"tool"`     // version of assay that froze it
	Frozen      time.Time       `json:"frozen"`   // when, UTC
	Source      string          `json:"source"`   // base name of the protocol file
	Protocol    json.RawMessage `json:"protocol"` // canonical bytes
	SHA256      string          `json:"sha256"`   // of the canonical bytes
	Receipts    []Receipt       `json:"receipts"`
	Inputs      []File          `json:"inputs,omitempty"`
	Deviations  []Deviation     `json:"deviations,omitempty"`
	Exploratory string          `json:"exploratory,omitempty"` // why the run decides nothing; empty for a confirmatory one
	Digest      string          `json:"digest"`                // SHA-256 of everything above
}

// Receipt is what an arm was at the freeze.
type Receipt struct {
	Arm     string `json:"arm"`
	Program string `json:"program,omitempty"` // the executable's file name as looked up
	SHA256  string `json:"sha256,omitempty"`  // of that file
	Version string `json:"version,omitempty"` // first lines its version command printed
	Rev     string `json:"rev,omitempty"`     // full commit hash
	Dirty   bool   `json:"dirty,omitempty"`   // the work tree differed from Rev
}

// File is an input with its content's hash.
type File struct {
	Path   string `json:"path"` // as the protocol names it
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Deviation is a recorded, reasoned departure from an earlier version.
type Deviation struct {
	Version  int       `json:"version"` // the version that the departure made
	Reason   string    `json:"reason"`
	When     time.Time `json:"when"`
	Previous string    `json:"previous"` // digest of the lock it departs from
	Changed  []string  `json:"changed"`  // top-level keys that differ
}

// ErrUnchanged is returned by Amend when nothing differs from the lock.
var ErrUnchanged = errors.New("the protocol is the frozen one; there is nothing to amend")

// Canonical is the protocol as the bytes that are hashed: JSON, keys in the
// order of the types, maps sorted, defaults written out, no spaces.
func (p *Protocol) Canonical() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		// Every field is a plain value; NaN and Inf cannot be written in the file.
		panic("protocol: " + err.Error())
	}
	return b
}

// Evidence is what only the outside world knows at the freeze.
type Evidence struct {
	Tool        string
	Now         time.Time
	Source      string
	Receipts    []Receipt
	Inputs      []File
	Exploratory string
}

// Freeze seals the protocol. It returns *InfeasibleError where the plan
// cannot work, unless the run is exploratory anyway.
func Freeze(p *Protocol, e Evidence) (*Lock, error) {
	if why := p.Infeasible(); len(why) > 0 && e.Exploratory == "" {
		return nil, &InfeasibleError{why}
	}
	l := &Lock{
		Schema: LockVersion, Version: 1, Tool: e.Tool, Frozen: e.Now.UTC().Truncate(time.Second), Source: e.Source,
		Protocol: p.Canonical(), Receipts: slices.Clone(e.Receipts), Inputs: slices.Clone(e.Inputs), Exploratory: e.Exploratory,
	}
	l.seal()
	return l, nil
}

// InfeasibleError lists why a plan is refused.
type InfeasibleError struct{ Reasons []string }

func (e *InfeasibleError) Error() string {
	return "the plan cannot work:\n  - " + strings.Join(e.Reasons, "\n  - ")
}

// Amend freezes a changed protocol as the next version of prev, with the
// reason as a deviation. prev itself is left as it is. It returns
// ErrUnchanged where neither protocol nor evidence differ.
func Amend(prev *Lock, p *Protocol, e Evidence, reason string) (*Lock, error) {
	if strings.TrimSpace(reason) == "" {
		return nil, errors.New("an amendment needs a reason")
	}
	l, err := Freeze(p, e)
	if err != nil {
		return nil, err
	}
	changed := l.differs(prev)
	if len(changed) == 0 {
		return nil, ErrUnchanged
	}
	l.Version = prev.Version + 1
	l.Deviations = append(append([]Deviation(nil), prev.Deviations...), Deviation{
		Version: l.Version, Reason: reason, When: l.Frozen, Previous: prev.Digest, Changed: changed,
	})
	l.seal()
	return l, nil
}

// differs names the top-level keys of the protocol that differ, and "receipts"
// or "inputs" where those do.
func (l *Lock) differs(other *Lock) []string {
	var changed []string
	var a, b map[string]json.RawMessage
	_ = json.Unmarshal(l.Protocol, &a)
	_ = json.Unmarshal(other.Protocol, &b)
	for _, k := range topLevelKeys() {
		if !bytes.Equal(a[k], b[k]) {
			changed = append(changed, k)
		}
	}
	if !slices.Equal(l.Receipts, other.Receipts) {
		changed = append(changed, "receipts")
	}
	if !slices.Equal(l.Inputs, other.Inputs) {
		changed = append(changed, "inputs")
	}
	return changed
}

func (l *Lock) seal() {
	sum := sha256.Sum256(l.Protocol)
	l.SHA256 = hex.EncodeToString(sum[:])
	l.Digest = l.digest()
}

func (l *Lock) digest() string {
	c := *l
	c.Digest = ""
	b, err := json.Marshal(&c)
	if err != nil {
		panic("protocol: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Bytes is the lock as a file.
func (l *Lock) Bytes() []byte {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		panic("protocol: " + err.Error())
	}
	return append(b, '\n')
}

// ErrLock is returned by ReadLock when a lock is not what was frozen.
var ErrLock = errors.New("lock does not match its digest")

// ReadLock reads a lock file and its protocol. It returns an error that wraps
// ErrLock when any byte differs from what was frozen, and another error for a
// newer version of the format.
func ReadLock(b []byte) (*Lock, *Protocol, error) {
	// The version is looked at alone, because a newer format may hold anything.
	var version struct {
		Schema int `json:"assay_lock"`
	}
	if err := json.Unmarshal(b, &version); err == nil && version.Schema > LockVersion {
		return nil, nil, fmt.Errorf("lock has format version %d; this assay reads up to %d: use a newer assay", version.Schema, LockVersion)
	}
	l := &Lock{}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, nil, fmt.Errorf("%w: not a lock file: %v", ErrLock, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, l.Protocol); err != nil {
		return nil, nil, fmt.Errorf("%w: protocol: %v", ErrLock, err)
	}
	l.Protocol = compact.Bytes()
	sum := sha256.Sum256(l.Protocol)
	switch {
	case l.SHA256 != hex.EncodeToString(sum[:]):
		return nil, nil, fmt.Errorf("%w: the protocol in it was changed after the freeze", ErrLock)
	case l.Digest != l.digest():
		return nil, nil, fmt.Errorf("%w: a field beside the protocol was changed after the freeze", ErrLock)
	}
	// Ahead of Bytes, whose indenting makes gigabytes of what is nested deeply
	// and is no protocol.
	p := &Protocol{}
	dec := json.NewDecoder(bytes.NewReader(l.Protocol))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, nil, fmt.Errorf("%w: protocol: %v", ErrLock, err)
	}
	if !bytes.Equal(b, l.Bytes()) {
		return nil, nil, fmt.Errorf("%w: the file is not byte for byte what freeze wrote", ErrLock)
	}
	// A digest has no key: whoever can write the file can make one that matches.
	if p.Primary == nil || len(p.Arms) < 2 {
		return nil, nil, fmt.Errorf("%w: the protocol in it compares nothing", ErrLock)
	}
	if p.longestList() > maxItems {
		return nil, nil, fmt.Errorf("%w: the protocol in it has longer lists than freeze allows", ErrLock)
	}
	if p.combinations() > maxCells || p.trials(p.Cells()) > maxTrials {
		return nil, nil, fmt.Errorf("%w: the protocol in it has more cells or trials than freeze allows", ErrLock)
	}
	return l, p, nil
}

// longestList is the length of the longest list of mappings.
func (p *Protocol) longestList() int {
	return max(len(p.Arms), len(p.Settings), len(p.Factors), len(p.Exclude), len(p.Overrides), len(p.Metrics), len(p.Checks),
		len(p.Vetoes), len(p.Gates), len(p.Decision.Outcomes), len(p.Host))
}
