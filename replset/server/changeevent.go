package server

import (
	"strings"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
	"github.com/assaylab/assay/replset/store"
)

// The notices of changes that are not of documents, by their operationType. They are
// written by the commands that make the changes and read by change streams.
const (
	noticeCreate        = "create"
	noticeDrop          = "drop"
	noticeDropDatabase  = "dropDatabase"
	noticeRename        = "rename"
	noticeCreateIndexes = "createIndexes"
	noticeDropIndexes   = "dropIndexes"
	noticeModify        = "modify"
)

// notice adds what happened to a collection, nil for a database alone, to the entry.
func (w *writer) notice(what, ns string, c *store.Collection, detail document) {
	b := newDoc().AppendString("type", what).AppendString("ns", ns)
	if c != nil {
		b.AppendBinary("uuid", 4, c.UUID.Data)
	}
	if detail != nil {
		b.AppendDocument("detail", detail)
	}
	w.effects.Notices = append(w.effects.Notices, b.Build())
}

func (w *writer) noticeCreate(c *store.Collection) {
	id := newDoc().AppendInt32("v", 2).AppendDocument("key", idIndexKey).AppendString("name", "_id_").Build()
	w.notice(noticeCreate, c.Name, c, newDoc().AppendDocument("idIndex", id).Build())
}

func (w *writer) noticeIndexes(what string, c *store.Collection, specs []document) {
	w.notice(what, c.Name, c, newDoc().AppendArray("indexes", docArray(specs)).Build())
}

// take puts the events of an entry that the stream is about into its queue.
func (cs *changeStream) take(r store.Record) error {
	for i, e := range r.Events {
		p := place{r.Stamp, uint32(i), 0}
		invalidation := place{r.Stamp, uint32(i), 1}
		if !cs.at.before(invalidation) {
			continue
		}
		shown, ends := cs.concerned(e)
		if shown && cs.at.before(p) {
			doc, err := cs.event(p, e)
			if err != nil {
				return err
			}
			cs.queue = append(cs.queue, told{p, doc, false})
		}
		if ends {
			b := cs.head(invalidation, "invalidate", nil)
			cs.queue = append(cs.queue, told{invalidation, b.Document(), true})
			return nil
		}
	}
	return nil
}

// concerned says whether the stream shows an event, and whether it ends with it.
func (cs *changeStream) concerned(e store.Event) (shown, ends bool) {
	if e.Notice == nil {
		return cs.watches(e.Namespace), false
	}
	a := &args{doc: e.Notice}
	what, ns := a.text("type"), a.text("ns")
	if what == noticeDropDatabase {
		return cs.coll == "" && (cs.db == "" || cs.db == ns), cs.db == ns && cs.coll == ""
	}
	shown = cs.watches(ns)
	switch what {
	case noticeRename:
		shown = shown || cs.watches(renamedTo(e.Notice))
		return shown, shown && cs.coll != ""
	case noticeDrop:
		return shown, shown && cs.coll != ""
	}
	return shown && cs.expanded, false
}

func renamedTo(notice document) string {
	detail := value.Lookup(notice, "detail")
	to := value.Lookup(detail.Data, "to")
	return value.Str(value.Lookup(to.Data, "db")) + "." + value.Str(value.Lookup(to.Data, "coll"))
}

func (cs *changeStream) watches(ns string) bool {
	db, coll := splitNS(ns)
	switch {
	case strings.HasPrefix(coll, "system."):
		return false
	case cs.db == "":
		return db != "admin" && db != "config" && db != "local"
	}
	return cs.db == db && (cs.coll == "" || cs.coll == coll)
}

// head begins an event.
func (cs *changeStream) head(p place, what string, uuid []byte) *value.Builder {
	b := &value.Builder{}
	t := timestamp(p.stamp)
	b.Add("_id", value.Doc(p.token()))
	b.Add("operationType", value.String(what))
	b.Add("clusterTime", value.Timestamp(t.T, t.I))
	if cs.expanded && uuid != nil {
		b.Add("collectionUUID", value.Lookup(newDoc().AppendBinary("u", 4, uuid).Build(), "u"))
	}
	// The log's clock is the only one that all members agree on.
	b.Add("wallTime", value.Date(int64(t.T)*1000))
	return b
}

func namespaceValue(ns string) query.Value {
	db, coll := splitNS(ns)
	var b value.Builder
	b.Add("db", value.String(db))
	if coll != "" {
		b.Add("coll", value.String(coll))
	}
	return b.Value()
}

func (cs *changeStream) event(p place, e store.Event) (document, error) {
	if e.Notice != nil {
		return cs.noticeEvent(p, e.Notice), nil
	}
	what := [...]string{"insert", "update", "replace", "delete"}[e.Kind]
	b := cs.head(p, what, e.UUID.Data)
	id := value.Lookup(e.Document, "_id")
	if e.Kind == store.Removed {
		id = value.Lookup(e.Note, "_id")
	}
	full, err := cs.fullDocument(p, e, id)
	if err != nil {
		return nil, err
	}
	b.Add("fullDocument", full)
	b.Add("ns", namespaceValue(e.Namespace))
	var key value.Builder
	key.Add("_id", id)
	b.Add("documentKey", key.Value())
	if e.Kind == store.Updated {
		b.Add("updateDescription", cs.description(e.Note))
	}
	if e.Kind != store.Inserted {
		switch {
		case cs.pre == "" || cs.pre == "off":
		case e.Images:
			b.Add("fullDocumentBeforeChange", value.Doc(e.Before))
		case cs.pre == "whenAvailable":
			b.Add("fullDocumentBeforeChange", value.Null)
		default:
			return nil, noImage("pre", p)
		}
	}
	return b.Document(), nil
}

// noImage: only a collection that was told to keeps images of its documents.
func noImage(which string, p place) error {
	return &Error{
		Code: codeNoMatchingDocument, Labels: []string{"NonResumableChangeStreamError"},
		Message: "Change stream was configured to require a " + which + "-image for all update, delete and replace events, but the " + which + "-image was not found for event: " + value.Show(value.Doc(p.token())),
	}
}

func (cs *changeStream) description(note document) query.Value {
	var b value.Builder
	for k, v := range value.Fields(note) {
		if k != "disambiguatedPaths" || cs.expanded {
			b.Add(k, v)
		}
	}
	return b.Value()
}

// fullDocument is the document of an event; Missing where it has none.
func (cs *changeStream) fullDocument(p place, e store.Event, id query.Value) (query.Value, error) {
	switch e.Kind {
	case store.Inserted, store.Replaced:
		return value.Doc(e.Document), nil
	case store.Removed:
		return value.Missing, nil
	}
	switch cs.full {
	case "whenAvailable", "required":
		switch {
		case e.Images:
			return value.Doc(e.Document), nil
		case cs.full == "required":
			return value.Missing, noImage("post", p)
		}
		return value.Null, nil
	case "updateLookup":
		// As it is now, which may be later than the event; null if it is gone.
		for _, c := range cs.s.m.Store.Catalogue().All() {
			if string(c.UUID.Data) != string(e.UUID.Data) {
				continue
			}
			doc, _, err := cs.s.m.Store.Get(c.ID, value.KeyOf(id), cs.s.m.Store.Stamp())
			if err != nil || doc == nil {
				return value.Null, err
			}
			return value.Doc(doc), nil
		}
		return value.Null, nil
	}
	return value.Missing, nil
}

func (cs *changeStream) noticeEvent(p place, notice document) document {
	a := &args{doc: notice}
	what, ns := a.text("type"), a.text("ns")
	var uuid []byte
	if _, id, ok := a.get("uuid").BinaryOK(); ok {
		uuid = id
	}
	b := cs.head(p, what, uuid)
	b.Add("ns", namespaceValue(ns))
	detail := a.get("detail")
	if what == noticeRename {
		b.Add("to", value.Lookup(detail.Data, "to"))
	}
	if cs.expanded && value.IsDocument(detail) {
		b.Add("operationDescription", detail)
	}
	return b.Document()
}
