package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// maxViewDepth is how many views may stand on each other.
const maxViewDepth = 20

var errViewDepth = errorf(codeViewDepth, "View depth too deep or view cycle detected; maximum depth is %d", maxViewDepth)

// checkView refuses a view that cannot be read, or would stand on itself.
func (k *call) checkView(ns string, o *collectionOptions) error {
	if err := checkCollection(k.db, o.viewOn); err != nil {
		return err
	}
	vars, err := k.vars(nil, nil)
	if err != nil {
		return err
	}
	p, err := query.ParsePipeline(viewStages(o), query.PipelineOptions{Vars: vars})
	if err != nil {
		return err
	}
	if p.Write() != nil {
		return errorf(codeOptionNotOnView, "The aggregation stage $out or $merge cannot be used in a view definition")
	}
	on := k.db + "." + o.viewOn
	for range maxViewDepth {
		if on == ns {
			return errorf(5, "View cycle detected: %s", ns)
		}
		col, err := k.s.find(on)
		if err != nil || col == nil || col.viewOn == "" {
			return err
		}
		on = k.db + "." + col.viewOn
	}
	return errViewDepth
}

// viewStages is the view's pipeline, which may be left out.
func viewStages(o *collectionOptions) query.Value {
	if value.IsMissing(o.pipeline) {
		return query.Value{Type: bsoncore.TypeArray, Data: emptyDoc}
	}
	return o.pipeline
}

// selectView reads a view: the collection it stands on, through its pipeline. The
// pipeline is parsed for each use, because it may name the time.
func (v *view) selectView(col *collection, sel selection, depth int) (items, func(), *plan, error) {
	switch {
	case depth >= maxViewDepth:
		return nil, nil, nil, errViewDepth
	case sel.collated:
		return nil, nil, nil, errorf(codeOptionNotOnView, "Cannot override a view's default collation: %s", col.Name)
	case !value.IsMissing(sel.hint):
		return nil, nil, nil, errorf(codeNotImplemented, "a hint is not supported on a view")
	}
	vars, err := v.s.vars(nil, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := query.ParsePipeline(viewStages(&col.collectionOptions), query.PipelineOptions{Vars: vars})
	if err != nil {
		return nil, nil, nil, err
	}
	db, _, _ := strings.Cut(col.Name, ".")
	inner := selection{filter: p.Leading(), hint: value.Missing}
	if inner.filter == nil {
		if inner.filter, err = query.ParseFilter(emptyDoc, nil); err != nil {
			return nil, nil, nil, err
		}
	}
	var base *collection
	if p.ReadsCollection() {
		if base, err = v.collection(db + "." + col.viewOn); err != nil {
			return nil, nil, nil, err
		}
	}
	next, close, _, err := v.selectAt(base, inner, depth+1)
	if err != nil {
		return nil, nil, nil, err
	}
	cur := p.Run(source(next, 0, unlimited), v.openOther(db, depth+1))
	found := v.matching(func() (item, error) {
		doc, err := cur.Next()
		return item{doc: doc}, err
	}, sel.filter)
	if sel.sort != nil && sel.sort.Natural() == 0 {
		found = sortItems(found, sel.sort)
	}
	return found, func() { cur.Close(); close() }, &plan{spans: fullSpan}, nil
}
