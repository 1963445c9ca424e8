package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var everyFile = []string{LockFile, EnvironmentFile, ObservationsFile, SamplesFile, ResultsFile, VerdictFile, SealFile}

// damaged changes one file, verifies and puts the file back. Everything that
// is found must be about that file, and the first thing about the line wanted;
// 0 is any.
func damaged(t *testing.T, dir, file string, now []byte, line int, what string) {
	t.Helper()
	was := slurp(t, dir, file)
	if bytes.Equal(was, now) {
		t.Fatalf("%s: nothing was changed", what)
	}
	spit(t, dir, file, now)
	defer spit(t, dir, file, was)
	found(t, dir, file, line, what)
}

// flipped is damaged for one byte, in place.
func flipped(t *testing.T, dir, file string, at int, now byte, line int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	was := []byte{0}
	put := func(b []byte) {
		if _, err := f.WriteAt(b, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.ReadAt(was, int64(at)); err != nil {
		t.Fatal(err)
	}
	put([]byte{now})
	found(t, dir, file, line, fmt.Sprintf("%s byte %d, %q to %q", file, at, was[0], now))
	put(was)
}

func found(t *testing.T, dir, file string, line int, what string) {
	t.Helper()
	_, problems, err := Verify(dir)
	if err != nil {
		t.Errorf("%s: Verify cannot judge: %v", what, err)
		return
	}
	if len(problems) == 0 {
		t.Errorf("%s: not found", what)
		return
	}
	for _, p := range problems {
		if p.File != file {
			t.Errorf("%s: blames %q", what, p)
		}
	}
	if line > 0 && problems[0].Line != line {
		t.Errorf("%s: should be line %d: %q", what, line, problems)
	}
}

// refused says that nothing can be done with a damaged run.
func refused(t *testing.T, dir, what string) {
	t.Helper()
	var bad *IntegrityError
	if _, err := Open(dir); !errors.As(err, &bad) {
		t.Errorf("%s: opened for analysis: %v", what, err)
	}
	if _, err := Resume(dir, "test", begin); !errors.As(err, &bad) {
		t.Errorf("%s: resumed: %v", what, err)
	}
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	rng := seeded(t)
	for _, name := range everyFile {
		b := slurp(t, dir, name)
		positions := rng.Perm(len(b))
		switch {
		case long():
		case underRace:
			positions = positions[:min(150, len(b))]
		case name == ObservationsFile:
			positions = positions[:500]
		}
		if name == ObservationsFile {
			// The ends of lines are the places where the most can go wrong.
			for i, c := range b {
				if c == '\n' {
					positions = append(positions, i)
				}
			}
		}
		for _, at := range positions {
			now := b[at] ^ byte(1+rng.IntN(255))
			line := 0
			if name == ObservationsFile {
				line = 1 + bytes.Count(b[:at], []byte("\n"))
			}
			flipped(t, dir, name, at, now, line)
		}
	}
	intact(t, dir)
}

// A letter in the other case is the flip that JSON decoders forgive.
func TestEveryLetterInTheOtherCaseIsFound(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	for _, name := range []string{LockFile, EnvironmentFile, SealFile} {
		b := slurp(t, dir, name)
		for at, c := range b {
			if c|0x20 < 'a' || c|0x20 > 'z' || underRace && at%5 > 0 {
				continue
			}
			flipped(t, dir, name, at, c^0x20, 0)
		}
	}
}

func TestEveryMisplacedLineIsFound(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	all := chainLines(t, dir)
	n := len(all)
	join := func(parts ...[][]byte) []byte { return bytes.Join(slices.Concat(parts...), nil) }
	for i := range n {
		damaged(t, dir, ObservationsFile, join(all[:i], all[i+1:]), i+1, fmt.Sprintf("line %d removed", i+1))
		damaged(t, dir, ObservationsFile, join(all[:i+1], all[i:]), i+2, fmt.Sprintf("line %d repeated", i+1))
		damaged(t, dir, ObservationsFile, join(all, all[i:i+1]), n+1, fmt.Sprintf("line %d repeated at the end", i+1))
		for _, j := range []int{i + 1, n - 1, (i + n) / 2} {
			if j <= i || j >= n {
				continue
			}
			swapped := slices.Clone(all)
			swapped[i], swapped[j] = all[j], all[i]
			damaged(t, dir, ObservationsFile, join(swapped), i+1, fmt.Sprintf("lines %d and %d swapped", i+1, j+1))
		}
		damaged(t, dir, ObservationsFile, join(all[:i], [][]byte{[]byte("{}\n")}, all[i:]), i+1, fmt.Sprintf("a line put before line %d", i+1))
		damaged(t, dir, ObservationsFile, join(all[:i], [][]byte{{'\n'}}, all[i:]), i+1, fmt.Sprintf("an empty line put before line %d", i+1))
	}
	damaged(t, dir, ObservationsFile, join(all, [][]byte{[]byte("garbage")}), n+1, "garbage after the end")
	damaged(t, dir, ObservationsFile, join(all, [][]byte{[]byte("garbage\n")}), n+1, "a line of garbage after the end")
	intact(t, dir)
}

// Whoever changes a line may also correct its own hash; then the next line
// tells.
func TestALineWithItsHashCorrectedIsFoundByTheNext(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	all := chainLines(t, dir)
	for i, line := range all {
		changed := bytes.Replace(line, []byte(`"kind":"`), []byte(`"kind":"x`), 1)
		tail := len(sumStart) + hashLen + len(sumEnd) + 1
		body := changed[:len(changed)-tail]
		sum := sha256.Sum256(body)
		changed = fmt.Appendf(bytes.Clone(body), "%s%s%s\n", sumStart, hex.EncodeToString(sum[:]), sumEnd)
		now := slices.Clone(all)
		now[i] = changed
		damaged(t, dir, ObservationsFile, bytes.Join(now, nil), i+2, fmt.Sprintf("line %d changed and its hash corrected", i+1))
	}
}

func TestEveryCutIsFound(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	rng := seeded(t)
	for _, name := range everyFile {
		b := slurp(t, dir, name)
		for i := range 40 {
			cut := rng.IntN(len(b))
			if i == 0 {
				cut = 0
			}
			line := 0
			if name == ObservationsFile {
				line = 1 + bytes.Count(b[:cut], []byte("\n"))
			}
			damaged(t, dir, name, b[:cut], line, fmt.Sprintf("%s cut at byte %d of %d", name, cut, len(b)))
			if i == 0 {
				spit(t, dir, name, nil)
				refused(t, dir, name+" emptied")
				spit(t, dir, name, b)
			}
			damaged(t, dir, name, append(bytes.Clone(b), b[cut:]...), 0, fmt.Sprintf("%s with its bytes from %d on appended", name, cut))
		}
		damaged(t, dir, name, append(bytes.Clone(b), 0), 0, name+" with a zero byte appended")
		damaged(t, dir, name, append(bytes.Clone(b), '\n'), 0, name+" with a newline appended")
	}
	intact(t, dir)
}

func TestEveryDeletedFileIsFound(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	for _, name := range everyFile {
		b := slurp(t, dir, name)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		found(t, dir, name, 0, name+" deleted")
		refused(t, dir, name+" deleted")
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, problems, err := Verify(dir); err == nil && len(problems) == 0 {
			t.Errorf("%s: a folder in its place was not found", name)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		spit(t, dir, name, b)
	}
	if err := os.Remove(filepath.Join(dir, ReportFile)); err != nil {
		t.Fatal(err)
	}
	if run := intact(t, dir); !run.Sealed {
		t.Error("a page that can be made again was missed")
	}
}

// Files of another run fit each other, but not this one.
func TestFilesOfAnotherRunAreFound(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	finished(t, dir)
	lock, p := frozen(t, strings.Replace(asked, "seed: 7", "seed: 8", 1))
	w, err := Create(other, lock, p, machine, begin)
	if err != nil {
		t.Fatal(err)
	}
	addTrial(t, w, 0, 5)
	add(t, w, Record{Kind: KindEnd, End: &End{}})
	closed(t, w)
	if err := w.Run().Finish([]byte("{}\n"), []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	for _, name := range everyFile {
		if name == EnvironmentFile {
			continue // the same machine
		}
		was := slurp(t, dir, name)
		spit(t, dir, name, slurp(t, other, name))
		_, problems, err := Verify(dir)
		if err != nil || len(problems) == 0 {
			t.Errorf("%s of another run was not found: %v", name, err)
		}
		spit(t, dir, name, was)
	}
	intact(t, dir)
}
