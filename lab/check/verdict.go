package check

import "fmt"

// Verdict is what a check concluded. The zero Verdict is Unchecked, so what
// nobody judged can never be taken for a pass.
type Verdict int

// The verdicts. Their order here is not the merge order; see [Merge].
const (
	Unchecked Verdict = iota // nobody judged
	Pass                     // judged, and nothing is wrong
	Unknown                  // judged without a conclusion: it crashed, timed out, or saw too little
	Fail                     // judged, and something is wrong
)

var verdictWords = [...]string{Unchecked: "unchecked", Pass: "pass", Unknown: "unknown", Fail: "fail"}

// Merge returns the worst of the verdicts: Fail, then Unknown, then Unchecked,
// then Pass. Of none it is Unchecked. A value that is no verdict counts as
// Unknown.
func Merge(vs ...Verdict) Verdict {
	if len(vs) == 0 {
		return Unchecked
	}
	worst := Pass
	for _, v := range vs {
		if !v.valid() {
			v = Unknown
		}
		if v.badness() > worst.badness() {
			worst = v
		}
	}
	return worst
}

func (v Verdict) valid() bool { return v >= 0 && int(v) < len(verdictWords) }

// badness orders verdicts from 0, the best. A value that is no verdict is as
// bad as Unknown.
func (v Verdict) badness() int {
	switch v {
	case Pass:
		return 0
	case Unchecked:
		return 1
	case Fail:
		return 3
	default:
		return 2
	}
}

// String returns the word that stands for v in files and reports.
func (v Verdict) String() string {
	if !v.valid() {
		return fmt.Sprintf("invalid verdict %d", int(v))
	}
	return verdictWords[v]
}

// MarshalText writes the word of v. A value that is no verdict is an error.
func (v Verdict) MarshalText() ([]byte, error) {
	if !v.valid() {
		return nil, fmt.Errorf("check: %v", v)
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads a word that MarshalText writes. Any other is an error and
// leaves v as it was.
func (v *Verdict) UnmarshalText(text []byte) error {
	for known, word := range verdictWords {
		if word == string(text) {
			*v = Verdict(known)
			return nil
		}
	}
	return fmt.Errorf("check: no verdict is called %q", text)
}
