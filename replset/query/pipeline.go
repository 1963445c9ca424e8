package query

import (
	"errors"
	"io"
	"slices"

	"github.com/assaylab/assay/replset/query/value"
)

// Source gives documents one after the other, and io.EOF after the last.
type Source func() (Document, error)

// Namespace names a collection. An empty DB is the database of the command.
type Namespace struct{ DB, Coll string }

// Open reads another collection, for $lookup and $unionWith. hint, if it is not nil,
// is a filter that only needs to be met: what does not match may be left out, and is
// filtered again. close is called once, also when the source was not read to its end.
type Open func(ns Namespace, hint *Filter) (src Source, close func(), err error)

// Pipeline is a parsed aggregation.
type Pipeline struct {
	stages []stage
	first  SourceStage
	write  *Write
	vars   *Vars
}

// SourceStage is a first stage that makes documents instead of reading a collection.
// The zero SourceStage is none.
type SourceStage struct {
	Name string
	Spec Value
}

// PipelineOptions are what a command says beside its stages.
type PipelineOptions struct {
	Vars *Vars
	// SourceStages are first stages, such as $collStats, that the caller serves itself.
	// $documents is served here.
	SourceStages []string
}

// stage is one step of a pipeline.
type stage interface {
	run(c *running, in Source) Source
}

// running is a pipeline at work.
type running struct {
	vars    *Vars
	open    Open
	closers []func()
}

func (c *running) close() {
	for _, f := range c.closers {
		f()
	}
	c.closers = nil
}

// Cursor is the result of a pipeline.
type Cursor struct {
	next Source
	run  *running
}

// Next is the next document, or io.EOF. After an error it must not be called again.
func (c *Cursor) Next() (Document, error) { return c.next() }

// Close releases the collections that the pipeline has opened; it may be called
// more than once. The source that was given to Run is not closed.
func (c *Cursor) Close() { c.run.close() }

// Run applies the pipeline to in. open may be nil for a pipeline that reads nothing
// else. A pipeline that begins with $documents does not read in.
func (p *Pipeline) Run(in Source, open Open) *Cursor {
	return p.runWith(in, open, p.vars)
}

func (p *Pipeline) runWith(in Source, open Open, vars *Vars) *Cursor {
	c := &running{vars: vars, open: open}
	for _, s := range p.stages {
		in = s.run(c, in)
	}
	return &Cursor{in, c}
}

// one runs a pipeline of one-to-one stages on a single document.
func (p *Pipeline) one(doc Document) (Document, error) {
	return p.oneWith(doc, p.vars)
}

func (p *Pipeline) oneWith(doc Document, vars *Vars) (Document, error) {
	return p.runWith(FromSlice([]Document{doc}), nil, vars).Next()
}

// FromSlice is the documents of a slice.
func FromSlice(docs []Document) Source {
	return func() (Document, error) {
		if len(docs) == 0 {
			return nil, io.EOF
		}
		d := docs[0]
		docs = docs[1:]
		return d, nil
	}
}

// ReadAll reads a source to its end.
func ReadAll(src Source) ([]Document, error) {
	var out []Document
	for {
		d, err := src()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
}

// Leading is the filter with which the pipeline begins, or nil: the caller may feed
// it only documents that match. The pipeline applies it again.
func (p *Pipeline) Leading() *Filter {
	if len(p.stages) > 0 {
		if m, ok := p.stages[0].(*matchStage); ok {
			return m.filter
		}
	}
	return nil
}

// SourceStage is the first stage if the caller must serve it.
func (p *Pipeline) SourceStage() SourceStage { return p.first }

// ReadsCollection says whether the pipeline reads the collection of the command:
// not if it begins with a stage that makes its own documents.
func (p *Pipeline) ReadsCollection() bool {
	if p.first.Name != "" {
		return false
	}
	if len(p.stages) > 0 {
		_, made := p.stages[0].(*documentsStage)
		return !made
	}
	return true
}

// Write is what the caller must do with the results, or nil: return them.
func (p *Pipeline) Write() *Write { return p.write }

// Reads are the other collections that the pipeline reads.
func (p *Pipeline) Reads() []Namespace {
	var out []Namespace
	for _, s := range p.stages {
		switch s := s.(type) {
		case *lookupStage:
			out = append(append(out, s.from), s.pipeline.Reads()...)
		case *unionStage:
			out = append(append(out, s.from), s.pipeline.Reads()...)
		case *facetStage:
			for _, f := range s.facets {
				out = append(out, f.pipeline.Reads()...)
			}
		}
	}
	return slices.DeleteFunc(out, func(ns Namespace) bool { return ns.Coll == "" })
}

// place is where a pipeline stands, which decides what may be in it.
type place int

const (
	topLevel place = iota
	inLookup
	inUnion
	inFacet
	inUpdate
)

func (pl place) String() string {
	return [...]string{"pipeline", "$lookup", "$unionWith", "$facet", "update"}[pl]
}

// maxStages is the most stages that a pipeline may have.
const maxStages = 1000

type pipelineParser struct {
	vars    *Vars
	place   place
	sources []string
}

// ParsePipeline parses the stages of an aggregation, an array. Errors: 40324 for a
// stage that does not exist, 238 for one that does but not here, 40601 and 40602 for
// one in the wrong place, 14 for what is no list of documents.
func ParsePipeline(stages Value, opts PipelineOptions) (*Pipeline, error) {
	return (&pipelineParser{vars: opts.Vars, sources: opts.SourceStages}).parse(stages)
}

func parseUpdatePipeline(stages Value, vars *Vars) (*Pipeline, error) {
	return (&pipelineParser{vars: vars, place: inUpdate}).parse(stages)
}

func (p *pipelineParser) parse(stages Value) (*Pipeline, error) {
	if !value.IsArray(stages) {
		return nil, value.Errorf(value.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	out := &Pipeline{vars: p.vars}
	list := value.List(stages.Data)
	if len(list) > maxStages {
		return nil, value.Errorf(7749501, "Pipeline length must be no longer than %d stages.", maxStages)
	}
	for i, s := range list {
		if !value.IsDocument(s) {
			return nil, value.Errorf(value.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		if value.Len(s.Data) != 1 {
			return nil, value.Errorf(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		name, spec, _ := value.First(s.Data)
		if err := p.checkPlace(name, i == 0, i == len(list)-1); err != nil {
			return nil, err
		}
		if err := p.add(out, name, spec); err != nil {
			return nil, err
		}
	}
	limitSorts(out.stages)
	return out, nil
}

// checkPlace refuses stages where they may not be.
func (p *pipelineParser) checkPlace(name string, first, last bool) error {
	isWrite := name == "$out" || name == "$merge"
	isSource := name == "$documents" || slices.Contains(p.sources, name)
	switch {
	case p.place == inUpdate && !slices.Contains(updateStages, name):
		if !isStage(name) {
			return unknownStage(name)
		}
		return value.Errorf(value.InvalidOptions, "%s is not allowed to be used within an update", name)
	case isWrite && p.place != topLevel:
		code := map[place]int32{inLookup: 51047, inUnion: 31441, inFacet: 40600}[p.place]
		return value.Errorf(code, "%s is not allowed to be used within a %s stage", name, p.place)
	case isWrite && !last:
		return value.Errorf(40601, "%s can only be the final stage in the pipeline", name)
	case isSource && p.place == inFacet, name == "$facet" && p.place == inFacet:
		return value.Errorf(40600, "%s is not allowed to be used within a $facet stage", name)
	case isSource && !first:
		return value.Errorf(40602, "%s is only valid as the first stage in a pipeline.", name)
	}
	return nil
}

// updateStages are the stages that an update may have.
var updateStages = []string{"$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"}

func (p *pipelineParser) add(out *Pipeline, name string, spec Value) error {
	switch {
	case slices.Contains(p.sources, name):
		out.first = SourceStage{name, value.Clone(spec)}
		return nil
	case name == "$out" || name == "$merge":
		w, err := parseWrite(name, spec, p.vars)
		out.write = w
		return err
	}
	parse := stageParser(name)
	if parse == nil {
		return unknownStage(name)
	}
	s, err := parse(p, spec)
	if err != nil {
		return err
	}
	out.stages = append(out.stages, s...)
	return nil
}

func unknownStage(name string) error {
	if slices.Contains(unsupportedStages, name) {
		return value.Errorf(value.NotImplemented, "pipeline stage %s is not supported", name)
	}
	return value.Errorf(value.UnknownPipelineStage, "Unrecognized pipeline stage name: '%s'", name)
}

func isStage(name string) bool {
	return stageParser(name) != nil || name == "$out" || name == "$merge" || slices.Contains(unsupportedStages, name)
}

// unsupportedStages are the stages that MongoDB has and this package has not.
var unsupportedStages = []string{
	"$bucketAuto", "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$currentOp", "$densify", "$fill", "$geoNear",
	"$graphLookup", "$indexStats", "$listLocalSessions", "$listSampledQueries", "$listSearchIndexes", "$listSessions",
	"$planCacheStats", "$queryStats", "$redact", "$search", "$searchMeta", "$setWindowFields", "$shardedDataDistribution", "$vectorSearch",
}

// stageParser is a switch and not a map because stages contain pipelines.
func stageParser(name string) func(*pipelineParser, Value) ([]stage, error) {
	switch name {
	case "$match":
		return parseMatch
	case "$project":
		return parseProjectStage
	case "$addFields", "$set":
		return func(p *pipelineParser, v Value) ([]stage, error) { return parseAddFieldsStage(name, p, v) }
	case "$unset":
		return parseUnsetStage
	case "$replaceRoot":
		return parseReplaceRoot
	case "$replaceWith":
		return parseReplaceWith
	case "$limit":
		return parseLimit
	case "$skip":
		return parseSkip
	case "$sort":
		return parseSortStage
	case "$group":
		return parseGroup
	case "$count":
		return parseCount
	case "$sortByCount":
		return parseSortByCount
	case "$bucket":
		return parseBucket
	case "$unwind":
		return parseUnwind
	case "$lookup":
		return parseLookup
	case "$unionWith":
		return parseUnion
	case "$facet":
		return parseFacet
	case "$sample":
		return parseSample
	case "$documents":
		return parseDocuments
	}
	return nil
}
