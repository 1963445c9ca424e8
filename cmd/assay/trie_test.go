package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assaylab/assay/artrie"
)

// trieStore makes the folder of a trie: 40 keys and an odd one in a checkpoint, and four
// operations in the log after it. With hold it stays open until the script ends.
//
//	trie DIR [hold]
func trieStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: trie DIR [hold]")
	}
	s, err := artrie.Open(ts.MkAbs(args[0]), &artrie.Options{SegmentBytes: 4096})
	ts.Check(err)
	for i := range 40 {
		ts.Check(s.Put(fmt.Sprintf("key-%02d", i), fmt.Append(nil, "value ", i)))
	}
	ts.Check(s.Put("odd-\xff", []byte{0xfe, 1}))
	_, err = s.Checkpoint()
	ts.Check(err)
	for i := range 3 {
		ts.Check(s.Put(fmt.Sprintf("late-%d", i), []byte("语<&>")))
	}
	_, err = s.Delete("key-39")
	ts.Check(err)
	if len(args) == 2 {
		ts.Defer(func() { ts.Check(s.Close()) })
		return
	}
	ts.Check(s.Close())
}

// damage flips a bit of the last file that matches the pattern; a negative offset counts
// from the end of what is not zero.
//
//	damage PATTERN OFFSET
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage PATTERN OFFSET")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	name := files[len(files)-1]
	b, err := os.ReadFile(name)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(strings.TrimRight(string(b), "\x00"))
	}
	b[at] ^= 1
	ts.Check(os.WriteFile(name, b, 0o644))
}
