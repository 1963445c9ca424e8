package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	bolt "go.etcd.io/bbolt"
)

// peer is another embedded store, set so that a write is durable when it returns.
type peer struct {
	name string
	open func(dir string) (put func(key string) error, has func(key string) (bool, error), end func() error, err error)
}

// measure writes, and looks whether every key is there.
func (p peer) measure(c config) (f figures, err error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return nil, err
	}
	defer remove()
	put, has, end, err := p.open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if f, err = (load{ops: c.Ops, limit: c.Limit}).run(put, nil, nil); err != nil {
		return nil, err
	}
	if ok, err := has(key(0)); err != nil || !ok {
		return nil, fmt.Errorf("%s lost the first key (%v)", p.name, err)
	}
	return f, nil
}

func peers() []peer {
	return []peer{{"pebble", openPebble}, {"goleveldb", openLevel}, {"bbolt", openBolt}, {"badger", openBadger}}
}

type silent struct{}

func (silent) Infof(string, ...any)           {}
func (silent) Errorf(string, ...any)          {}
func (silent) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func openPebble(dir string) (func(string) error, func(string) (bool, error), func() error, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
	if err != nil {
		return nil, nil, nil, err
	}
	put := func(k string) error { return db.Set([]byte(k), nil, pebble.Sync) }
	has := func(k string) (bool, error) {
		_, c, err := db.Get([]byte(k))
		if err != nil {
			return false, err
		}
		return true, c.Close()
	}
	return put, has, db.Close, nil
}

func openLevel(dir string) (func(string) error, func(string) (bool, error), func() error, error) {
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	put := func(k string) error { return db.Put([]byte(k), nil, &opt.WriteOptions{Sync: true}) }
	has := func(k string) (bool, error) { return db.Has([]byte(k), nil) }
	return put, has, db.Close, nil
}

// openBolt batches as many writes as there are writers: with the defaults, a batch
// of a thousand or ten milliseconds, each would wait the ten milliseconds.
func openBolt(dir string) (func(string) error, func(string) (bool, error), func() error, error) {
	db, err := bolt.Open(filepath.Join(dir, "db"), 0o600, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	db.MaxBatchSize, db.MaxBatchDelay = writers, 2*time.Millisecond
	bucket := []byte("b")
	err = db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bucket); return err })
	put := func(k string) error {
		return db.Batch(func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put([]byte(k), []byte{}) })
	}
	has := func(k string) (ok bool, err error) {
		err = db.View(func(tx *bolt.Tx) error { ok = tx.Bucket(bucket).Get([]byte(k)) != nil; return nil })
		return ok, err
	}
	return put, has, db.Close, err
}

func openBadger(dir string) (func(string) error, func(string) (bool, error), func() error, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil))
	if err != nil {
		return nil, nil, nil, err
	}
	put := func(k string) error {
		return db.Update(func(tx *badger.Txn) error { return tx.Set([]byte(k), nil) })
	}
	has := func(k string) (ok bool, err error) {
		err = db.View(func(tx *badger.Txn) error { _, err := tx.Get([]byte(k)); return err })
		return err == nil, err
	}
	return put, has, db.Close, nil
}
