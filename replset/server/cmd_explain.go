package server

import (
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

func cmdExplain(k *call) error {
	inner := k.document(k.name)
	verbosity := k.text("verbosity")
	if k.err != nil {
		return k.err
	}
	if inner == nil || value.Len(inner) == 0 {
		return errorf(codeFailedToParse, "explain takes a command")
	}
	if verbosity != "" && !slices.Contains([]string{"queryPlanner", "executionStats", "allPlansExecution"}, verbosity) {
		return errorf(codeFailedToParse, "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}")
	}
	name, _, _ := value.First(inner)
	return explainCommand(k, &args{what: name, doc: inner})
}

// explainCommand says how a command would find its documents.
func explainCommand(k *call, a *args) error {
	name, target, _ := value.First(a.doc)
	ns := k.db + "." + value.Str(target)
	cmd := k.s.commands[name]
	if cmd == nil {
		return errorf(codeCommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	if err := a.only(generic, []string{name, "$db"}, cmd.fields, cmd.sections); err != nil {
		return err
	}
	sel, write, err := explained(k, a, cmd.name, ns)
	if err != nil {
		return err
	}
	v, done, err := k.view()
	if err != nil {
		return err
	}
	defer done()
	col, err := v.collection(ns)
	if err != nil {
		return err
	}
	next, close, p, err := v.selectItems(col, sel)
	if err != nil {
		return err
	}
	defer close()
	plan := winningPlan(p, sel, write)
	if col == nil {
		plan = newDoc().AppendString("stage", "EOF").Build()
	}
	k.out.AppendString("explainVersion", "1")
	k.out.AppendDocument("queryPlanner", newDoc().AppendString("namespace", ns).AppendDocument("parsedQuery", orEmpty(sel.raw)).
		AppendDocument("winningPlan", plan).AppendArray("rejectedPlans", bsoncore.NewArrayBuilder().Build()).Build())
	if v := k.text("verbosity"); v != "queryPlanner" && !k.has("explain") || v == "executionStats" || v == "allPlansExecution" {
		n, err := drain(next)
		if err != nil {
			return err
		}
		k.out.AppendDocument("executionStats", newDoc().AppendBoolean("executionSuccess", true).AppendInt32("nReturned", n).Build())
	}
	return nil
}

func drain(next items) (n int32, err error) {
	for {
		if _, err := next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

func explained(k *call, a *args, name, ns string) (sel selection, write string, err error) {
	filtered := func(field string) (selection, error) {
		raw := orEmpty(a.document(field))
		if a.err != nil {
			return selection{}, a.err
		}
		by := a.collation()
		if a.err != nil {
			return selection{}, a.err
		}
		vars, err := k.vars(a.document("let"), by)
		if err != nil {
			return selection{}, err
		}
		f, err := query.ParseFilter(raw, vars)
		return selection{filter: f, raw: raw, hint: a.get("hint"), collated: by != nil}, err
	}
	first := func(field string) (*args, error) {
		list := a.array(field)
		if value.Len(list.Data) != 1 || !value.IsDocument(value.At(list.Data, 0)) {
			return nil, errorf(codeFailedToParse, "explained %s must have one statement", name)
		}
		return &args{what: name, doc: value.At(list.Data, 0).Data}, a.err
	}
	switch name {
	case "find":
		f, err := a.parseFind(k, ns)
		if err != nil {
			return sel, "", err
		}
		return f.sel, "", nil
	case "aggregate":
		agg, err := a.parseAggregate(k)
		if err != nil {
			return sel, "", err
		}
		return agg.sel, "", nil
	case "count", "distinct":
		sel, err = filtered("query")
		return sel, "", err
	case "findAndModify":
		if sel, err = filtered("query"); err == nil && a.document("sort") != nil {
			sel.sort, err = query.ParseSort(a.document("sort"), a.collation())
		}
		if a.boolean("remove", false) {
			return sel, "DELETE", err
		}
		return sel, "UPDATE", err
	case "update":
		st, err := first("updates")
		if err != nil {
			return sel, "", err
		}
		u, err := k.parseUpdate(ns, st, "q", "u", nil)
		if err != nil {
			return sel, "", err
		}
		return u.sel, "UPDATE", nil
	case "delete":
		st, err := first("deletes")
		if err != nil {
			return sel, "", err
		}
		d, err := k.parseDelete(ns, st, "q", nil)
		if err != nil {
			return sel, "", err
		}
		return d.sel, "DELETE", nil
	}
	return sel, "", errorf(codeCommandNotFound, "Explain failed due to unknown command: %s", name)
}

func winningPlan(p *plan, sel selection, write string) document {
	stage, name := p.stage()
	out := newDoc()
	switch stage {
	case "COLLSCAN":
		out.AppendString("stage", stage)
	case "IDHACK":
		out.AppendString("stage", stage)
	default:
		key := idIndexKey
		if p.index != nil {
			key = p.index.key
		}
		scan := newDoc().AppendString("stage", stage).AppendDocument("keyPattern", key).AppendString("indexName", name)
		out.AppendString("stage", "FETCH").AppendDocument("inputStage", scan.Build())
	}
	d := out.Build()
	if sel.sort != nil && !p.sorted {
		d = newDoc().AppendString("stage", "SORT").AppendDocument("inputStage", d).Build()
	}
	if write != "" {
		d = newDoc().AppendString("stage", write).AppendDocument("inputStage", d).Build()
	}
	return d
}
