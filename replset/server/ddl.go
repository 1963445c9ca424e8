package server

import (
	"context"
	"crypto/rand"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/assaylab/assay/replset/store"
)

func collectionLatch(ns string) string { return string(rune(collectionKind)) + ns }

// allocate gives n numbers that no collection and no index has or is about to have.
// Only a primary asks, which has applied everything that was committed before its
// term.
func (s *Server) allocate(n int) uint32 {
	s.parsedMu.Lock()
	defer s.parsedMu.Unlock()
	first := max(s.nextID, s.m.Store.Catalogue().NextID())
	s.nextID = first + uint32(n)
	return first
}

func (s *Server) newCollection(ns string) *store.Collection {
	id := make([]byte, 16)
	rand.Read(id)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return &store.Collection{ID: s.allocate(1), Name: ns, UUID: bson.Binary{Subtype: 4, Data: id}}
}

// parseFresh parses a collection that is in no catalogue yet.
func (s *Server) parseFresh(c *store.Collection) (*collection, error) {
	col := &collection{Collection: c}
	var err error
	if col.collectionOptions, err = parseCollectionOptions(document(c.Options)); err != nil {
		return nil, err
	}
	for _, r := range c.Indexes {
		x, err := parseIndex(r)
		if err != nil {
			return nil, err
		}
		col.indexes = append(col.indexes, x)
	}
	return col, nil
}

func dropEffects(w *writer, col *collection) {
	removeEffects(w, col)
	w.notice(noticeDrop, col.Name, col.Collection, nil)
}

// removeEffects is dropEffects for a collection of which something else tells that
// it has gone.
func removeEffects(w *writer, col *collection) {
	w.effects.Drop = append(w.effects.Drop, col.ID)
	for _, x := range col.indexes {
		w.effects.DropIndexes = append(w.effects.DropIndexes, x.ID)
	}
}

// ddl changes the catalogue's entry of one collection, alone with it: it waits
// for the writes and transactions that use it.
func (k *call) ddl(ns string, change func(w *writer, old *collection) error) error {
	return k.ddlAll(k.ctx, []string{ns}, func(w *writer) error {
		old, err := k.s.find(ns)
		if err != nil {
			return err
		}
		return change(w, old)
	})
}

func (k *call) ddlAll(ctx context.Context, names []string, change func(w *writer) error) error {
	w := k.s.writer(k.role.Term)
	var err error
	// In one order for all, so that two cannot wait for each other.
	for _, ns := range slices.Sorted(slices.Values(names)) {
		if err == nil {
			err = w.hold.acquire(ctx, collectionLatch(ns), false)
		}
	}
	if err == nil {
		err = change(w)
	}
	if err != nil {
		w.hold.release()
		return err
	}
	return k.propose(w)
}

// createInTransaction makes a collection that others see when the transaction
// commits. Until then nobody else can make or use one of that name.
func (k *call) createInTransaction(ctx context.Context, ns string, options document) (*collection, error) {
	w := k.txn.writer
	key := collectionLatch(ns)
	w.hold.releaseOne(key)
	if err := w.hold.acquire(ctx, key, false); err != nil {
		return nil, err
	}
	if col, err := k.s.find(ns); col != nil || err != nil {
		return col, err // somebody was faster; the latch stays, which is more than needed
	}
	fresh := k.s.newCollection(ns)
	fresh.Options = rawOrNil(options)
	return w.create(fresh)
}

// create adds a collection to the entry, or changes one that it has.
func (w *writer) create(c *store.Collection) (*collection, error) {
	col, err := w.s.parseFresh(c)
	if err == nil {
		if w.created[c.Name] == nil {
			w.noticeCreate(c)
		}
		if w.created == nil {
			w.created = map[string]*collection{}
		}
		w.created[c.Name] = col
	}
	return col, err
}

// createImplicitly makes a collection that a write needs, as an entry of its own.
func (k *call) createImplicitly(ctx context.Context, ns string) error {
	err := k.ddlAll(ctx, []string{ns}, func(w *writer) error {
		if k.s.m.Store.Catalogue().Collection(ns) == nil {
			fresh := k.s.newCollection(ns)
			w.effects.Put = append(w.effects.Put, fresh)
			w.noticeCreate(fresh)
		}
		return nil
	})
	if err == nil && k.wcError != nil {
		// The write itself has not begun, so that this is an error and not a
		// concern about something that was done.
		e := *k.wcError
		k.wcError = nil
		return &e
	}
	return err
}

// Clean drops all collections, ends all transactions and cursors, and turns off
// fail points.
func (s *Server) Clean(ctx context.Context) error {
	role := s.topology.role()
	k := s.ownCall(ctx, role)
	s.points.clear()
	s.cursors.closeAll()
	if err := k.endEach(s.sessions.ids()); err != nil {
		return err
	}
	var names []string
	for _, c := range s.m.Store.Catalogue().All() {
		names = append(names, c.Name)
	}
	err := k.ddlAll(ctx, names, func(w *writer) error {
		for _, ns := range names {
			col, err := s.find(ns)
			if err != nil {
				return err
			}
			if col != nil {
				dropEffects(w, col)
			}
		}
		return nil
	})
	if err == nil && k.wcError != nil {
		return k.wcError
	}
	return err
}
