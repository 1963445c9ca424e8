// Package artrie is a durable ordered dictionary: string keys, byte values,
// prefix scans, edit-distance search, snapshots. It is an adaptive radix tree in
// memory with a log and checkpoints on disk; one folder, one process.
//
//	t, err := artrie.Open(dir, nil)
//	added, err := t.Insert("ngram-語")
//	for k, v := range t.Prefix("ngram-") { … }
//
// It knows modes, commits, checkpoints and eviction; it must never know how a byte lies
// in memory or on disk, nor what a key means.
//
// A write that has returned is as durable as Options.Durability says, and it was
// not visible before. Iteration is ordered by bytes, which for UTF-8 is the order
// of code points.
//
// # Reading the source
//
// Start with docs/artrie.md, which argues every protocol. Then: trie.go opens
// and closes; commit.go is the way of a write; read.go the way of a read;
// checkpoint.go and evict.go move the tree to disk and back. The nodes are in
// internal/radix, the log in internal/wal, the files of the tree in internal/image.
//
// A program whose readers never block should run with GOMAXPROCS above the
// number of readers. If goroutines queue for processors while writes wait for their
// syncs, Get gives way: on average every 64th call rests for 50 µs. An iteration does so between keys.
package artrie
