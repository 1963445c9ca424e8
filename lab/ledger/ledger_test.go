package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
)

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "first")
	w := create(t, dir)
	want := []Record{
		{Kind: KindTrial, Trial: observed(trial.Slot{Cell: "all", Arm: "control", Seed: 1<<64 - 1}, 3, 4)},
		{Kind: KindTrial, Trial: observed(trial.Slot{Cell: "all", Arm: "treatment", Slot: 1, Warmup: true}, 4, 0)},
		{Kind: KindCheck, Check: &Judgement{Scope: "cell", Cell: "all", Result: check.Result{Name: "a", Verdict: check.Fail, Message: "\"<&>\u2028\x00", Examples: []string{"x\ny"}}}},
		{Kind: KindNote, Note: &Note{Time: begin, Text: "half way", Exploratory: true}},
	}
	for _, rec := range want {
		add(t, w, rec)
	}
	mark(t, w, 0, true)
	closed(t, w)

	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	end := Record{Kind: KindEnd, End: &End{Time: begin}}
	add(t, w, end)
	closed(t, w)
	run := intact(t, dir)
	if !run.Ended() || run.Sealed || run.Begin().Lock != run.Lock.Digest || run.Protocol.Name != "ledger-test" {
		t.Errorf("read back %+v", run.Begin())
	}
	if env, err := run.Environment(); err != nil || env.Kernel != machine.Kernel || env.CPUs != machine.CPUs {
		t.Errorf("environment is %+v, %v", env, err)
	}
	kinds := []Kind{KindBegin, KindTrial, KindTrial, KindCheck, KindNote, KindRound, KindResume, KindEnd}
	for i, rec := range run.Records {
		if rec.Kind != kinds[i] {
			t.Errorf("record %d is %s, not %s", i, rec.Kind, kinds[i])
		}
	}
	for i, rec := range want {
		if got := run.Records[1+i]; !reflect.DeepEqual(got, rec) {
			t.Errorf("record %d is %+v, not %+v", 1+i, got, rec)
		}
	}
	for _, ref := range run.Records[1].Trial.Samples {
		s, err := run.Samples(ref)
		if err != nil || len(s) != 4 || ref.Name == "latency" && s[0] != 3000 {
			t.Errorf("samples %s are %v, %v", ref.Name, s, err)
		}
	}
	if !reflect.DeepEqual(run.Records, w.Run().Records) {
		t.Error("the writer remembers other records than it wrote")
	}
}

// Stop and go at any place, as often as you like: the records are the same.
func TestStoppingChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "run")
		if err != nil {
			rt.Fatal(err)
		}
		w := create(t, dir)
		var want []*trial.Observation
		n := rapid.IntRange(1, 12).Draw(rt, "trials")
		for i := range n {
			samples := rapid.IntRange(0, 3).Draw(rt, "samples")
			addTrial(t, w, i, samples)
			want = append(want, w.run.Records[len(w.run.Records)-1].Trial)
			if i%2 == 1 {
				mark(t, w, i/2, rapid.Bool().Draw(rt, "sync"))
			}
			switch rapid.IntRange(0, 3).Draw(rt, "stop") {
			case 0:
				closed(t, w)
			case 1:
				// A kill: nothing is closed, and half a line may be left.
				w.chain.Close()
				w.samples.Close()
				junk := rapid.SliceOfN(rapid.ByteRange(' ', '~'), 0, 50).Draw(rt, "junk")
				appendTo(t, dir, ObservationsFile, junk)
				appendTo(t, dir, SamplesFile, junk)
			default:
				continue
			}
			if w, err = Resume(dir, "test", begin); err != nil {
				rt.Fatal(err)
			}
		}
		add(t, w, Record{Kind: KindEnd, End: &End{}})
		closed(t, w)
		var got []*trial.Observation
		run := intact(t, dir)
		for _, rec := range run.Records {
			if rec.Trial == nil {
				continue
			}
			got = append(got, rec.Trial)
			for _, ref := range rec.Trial.Samples {
				if _, err := run.Samples(ref); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("wrote %d trials, read %d others", len(want), len(got))
		}
	})
}

func appendTo(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCreateRefusesAFolderThatIsNotItsOwn(t *testing.T) {
	lock, p := frozen(t, asked)
	refused := func(what, dir string) {
		t.Helper()
		before, _ := os.ReadDir(dir)
		w, err := Create(dir, lock, p, machine, begin)
		if err == nil {
			closed(t, w)
			t.Fatalf("%s: taken", what)
		}
		after, _ := os.ReadDir(dir)
		if len(before) != len(after) {
			t.Errorf("%s: refused, and left something behind", what)
		}
	}
	theirs := t.TempDir()
	spit(t, theirs, "thesis.tex", []byte("1"))
	refused("a user's folder", theirs)

	hidden := t.TempDir()
	spit(t, hidden, ".profile", []byte("1"))
	refused("a folder with a hidden file", hidden)

	run := t.TempDir()
	w := create(t, run)
	refused("a run under way", run)
	closed(t, w)
	before := slurp(t, run, ObservationsFile)
	refused("a run", run)
	if string(before) != string(slurp(t, run, ObservationsFile)) {
		t.Error("a refused Create changed the run")
	}

	lost := t.TempDir()
	spit(t, lost, SamplesFile, []byte("12345678"))
	refused("samples without a chain", lost)

	file := filepath.Join(t.TempDir(), "file")
	spit(t, filepath.Dir(file), "file", nil)
	refused("a file", file)
	refused("a folder below a file", filepath.Join(file, "run"))
}

// Whatever a Create has left that was cut off before its first record, another
// one can begin there.
func TestCreateTakesTheRemainsOfOne(t *testing.T) {
	whole := t.TempDir()
	closed(t, create(t, whole))
	first := slurp(t, whole, ObservationsFile)
	for _, c := range []struct {
		what string
		make func(dir string)
	}{
		{"nothing", func(string) {}},
		{"the temporary file of the lock", func(dir string) { spit(t, dir, ".lock.json-123", []byte("{")) }},
		{"the lock", func(dir string) { spit(t, dir, LockFile, []byte("{}")) }},
		{"an empty chain", func(dir string) { spit(t, dir, ObservationsFile, nil); spit(t, dir, SamplesFile, nil) }},
		{"half a record", func(dir string) {
			spit(t, dir, ObservationsFile, first[:len(first)/2])
			spit(t, dir, SamplesFile, nil)
			spit(t, dir, EnvironmentFile, []byte("{}"))
		}},
		{"all but the newline", func(dir string) { spit(t, dir, ObservationsFile, first[:len(first)-1]) }},
	} {
		dir := t.TempDir()
		c.make(dir)
		if _, _, err := Verify(dir); !errors.Is(err, ErrNotRun) {
			t.Errorf("%s: is taken for a run: %v", c.what, err)
		}
		if _, err := Resume(dir, "test", begin); !errors.Is(err, ErrNotRun) {
			t.Errorf("%s: resumed: %v", c.what, err)
		}
		w := create(t, dir)
		addTrial(t, w, 0, 2)
		closed(t, w)
		if got := intact(t, dir); len(got.Records) != 2 {
			t.Errorf("%s: %d records", c.what, len(got.Records))
		}
	}
}

func TestAClaimKeepsOthersOutAndLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	c, err := NewClaim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClaim(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a claim that was given up left %s: %v", dir, err)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	addTrial(t, w, 0, 2)
	size := len(slurp(t, dir, ObservationsFile))
	if _, err := Resume(dir, "test", begin); !errors.Is(err, ErrBusy) {
		t.Errorf("resumed while it runs: %v", err)
	}
	if now := len(slurp(t, dir, ObservationsFile)); now != size {
		t.Errorf("the refused Resume changed the chain from %d to %d bytes", size, now)
	}
	addTrial(t, w, 1, 2)
	closed(t, w)
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	intact(t, dir)
}

func TestWhatIsNoRunIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	spit(t, filepath.Dir(file), "file", []byte("x"))
	for what, dir := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "none"), "a file": file, "empty": t.TempDir(),
	} {
		_, err := Open(dir)
		if !errors.Is(err, ErrNotRun) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := Resume(dir, "test", begin); !errors.Is(err, ErrNotRun) {
			t.Errorf("%s: resumed: %v", what, err)
		}
	}
}

func TestANewerFormatIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	closed(t, w)
	line, _, err := encodeLine(w.run.Lock.Digest, 0, &Record{Kind: KindBegin, Begin: &Begin{Schema: SchemaVersion + 1, Lock: w.run.Lock.Digest, Environment: w.run.Begin().Environment}})
	if err != nil {
		t.Fatal(err)
	}
	spit(t, dir, ObservationsFile, line)
	for _, err := range []error{
		func() error { _, err := Open(dir); return err }(),
		func() error { _, _, err := Verify(dir); return err }(),
		func() error { _, err := Resume(dir, "test", begin); return err }(),
	} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "format 2") {
			t.Errorf("%v", err)
		}
	}
	if string(slurp(t, dir, ObservationsFile)) != string(line) {
		t.Error("the newer run was changed")
	}
}

func TestARecordThatCannotBeReadBackIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	addTrial(t, w, 0, 2)
	o := observed(trial.Slot{Cell: "all", Arm: "treatment"}, 1, 2)
	o.Stderr = strings.Repeat("x", maxLine)
	if err := w.Append(Record{Kind: KindTrial, Trial: o}); err == nil {
		t.Fatal("a record beyond what can be read was written")
	}
	if err := w.Append(Record{Kind: KindNote, Note: &Note{}}); err == nil {
		t.Error("the writer went on after an error")
	}
	if err := w.Close(); err == nil {
		t.Error("closing hid the error")
	}
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	addTrial(t, w, 1, 2)
	closed(t, w)
	if run := intact(t, dir); len(run.Records) != 4 {
		t.Errorf("%d records", len(run.Records))
	}
}

// The longest record that is written must also be read.
func TestTheLongestRecordIsReadBack(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	o := observed(trial.Slot{Cell: "all", Arm: "treatment"}, 1, 0)
	line, _, err := encodeLine(w.run.head, 1, &Record{Kind: KindTrial, Trial: o})
	if err != nil {
		t.Fatal(err)
	}
	o.Stderr = strings.Repeat("x", maxLine-len(line)-len(`,"stderr":""`))
	add(t, w, Record{Kind: KindTrial, Trial: o})
	closed(t, w)
	if n := len(chainLines(t, dir)[1]); n != maxLine {
		t.Errorf("the record has %d bytes, not %d", n, maxLine)
	}
	intact(t, dir)
}

func TestMarksVouchForWhatIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	w.lastSync = time.Now().Add(time.Hour)
	addTrial(t, w, 0, 1)
	mark(t, w, 0, false)
	addTrial(t, w, 1, 1)
	mark(t, w, 1, true)
	w.lastSync = time.Now().Add(time.Hour)
	mark(t, w, 2, false)
	closed(t, w)
	var got []int
	for _, rec := range intact(t, dir).Records {
		if rec.Round != nil {
			got = append(got, rec.Round.Durable)
		}
	}
	if !reflect.DeepEqual(got, []int{1, 4, 4}) {
		t.Errorf("the marks vouch for %v", got)
	}
}
