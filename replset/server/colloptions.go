package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// The options of a collection that change what commands do with it. They are in the
// catalogue as they were asked for, and parsed with the collection.
type collectionOptions struct {
	viewOn   string
	pipeline query.Value // of a view

	validator *query.Filter
	schema    document // the validator as it was asked for
	level     string   // validationLevel; "" is strict
	warn      bool     // validationAction
	images    bool     // changeStreamPreAndPostImages
}

// optionFields are the options that are kept, in the order in which they are listed.
var optionFields = []string{"viewOn", "pipeline", "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages"}

func parseCollectionOptions(d document) (o collectionOptions, err error) {
	if d == nil {
		return o, nil
	}
	a := &args{what: "create", doc: d}
	o.viewOn, o.pipeline = a.text("viewOn"), a.array("pipeline")
	o.schema, o.level = a.document("validator"), a.text("validationLevel")
	action := a.text("validationAction")
	if images := a.document("changeStreamPreAndPostImages"); images != nil {
		i := &args{what: "changeStreamPreAndPostImages", doc: images}
		i.must("enabled")
		o.images = i.boolean("enabled", false)
		if err := orErr(i.err, i.only([]string{"enabled"})); err != nil {
			return o, err
		}
	}
	switch {
	case a.err != nil:
		return o, a.err
	case o.level != "" && o.level != "off" && o.level != "moderate" && o.level != "strict":
		return o, errorf(codeBadValue, "Enumeration value '%s' for field 'validationLevel' is not a valid value.", o.level)
	case action != "" && action != "error" && action != "warn":
		return o, errorf(codeBadValue, "Enumeration value '%s' for field 'validationAction' is not a valid value.", action)
	case o.viewOn == "" && !value.IsMissing(o.pipeline):
		return o, errorf(codeInvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	case o.viewOn != "" && (o.schema != nil || o.images):
		return o, errorf(codeInvalidOptions, "a view has no validator and no change stream images")
	}
	o.warn = action == "warn"
	if value.Len(o.schema) > 0 {
		o.validator, err = query.ParseFilter(o.schema, nil)
	}
	return o, err
}

// optionsOf are the kept options among the fields of a command, over those that a
// collection has already.
func (a *args) optionsOf(old document) document {
	b := newDoc()
	n := 0
	for _, name := range optionFields {
		v := a.get(name)
		if value.IsMissing(v) && old != nil {
			v = value.Lookup(old, name)
		}
		if !value.IsMissing(v) {
			b.AppendValue(name, v)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return b.Build()
}

func rawOrNil(d document) bson.Raw { return bson.Raw(d) }

// validate refuses a document that does not fit its collection. was is what it was
// before, nil if it is new.
func (o *collectionOptions) validate(was, now document) error {
	if o.validator == nil || o.warn || o.level == "off" {
		return nil
	}
	ok, err := o.validator.Match(now)
	if ok || err != nil {
		return err
	}
	if o.level == "moderate" && was != nil {
		// One that did not fit before need not fit now.
		if ok, err := o.validator.Match(was); !ok || err != nil {
			return err
		}
	}
	name, _, _ := value.First(o.schema)
	details := newDoc().AppendString("operatorName", name)
	if failed := o.validator.SchemaFailures(now); len(failed) > 0 {
		var rules []document
		for _, rule := range failed {
			spec := value.Lookup(value.Lookup(o.schema, "$jsonSchema").Data, rule)
			rules = append(rules, newDoc().AppendString("operatorName", rule).AppendDocument("specifiedAs", newDoc().AppendValue(rule, spec).Build()).Build())
		}
		details.AppendArray("schemaRulesNotSatisfied", docArray(rules))
	} else {
		details.AppendDocument("specifiedAs", o.schema).AppendString("reason", "expression did not match")
	}
	info := newDoc().AppendValue("failingDocumentId", idOf(now)).AppendDocument("details", details.Build()).Build()
	return &Error{Code: codeDocumentFailedVal, Message: "Document failed validation", Extra: newDoc().AppendDocument("errInfo", info).Build()}
}

// notAView refuses what cannot be done with a view.
func (c *collection) notAView() error {
	if c != nil && c.viewOn != "" {
		return errorf(codeNotOnView, "Namespace %s is a view, not a collection", c.Name)
	}
	return nil
}

func cmdCollMod(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	spec := k.document("index")
	if k.err != nil {
		return k.err
	}
	return k.ddl(ns, func(w *writer, old *collection) error {
		if old == nil {
			return errorf(codeNamespaceNotFound, "ns does not exist: %s", ns)
		}
		next := *old.Collection
		next.Options = rawOrNil(k.optionsOf(document(old.Options)))
		o, err := parseCollectionOptions(document(next.Options))
		if err != nil {
			return err
		}
		switch {
		case o.viewOn != "" && old.viewOn == "":
			return errorf(codeInvalidOptions, "option only supported on a view: viewOn")
		case o.viewOn != "":
			if err := k.checkView(ns, &o); err != nil {
				return err
			}
		}
		if spec != nil {
			if next.Indexes, err = k.modifyIndex(old, spec); err != nil {
				return err
			}
		}
		w.notice(noticeModify, ns, old.Collection, nil)
		w.effects.Put = append(w.effects.Put, &next)
		return nil
	})
}
