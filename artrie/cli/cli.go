// Package cli has the verbs that look at the folder of a trie: check, dump,
// salvage. It parses, calls artrie and prints; it must never know a
// format, nor any other store.
package cli

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assaylab/assay/artrie"
)

// Error is a failure with the exit status that it asks for.
type Error struct {
	Err    error
	Status int // 2: the command line or the folder's state; 5: damage
}

func (e *Error) Error() string   { return e.Err.Error() }
func (e *Error) Unwrap() error   { return e.Err }
func (e *Error) ExitStatus() int { return e.Status }

const statusUsage, statusDamage = 2, 5

// Command is the verb trie with its own verbs.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: "trie", Short: "Look at the folder of a trie: check, dump, salvage",
		Long: `Look at the folder of a trie. None of the verbs changes it, and none works on a
folder that a process has open.

Exit status: 0 sound, 2 usage or folder in use, 5 damage.`,
	}
	c.AddCommand(check(), dump(), salvage())
	return c
}

func check() *cobra.Command {
	return &cobra.Command{
		Use: "check DIR", Short: "Verify every checksum, the order of the keys and the counts", Args: cobra.ExactArgs(1),
		Long: `Verify every checksum of the newest checkpoint and of the log, the structure of
the tree and the counts. Damage is named with its file, its offset and what is
lost, and the exit status is 5. A checkpoint that cannot be read while another one
and the log have everything is damage that has lost nothing.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := store(args[0]); err != nil {
				return err
			}
			rep, err := artrie.Check(args[0], nil)
			if err != nil {
				return classed(err, "salvage DIR NEW writes what can be read")
			}
			where := "all in the log"
			switch {
			case rep.Checkpoint > 0:
				where = fmt.Sprintf("%d of them in checkpoint %d", rep.Covered, rep.Checkpoint)
			case rep.PassedOver == nil:
				where += ": there is no checkpoint yet"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d keys, %d operations, %s\n", args[0], rep.Keys, rep.LastLSN, where)
			if rep.PassedOver != nil {
				return &Error{fmt.Errorf("%s: another checkpoint cannot be read: %w\nNo key is lost: the log has what it had. Later checkpoints take its place", args[0], rep.PassedOver), statusDamage}
			}
			return nil
		},
	}
}

// entry is a line of a dump.
type entry struct {
	Key           string `json:"key"`
	KeyEncoding   string `json:"key_encoding,omitempty"`
	Value         string `json:"value"`
	ValueEncoding string `json:"value_encoding,omitempty"`
}

// text is b itself if it is UTF-8, else its base64 and the word for it.
func text(b []byte) (s, encoding string) {
	if utf8.Valid(b) {
		return string(b), ""
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

func dump() *cobra.Command {
	var prefix string
	var limit int64
	c := &cobra.Command{
		Use: "dump DIR", Short: "Print keys and values in order, one JSON object a line", Args: cobra.ExactArgs(1),
		Long: `Print keys and values in order of bytes, one JSON object a line:
{"key":"…","value":"…"}. What is not UTF-8 is in base64, and "key_encoding" or
"value_encoding" says so. At damage it stops after what came before, with exit
status 5.`,
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return &Error{errors.New("--limit must not be negative"), statusUsage}
			}
			if err := store(args[0]); err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			out := json.NewEncoder(w)
			out.SetEscapeHTML(false)
			var failed error
			n := int64(0)
			err := artrie.Dump(args[0], prefix, nil, func(k, v []byte) bool {
				var e entry
				e.Key, e.KeyEncoding = text(k)
				e.Value, e.ValueEncoding = text(v)
				failed = out.Encode(e)
				n++
				return failed == nil && (limit == 0 || n < limit)
			})
			if err := errors.Join(failed, w.Flush()); err != nil {
				return err
			}
			return classed(err, "salvage DIR NEW writes what can be read")
		},
	}
	c.Flags().StringVar(&prefix, "prefix", "", "only keys that begin so")
	c.Flags().Int64Var(&limit, "limit", 0, "so many lines at most; 0: all")
	return c
}

func salvage() *cobra.Command {
	return &cobra.Command{
		Use: "salvage DIR NEW", Short: "Write what can be read to a new folder", Args: cobra.ExactArgs(2),
		Long: `Write what can be read to the new folder NEW, which must not exist, and leave DIR
as it is. What could not be read is named, and the exit status is then 5; the
new folder is sound all the same. Behind a hole in the log a key has the last
value that can be read, which may be older than the last one acknowledged.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := store(args[0]); err != nil {
				return err
			}
			if _, err := os.Lstat(args[1]); !errors.Is(err, iofs.ErrNotExist) {
				return &Error{fmt.Errorf("%s exists; salvage writes to a new folder only", args[1]), statusUsage}
			}
			rep, err := artrie.Salvage(args[0], args[1], nil)
			if err != nil {
				return classed(fmt.Errorf("%w\n%s is not complete", err, args[1]), "")
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d keys saved\n", args[1], rep.Keys)
			if len(rep.Lost) > 0 {
				return &Error{fmt.Errorf("%s could not be read whole:\n%w", args[0], errors.Join(rep.Lost...)), statusDamage}
			}
			return nil
		},
	}
}

// store says whether dir looks like the folder of a trie, so that no lock file
// is left in some other folder.
func store(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &Error{fmt.Errorf("there is no folder to read: %w", err), statusUsage}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "log-") || strings.HasPrefix(e.Name(), "checkpoint-") || strings.HasPrefix(e.Name(), "nodes-") {
			return nil
		}
	}
	return &Error{fmt.Errorf("%s is not the folder of a trie: it has neither log nor checkpoint", dir), statusUsage}
}

// classed gives an error of artrie its exit status.
func classed(err error, advice string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, artrie.ErrDamaged):
		if advice != "" {
			err = fmt.Errorf("%w\n%s", err, advice)
		}
		return &Error{err, statusDamage}
	case errors.Is(err, artrie.ErrVersion):
		return &Error{err, statusUsage}
	case errors.Is(err, artrie.ErrLocked):
		return &Error{fmt.Errorf("%w\nEnd the process that has the folder open, or work on a copy of the folder", err), statusUsage}
	}
	return err
}
