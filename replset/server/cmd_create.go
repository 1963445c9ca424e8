package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

var createFields = []string{
	"capped", "autoIndexId", "size", "max", "storageEngine", "validator", "validationLevel", "validationAction", "indexOptionDefaults",
	"viewOn", "pipeline", "collation", "timeseries", "clusteredIndex", "expireAfterSeconds", "changeStreamPreAndPostImages", "encryptedFields", "flags", "temp",
}

func cmdCreate(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	k.refuse("capped", "storageEngine", "timeseries", "clusteredIndex", "expireAfterSeconds", "encryptedFields", "indexOptionDefaults")
	k.bytesOnly()
	if k.err != nil {
		return k.err
	}
	given := k.optionsOf(nil)
	o, err := parseCollectionOptions(given)
	if err != nil {
		return err
	}
	if o.viewOn != "" {
		if k.inTxn {
			return errorf(codeNotInTransaction, "Cannot create a view in a multi-document transaction.")
		}
		if err := k.checkView(ns, &o); err != nil {
			return err
		}
	}
	ctx, cancel := k.lockContext()
	defer cancel()
	if k.txn != nil {
		if k.txn.writer.created[ns] == nil && k.s.m.Store.Catalogue().Collection(ns) == nil {
			_, err = k.createInTransaction(ctx, ns, given)
			return err
		}
		return errorf(codeNamespaceExists, "Collection %s already exists.", ns)
	}
	return k.ddlAll(ctx, []string{ns}, func(w *writer) error {
		if k.s.m.Store.Catalogue().Collection(ns) != nil {
			return errorf(codeNamespaceExists, "Collection %s already exists.", ns)
		}
		fresh := k.s.newCollection(ns)
		fresh.Options = rawOrNil(given)
		w.effects.Put = append(w.effects.Put, fresh)
		w.noticeCreate(fresh)
		return nil
	})
}

func cmdDrop(k *call) error {
	ns, err := k.target()
	if err != nil {
		return err
	}
	n := 0
	err = k.ddl(ns, func(w *writer, old *collection) error {
		if old != nil {
			dropEffects(w, old)
			n = len(old.indexes) + 1
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Dropping what is not there succeeds since 7.0.
	if n > 0 {
		k.out.AppendInt32("nIndexesWas", int32(n)).AppendString("ns", ns)
	}
	return nil
}

func (s *Server) namespaces(db string) (names []string) {
	for _, c := range s.m.Store.Catalogue().All() {
		if strings.HasPrefix(c.Name, db+".") {
			names = append(names, c.Name)
		}
	}
	return names
}

func cmdDropDatabase(k *call) error {
	if err := checkDatabase(k.db); err != nil {
		return err
	}
	names := k.s.namespaces(k.db)
	err := k.ddlAll(k.ctx, names, func(w *writer) error {
		// Those created since the names were taken stay; so they would have been
		// if they had come a moment later.
		for _, ns := range names {
			col, err := k.s.find(ns)
			if err != nil {
				return err
			}
			if col != nil {
				dropEffects(w, col)
			}
		}
		if len(names) > 0 {
			w.notice(noticeDropDatabase, k.db, nil, nil)
		}
		return nil
	})
	if err == nil && len(names) > 0 {
		k.out.AppendString("dropped", k.db)
	}
	return err
}

func cmdRenameCollection(k *call) error {
	from, to := k.text(k.name), k.text("to")
	drop := k.boolean("dropTarget", false)
	if k.err != nil {
		return k.err
	}
	for _, ns := range []string{from, to} {
		if db, coll := splitNS(ns); checkCollection(db, coll) != nil {
			return errorf(codeInvalidNamespace, "Invalid namespace: %s", ns)
		}
	}
	if from == to {
		return errorf(codeIllegalOperation, "Can't rename a collection to itself")
	}
	names := []string{from, to}
	if to < from {
		names = []string{to, from}
	}
	return k.ddlAll(k.ctx, names, func(w *writer) error {
		was, err := k.s.find(from)
		if err != nil {
			return err
		}
		if was == nil {
			return errorf(codeNamespaceNotFound, "Source collection %s does not exist", from)
		}
		if err := was.notAView(); err != nil {
			return err
		}
		old, err := k.s.find(to)
		if err != nil {
			return err
		}
		if old != nil && !drop {
			return errorf(codeNamespaceExists, "target namespace exists")
		}
		renamed := *was.Collection
		renamed.Name = to
		to := &value.Builder{}
		to.Add("to", namespaceValue(renamed.Name))
		if old != nil {
			removeEffects(w, old)
			to.Add("dropTarget", value.Lookup(newDoc().AppendBinary("u", 4, old.UUID.Data).Build(), "u"))
		}
		w.notice(noticeRename, from, was.Collection, to.Document())
		w.effects.Put = append(w.effects.Put, &renamed)
		return nil
	})
}

// record is the catalogue's form of an index that was asked for.
func indexRecord(id uint32, name string, spec document) store.IndexRecord {
	return store.IndexRecord{ID: id, Name: name, Spec: bson.Raw(spec)}
}
