// Command words counts the words of its input in a trie on disk, and prints those
// that begin with a prefix:
//
//	go run ./examples/words DIR a < README.md
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"

	"github.com/assaylab/assay/artrie"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: words DIR PREFIX")
		os.Exit(2)
	}
	if err := count(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func count(dir, prefix string) (err error) {
	t, err := artrie.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() {
		if closed := t.Close(); err == nil {
			err = closed
		}
	}()
	words := bufio.NewScanner(os.Stdin)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		n := 0
		old, known, err := t.Get(words.Text())
		if err == nil && known {
			n, err = strconv.Atoi(string(old))
		}
		if err == nil {
			err = t.Put(words.Text(), strconv.AppendInt(nil, int64(n+1), 10))
		}
		if err != nil {
			return err
		}
	}
	for k, v := range t.Prefix(prefix) {
		fmt.Printf("%6s %s\n", v, k)
	}
	return words.Err()
}
