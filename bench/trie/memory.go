package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/assaylab/assay/artrie"
	iradix "github.com/hashicorp/go-immutable-radix/v2"
	"github.com/tidwall/btree"
)

// set is a set of strings in memory. walk is nil when it has no order.
type set struct {
	put  func(k string)
	get  func(k string) bool
	walk func(prefix string, f func())
}

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func mapSet(config) (set, func() error, error) {
	m := map[string]struct{}{}
	var mu sync.RWMutex
	return set{
		put: func(k string) { mu.Lock(); m[k] = struct{}{}; mu.Unlock() },
		get: func(k string) bool { mu.RLock(); _, ok := m[k]; mu.RUnlock(); return ok },
	}, nil, nil
}

func iradixSet(config) (set, func() error, error) {
	t := iradix.New[struct{}]()
	x := t.Txn()
	return set{
		put: func(k string) { x.Insert(bytesOf(k), struct{}{}) },
		get: func(k string) bool {
			if x != nil {
				t, x = x.Commit(), nil
			}
			_, ok := t.Get(bytesOf(k))
			return ok
		},
		walk: func(p string, f func()) {
			t.Root().WalkPrefix(bytesOf(p), func([]byte, struct{}) bool { f(); return false })
		},
	}, nil, nil
}

func btreeSet(config) (set, func() error, error) {
	var m btree.Map[string, struct{}]
	return set{
		put: func(k string) { m.Set(k, struct{}{}) },
		get: func(k string) bool { _, ok := m.Get(k); return ok },
		walk: func(p string, f func()) {
			m.Ascend(p, func(k string, _ struct{}) bool {
				if !strings.HasPrefix(k, p) {
					return false
				}
				f()
				return true
			})
		},
	}, nil, nil
}

func artrieSet(c config) (set, func() error, error) {
	dir, remove, err := scratch(c)
	if err != nil {
		return set{}, nil, err
	}
	t, err := artrie.Open(dir, &artrie.Options{Durability: artrie.None, CheckpointBytes: -1})
	if err != nil {
		return set{}, nil, err
	}
	var failed error
	s := set{
		put: func(k string) {
			if _, err := t.Insert(k); err != nil {
				failed = err
			}
		},
		get: func(k string) bool { _, ok, _ := t.Get(k); return ok },
		walk: func(p string, f func()) {
			for range t.Prefix(p) {
				f()
			}
		},
	}
	return s, func() error {
		defer remove()
		if err := t.Close(); err != nil {
			return err
		}
		return failed
	}, nil
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// inMemory measures a set of c.Keys keys: bytes and nanoseconds. Each set is given keys of its
// own: whoever keeps them pays for them.
func inMemory(c config, open func(config) (set, func() error, error)) (figures, error) {
	keys := make([]string, c.Keys)
	for i := range keys {
		keys[i] = key(i)
	}
	s, end, err := open(c)
	if err != nil {
		return nil, err
	}
	before := heap()
	start := time.Now()
	for _, k := range keys {
		s.put(strings.Clone(k))
	}
	s.get("")
	f := figures{"insert": float64(time.Since(start).Nanoseconds()) / float64(c.Keys)}
	f["bytes"] = (heap() - before) / float64(c.Keys)
	debug.SetGCPercent(-1)
	look := func(n int) (float64, error) {
		start := time.Now()
		for i := range n {
			if !s.get(keys[mix(uint64(i))%uint64(len(keys))]) {
				return 0, fmt.Errorf("a key is missing")
			}
		}
		return float64(time.Since(start).Nanoseconds()) / float64(n), nil
	}
	if _, err := look(c.Keys / 4); err != nil {
		return nil, err
	}
	if f["hit"], err = look(c.Keys); err != nil {
		return nil, err
	}
	if s.walk != nil {
		n, scans := 0, 4000
		debug.SetGCPercent(400)
		start := time.Now()
		for i := range scans {
			s.walk(fmt.Sprintf("ngram-%04x", i*7919&0xffff), func() { n++ })
		}
		f["prefix"] = float64(time.Since(start).Nanoseconds()) / float64(scans)
		f["found"] = float64(n) / float64(scans)
		n = 0
		start = time.Now()
		s.walk("", func() { n++ })
		if f["walk"] = float64(time.Since(start).Nanoseconds()) / float64(n); n != c.Keys {
			return nil, fmt.Errorf("walked over %d keys of %d", n, c.Keys)
		}
	}
	if end != nil {
		err = end()
	}
	runtime.KeepAlive(keys)
	return f, err
}

// memorySection: a large set in memory.
func memorySection() section {
	on := func(name string, open func(config) (set, func() error, error)) arm {
		return arm{name: name, run: func(c config) (figures, error) { return inMemory(c, open) }}
	}
	return section{
		name: "memory",
		arms: []arm{on("artrie", artrieSet), on("map", mapSet), on("iradix", iradixSet), on("btree", btreeSet)},
		rows: func(r results) []row {
			return []row{
				atMost("bytes", 70, r.med("artrie", "bytes"), "bytes per key", "map %.1f, iradix %.1f, btree %.1f", r.med("map", "bytes"), r.med("iradix", "bytes"), r.med("btree", "bytes")),
				atMost("hit", 2.5, r.ratio("artrie", "map", "hit"), "hit against a map under an RWMutex", "%.0f ns, map %.0f", r.med("artrie", "hit"), r.med("map", "hit")),
				atMost("hit-iradix", 1, r.ratio("artrie", "iradix", "hit"), "hit against go-immutable-radix", "%.0f ns", r.med("iradix", "hit")),
				atMost("hit-btree", 1, r.ratio("artrie", "btree", "hit"), "hit against tidwall/btree", "%.0f ns", r.med("btree", "hit")),
				atMost("prefix", 1, r.ratio("artrie", "btree", "prefix"), "prefix scan against tidwall/btree", "%.1f keys: %.0f ns, btree %.0f, iradix %.0f",
					r.med("artrie", "found"), r.med("artrie", "prefix"), r.med("btree", "prefix"), r.med("iradix", "prefix")),
				info("walk", r.ratio("artrie", "btree", "walk"), "walk over everything against tidwall/btree", "%.0f ns per key, btree %.0f, iradix %.0f", r.med("artrie", "walk"), r.med("btree", "walk"), r.med("iradix", "walk")),
			}
		},
	}
}
