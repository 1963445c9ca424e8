package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
)

func opened(t testing.TB, dir string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, ObservationsFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAFollowerSeesWhatIsAppended(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	f, chain := Follow(w.run.Lock), opened(t, dir)
	var got []Record
	read := func() int {
		t.Helper()
		records, err := f.Read(chain)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, records...)
		return len(records)
	}
	if read() != 1 || read() != 0 {
		t.Fatalf("%d records of a run that has begun, want one, once", len(got))
	}
	for n := range 6 {
		addTrial(t, w, n, 3)
		if n%2 == 1 {
			mark(t, w, n/2, true)
		}
		if want := 1 + n%2; read() != want {
			t.Fatalf("after trial %d: %d records in all", n, len(got))
		}
	}
	// Half a line is none yet.
	whole := slurp(t, dir, ObservationsFile)
	addTrial(t, w, 6, 0)
	last := slurp(t, dir, ObservationsFile)[len(whole):]
	for cut := range len(last) {
		if b, err := f.lines(bytes.NewReader(append(bytes.Clone(whole), last[:cut]...))); err != nil || len(b) > 0 {
			t.Fatalf("%d of %d bytes: %d bytes, %v", cut, len(last), len(b), err)
		}
	}
	read()
	if !reflect.DeepEqual(got, w.run.Records) {
		t.Error("the follower saw other records than were written")
	}
}

func TestAFollowerTakesLongChainsInSteps(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	add(t, w, Record{Kind: KindNote, Note: &Note{Text: string(bytes.Repeat([]byte("n"), maxLine-1000))}})
	for n := 0; w.run.chainBytes < maxLine+3*followStep; n++ {
		addTrial(t, w, n, 0)
	}
	f, chain := Follow(w.run.Lock), opened(t, dir)
	seen, steps := 0, 0
	for ; seen < len(w.run.Records); steps++ {
		records, err := f.Read(chain)
		if err != nil || len(records) == 0 {
			t.Fatalf("after %d records: %d more, %v", seen, len(records), err)
		}
		seen += len(records)
	}
	if steps < 4 {
		t.Errorf("%d bytes in %d steps", w.run.chainBytes, steps)
	}
}

func TestAFollowerRefusesWhatDoesNotFollow(t *testing.T) {
	dir := t.TempDir()
	unfinished(t, dir)
	all := chainLines(t, dir)
	run := intact(t, dir)
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	for what, b := range map[string][]byte{
		"a line is gone":        join(all[0], all[2]),
		"a line stands twice":   join(all[0], all[1], all[1]),
		"two are exchanged":     join(all[0], all[2], all[1]),
		"no first line":         join(all[1:]...),
		"no line of a run":      []byte("{}\n"),
		"a byte was changed":    bytes.Replace(join(all...), []byte(`"ops":1`), []byte(`"ops":7`), 1),
		"a line without an end": bytes.Repeat([]byte("x"), maxLine+1),
	} {
		f := Follow(run.Lock)
		var err error
		for err == nil {
			var records []Record
			if records, err = f.Read(bytes.NewReader(b)); err == nil && len(records) == 0 {
				t.Fatalf("%s: read to the end", what)
			}
		}
	}
	// A resume that cut off what was read already.
	f := Follow(run.Lock)
	if _, err := f.Read(bytes.NewReader(join(all...))); err != nil {
		t.Fatal(err)
	}
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		addTrial(t, w, n, 0)
	}
	grown := slurp(t, dir, ObservationsFile)
	if _, err := f.Read(bytes.NewReader(append(join(all[:3]...), grown[len(join(all[:4]...)):]...))); err == nil {
		t.Error("a chain that was cut and grew again is taken for the same one")
	}
}

func TestBusyIsWhatOthersAreKeptOutBy(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	chain := opened(t, dir)
	if !Busy(chain) || !Busy(chain) {
		t.Error("nobody is said to write to a run under way")
	}
	closed(t, w)
	if Busy(chain) {
		t.Error("somebody is said to write to a run that was left")
	}
	// Whoever asks at the wrong moment does not keep a writer out.
	if err := syscall.Flock(int(chain.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	tries := 0
	err := flock(opened(t, dir), func() {
		if tries++; tries == lockTries-1 {
			if err := syscall.Flock(int(chain.Fd()), syscall.LOCK_UN); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || tries != lockTries-1 {
		t.Errorf("the lock was had after %d more tries: %v", tries, err)
	}
	if !Busy(chain) {
		t.Error("the lock is not held")
	}
}
