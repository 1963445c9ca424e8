package server

import (
	"bytes"
	"slices"
	"strings"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// selection is which documents a command wants, in which order.
type selection struct {
	filter *query.Filter
	raw    document // the filter as it was asked for
	sort   *query.Sort
	hint   query.Value

	min, max document // of the hinted index's keys; nil is no bound

	collated bool // strings compare by something other than bytes
}

// plan is how documents are found. Its spans hold every document that matches;
// the filter is applied to what they give.
type plan struct {
	index   *index // nil: the documents themselves, in the order of _id
	spans   []store.Range
	exact   bool // every field of the spans is a single key
	sorted  bool // the order asked for comes by itself
	reverse bool
	byID    bool // the spans come from the filter's _id
}

// between is the plan for min, which is in it, and max, which is not.
func (sel selection) between(x *index) (*plan, error) {
	pattern, err := query.ParseKeyPattern(idIndexKey)
	if x != nil {
		pattern = x.pattern
	}
	if err != nil {
		return nil, err
	}
	ends := [2][]byte{}
	for i, d := range []document{sel.min, sel.max} {
		if d == nil {
			continue
		}
		if sel.collated {
			for _, v := range value.Fields(d) {
				if !value.IsNumber(v) {
					return nil, errorf(codeNotImplemented, "min and max that are no numbers are not supported with a collation")
				}
			}
		}
		key, ok := pattern.Bound(d)
		if !ok {
			return nil, errorf(51174, "The index chosen is not compatible with min/max")
		}
		ends[i] = key
	}
	p := &plan{index: x, byID: x == nil, spans: []store.Range{{Low: ends[0], Below: ends[1]}}, sorted: sel.sort == nil}
	if sel.sort != nil && (x == nil || !x.Multikey) {
		p.sorted, p.reverse = gives(x, 0, 1, sel.sort)
	}
	return p, nil
}

// maxPoints bounds into how many pieces a scan is cut for the sake of $in.
const maxPoints = 1000

// plan chooses an index: that with the most fields bound, equality before range,
// and among equals one that gives the order.
func (v *view) plan(col *collection, sel selection) (*plan, error) {
	bounds := sel.filter.Bounds()
	all := []*index{nil}
	for _, x := range col.indexes {
		if x.Since <= v.at {
			all = append(all, x)
		}
	}
	hinted := false
	if !value.IsMissing(sel.hint) {
		x, natural, err := hintedIndex(col, sel.hint)
		if err != nil {
			return nil, err
		}
		if natural != 0 {
			return &plan{spans: []store.Range{{}}, reverse: natural < 0, sorted: sel.sort == nil}, nil
		}
		all, hinted = []*index{x}, true
		if sel.min != nil || sel.max != nil {
			return sel.between(x)
		}
	}
	if sel.min != nil || sel.max != nil {
		return nil, errorf(51173, "When using min()/max() a hint of which index to use must be provided")
	}
	if sel.sort != nil && sel.sort.Natural() != 0 {
		return &plan{spans: []store.Range{{}}, reverse: sel.sort.Natural() < 0, sorted: true}, nil
	}
	var best *plan
	bestScore := -1
	for _, x := range all {
		if !hinted && x != nil && !x.serves(sel, bounds) {
			continue
		}
		p, score := makePlan(x, bounds, sel.sort)
		if score > bestScore || score == bestScore && p.sorted && !best.sorted {
			best, bestScore = p, score
		}
	}
	if best == nil || bestScore == 0 && !best.sorted && !hinted {
		best = &plan{spans: []store.Range{{}}}
	}
	if sel.sort == nil {
		best.sorted = true
	}
	return best, nil
}

// serves says whether the index holds every document that can match.
func (x *index) serves(sel selection, bounds []query.Bound) bool {
	if x.sparse && !slices.ContainsFunc(bounds, func(b query.Bound) bool { return b.Path == x.pattern.Paths()[0] && !b.Missing }) {
		return false
	}
	if x.filter == nil {
		return true
	}
	if sel.collated {
		return false // what equals by the collation need not be in it
	}
	// A filter that repeats each condition of the partial index word for word
	// implies it. Others may too; they do without the index.
	a := &args{doc: sel.raw}
	for k, v := range value.Fields(x.filter) {
		if w := a.get(k); !value.Same(v, w) {
			return false
		}
	}
	return true
}

func (x *index) paths() []string {
	if x == nil {
		return []string{"_id"}
	}
	return x.pattern.Paths()
}

func (x *index) descending(i int) bool { return x != nil && x.pattern.Descending(i) }

func makePlan(x *index, bounds []query.Bound, sort *query.Sort) (p *plan, score int) {
	p = &plan{index: x, byID: x == nil}
	prefixes := [][]byte{nil}
	paths := x.paths()
	var bound []string // first parts of the paths in use
	fixed := 0
	multikey := x != nil && x.Multikey
	for i, path := range paths {
		// Two conditions below one array may be met by different elements, whose
		// keys are different entries: then only one of them can be used.
		top, _, _ := strings.Cut(path, ".")
		if multikey && slices.Contains(bound, top) {
			break
		}
		ranges, ok := rangesFor(bounds, path, multikey)
		if !ok {
			break
		}
		bound = append(bound, top)
		points := !slices.ContainsFunc(ranges, func(r query.Range) bool { return !r.Point() })
		var spans []store.Range
		var next [][]byte
		for _, prefix := range prefixes {
			for _, r := range ranges {
				from, to := r.Span(prefix, x.descending(i))
				spans = append(spans, store.Range{Low: from, Below: to})
				next = append(next, from)
			}
		}
		p.spans = spans
		if !points || len(next) > maxPoints {
			score++
			p.exact = false
			break
		}
		score += 10
		p.exact = true
		prefixes = next
		fixed++
	}
	if score == 0 {
		p.spans = []store.Range{{}}
	}
	slices.SortFunc(p.spans, func(a, b store.Range) int { return bytes.Compare(a.Low, b.Low) })
	p.spans = slices.CompactFunc(p.spans, func(a, b store.Range) bool { return bytes.Equal(a.Low, b.Low) && bytes.Equal(a.Below, b.Below) })
	if sort != nil && !multikey && (x == nil || !x.sparse && x.partial == nil || score > 0) {
		p.sorted, p.reverse = gives(x, fixed, len(p.spans), sort)
	}
	return p, score
}

// rangesFor are the keys that a path can have. Several conditions on one path
// hold for one key unless the index is multikey; then the first is taken.
func rangesFor(bounds []query.Bound, path string, multikey bool) (out []query.Range, ok bool) {
	for _, b := range bounds {
		if b.Path != path {
			continue
		}
		if !ok {
			out, ok = b.Ranges, true
			if multikey {
				return out, true
			}
			continue
		}
		out = intersect(out, b.Ranges)
	}
	return out, ok
}

func intersect(a, b []query.Range) []query.Range {
	var out []query.Range
	for _, x := range a {
		for _, y := range b {
			r := x
			if r.Lo == nil || y.Lo != nil && (bytes.Compare(y.Lo, r.Lo) > 0 || bytes.Equal(y.Lo, r.Lo) && y.LoOpen) {
				r.Lo, r.LoOpen = y.Lo, y.LoOpen
			}
			if r.Hi == nil || y.Hi != nil && (bytes.Compare(y.Hi, r.Hi) < 0 || bytes.Equal(y.Hi, r.Hi) && y.HiOpen) {
				r.Hi, r.HiOpen = y.Hi, y.HiOpen
			}
			if r.Lo != nil && r.Hi != nil {
				if c := bytes.Compare(r.Lo, r.Hi); c > 0 || c == 0 && (r.LoOpen || r.HiOpen) {
					continue
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// gives says whether a scan of the index comes in the order of sort, or in
// reverse. The first fields, fixed to single keys, may be missing in the sort.
func gives(x *index, fixed, spans int, sort *query.Sort) (sorted, reverse bool) {
	want := sort.Pattern()
	if want == nil {
		return false, false
	}
	paths := x.paths()
	from := fixed
	if spans > 1 {
		from = 0 // the spans lie side by side in the order of the whole key
	}
	for start := 0; start <= from && start < len(paths); start++ {
		if len(want.Paths()) > len(paths)-start {
			break
		}
		forward, backward := true, true
		for i, p := range want.Paths() {
			same := p == paths[start+i]
			forward = forward && same && want.Descending(i) == x.descending(start+i)
			backward = backward && same && want.Descending(i) != x.descending(start+i)
		}
		if forward || backward {
			return true, backward
		}
	}
	return false, false
}

// hintedIndex finds the index that a hint names, by name or by key.
func hintedIndex(col *collection, hint query.Value) (x *index, natural int, err error) {
	bad := errorf(codeBadValue, "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index")
	switch {
	case value.IsString(hint):
		name := value.Str(hint)
		if name == "_id_" {
			return nil, 0, nil
		}
		for _, x := range col.indexes {
			if x.Name == name {
				return x, 0, nil
			}
		}
	case value.IsDocument(hint):
		a := &args{doc: hint.Data}
		if a.has("$natural") {
			if a.integer("$natural", 1) < 0 {
				return nil, -1, a.err
			}
			return nil, 1, a.err
		}
		if sameKey(hint.Data, idIndexKey) {
			return nil, 0, nil
		}
		for _, x := range col.indexes {
			if sameKey(hint.Data, x.key) {
				return x, 0, nil
			}
		}
	default:
		return nil, 0, errorf(codeFailedToParse, "Hint must be a string or an object")
	}
	return nil, 0, bad
}

// sameKey compares key patterns; 1 and 1.0 are the same direction.
func sameKey(a, b document) bool { return value.Equal(value.Doc(a), value.Doc(b)) }

// single says whether the plan is one document by its _id, whose key is then Low of its
// span.
func (p *plan) single() bool { return p.byID && p.exact && len(p.spans) == 1 }

// name is the index's name for explain, and its stage.
func (p *plan) stage() (stage, name string) {
	switch {
	case p.index != nil:
		return "IXSCAN", p.index.Name
	case p.single():
		return "IDHACK", "_id_"
	case p.byID && (len(p.spans) != 1 || p.spans[0].Low != nil || p.spans[0].Below != nil):
		return "IXSCAN", "_id_"
	}
	return "COLLSCAN", ""
}
