package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// childVar makes the test binary a child that does one thing to a folder.
const childVar = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	var dir string
	var limit uint64
	switch what := os.Getenv(childVar); {
	case what == "":
		os.Exit(inMemory(m.Run))
	case strings.HasPrefix(what, "fill"):
		if _, err := fmt.Sscanf(what, "fill %d %s", &limit, &dir); err != nil {
			panic(err)
		}
		fill(dir, limit)
	case strings.HasPrefix(what, "nobody"):
		if _, err := fmt.Sscanf(what, "nobody %s", &dir); err != nil {
			panic(err)
		}
		nobody(dir)
	}
}

// disk is where temporary files are without inMemory.
var disk = os.TempDir()

// inMemory runs the tests with their temporary files in memory: what is tested
// here does not depend on a disk, but waits for it thousands of times. The long
// forms use the disk.
func inMemory(run func() int) int {
	if long() {
		return run()
	}
	dir, err := os.MkdirTemp("/dev/shm", "ledger-test-")
	if err != nil {
		return run()
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return run()
}

func child(t *testing.T, what string, args ...any) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	// The race detector would make every child wait a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", childVar+"="+fmt.Sprintf(what, args...))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	return string(out)
}

// fill writes a run until it cannot, and says how many trials it was promised.
// limit is the greatest size of a file, 0 for that of the disk.
func fill(dir string, limit uint64) {
	if limit > 0 {
		// Past the limit the kernel sends a signal, and fails the write only
		// where that is ignored.
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	t := &testing.T{}
	lock, p := frozen(t, asked)
	w, err := Create(dir, lock, p, machine, begin)
	if err != nil {
		fmt.Println("trials 0")
		fmt.Println("error", advised(err))
		return
	}
	for n := 0; ; n++ {
		o := observed(trial.Slot{Cell: "all", Round: n / 2, Arm: "control"}, n, n%40)
		err := w.Append(Record{Kind: KindTrial, Trial: o})
		if err == nil && n%2 == 1 {
			n++ // the trial is written
			err = w.EndRound(RoundMark{Cell: "all", Round: n / 2}, true)
			n--
			if err != nil {
				n++
			}
		}
		if err != nil {
			fmt.Println("trials", n)
			fmt.Println("error", strings.ReplaceAll(advised(err), "\n", " "))
			if again := w.Append(Record{Kind: KindNote, Note: &Note{}}); again == nil {
				fmt.Println("error: the writer went on")
			}
			_ = w.Close()
			return
		}
	}
}

// advised is an error as a program shows it.
func advised(err error) string {
	var remedy *protocol.RemedyError
	if errors.As(err, &remedy) {
		return err.Error() + "; " + remedy.Advice("assay")
	}
	return err.Error()
}

// filled checks what fill left: everything that was promised is there, and the
// run goes on once there is room.
func filled(t *testing.T, dir, said, want string) {
	t.Helper()
	var trials int
	sc := bufio.NewScanner(strings.NewReader(said))
	message := ""
	for sc.Scan() {
		if n, err := fmt.Sscanf(sc.Text(), "trials %d", &trials); n == 1 && err == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(sc.Text(), "error "); ok {
			message = rest
		} else {
			t.Errorf("child said %q", sc.Text())
		}
	}
	if !strings.Contains(message, want) {
		t.Errorf("the error is %q; it should say %q", message, want)
	}
	if !Exists(dir) {
		if trials > 0 {
			t.Fatalf("%d trials were promised and there is no run", trials)
		}
		closed(t, create(t, dir))
		intact(t, dir)
		return
	}
	if !strings.Contains(message, "assay resume "+dir) {
		t.Errorf("the error does not say how to go on: %q", message)
	}
	got := 0
	for _, rec := range intact(t, dir).Records {
		if rec.Trial != nil {
			got++
		}
	}
	if got != trials {
		t.Errorf("%d trials were promised, %d are there", trials, got)
	}
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	addTrial(t, w, trials, 3)
	add(t, w, Record{Kind: KindEnd, End: &End{}})
	closed(t, w)
	intact(t, dir)
}

func TestAWriteThatFailsLosesNothing(t *testing.T) {
	rng := seeded(t)
	limits := []int{100, 3000, 4096}
	for range 12 {
		limits = append(limits, 2500+rng.IntN(12000))
	}
	for _, limit := range limits {
		dir := filepath.Join(t.TempDir(), "run")
		said := child(t, "fill %d %s", limit, dir)
		t.Logf("limit %d: %s", limit, strings.ReplaceAll(said, "\n", "; "))
		filled(t, dir, said, "file too large")
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	for _, size := range []string{"20k", "48k", "100k"} {
		disk := t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size="+size); err != nil {
			t.Skip("cannot mount a small disk: ", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(disk, 0); err != nil {
				t.Error(err)
			}
		})
		dir := filepath.Join(disk, "run")
		said := child(t, "fill 0 %s", dir)
		t.Logf("size %s: %s", size, strings.ReplaceAll(said, "\n", "; "))
		if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=10m"); err != nil {
			t.Fatal(err)
		}
		filled(t, dir, said, "no space left on device")
	}
}

// nobody looks at a folder without the right to.
func nobody(dir string) {
	if err := syscall.Setuid(65534); err != nil {
		panic(err)
	}
	_, err := Open(dir)
	fmt.Println("open:", err, errors.Is(err, ErrNotRun))
	_, err = Resume(dir, "test", begin)
	fmt.Println("resume:", err, errors.Is(err, ErrNotRun))
	lock, p := frozen(&testing.T{}, asked)
	_, err = Create(filepath.Join(dir, "below"), lock, p, machine, begin)
	fmt.Println("create:", err, errors.Is(err, ErrNotRun))
}

func TestWhatMayNotBeReadIsNotCalledMissing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir, err := os.MkdirTemp(disk, "ledger-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	closed(t, create(t, dir))
	if err := os.Chmod(filepath.Join(dir, ObservationsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	shut := filepath.Join(dir, "shut")
	closed(t, create(t, filepath.Join(shut, "run")))
	if err := os.Chmod(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	said := child(t, "nobody %s", dir) + child(t, "nobody %s", filepath.Join(shut, "run"))
	for line := range strings.Lines(said) {
		if !strings.Contains(line, "permission denied") || !strings.Contains(line, dir) || !strings.HasSuffix(line, "false\n") {
			t.Errorf("said %q", line)
		}
	}
}

// unfinished makes a run of three trials with two marks; the trial after them
// has no mark.
func unfinished(t *testing.T, dir string) {
	t.Helper()
	w := create(t, dir)
	for n := range 4 {
		addTrial(t, w, n, 6)
		if n%2 == 1 {
			mark(t, w, n/2, true)
		}
	}
	addTrial(t, w, 4, 6)
	closed(t, w)
}

func TestATornLineIsDroppedAndNoted(t *testing.T) {
	made := t.TempDir()
	unfinished(t, made)
	chain, samples := slurp(t, made, ObservationsFile), slurp(t, made, SamplesFile)
	all := chainLines(t, made)
	last := all[len(all)-1]
	whole := len(chain) - len(last)
	dir := t.TempDir()
	for _, name := range []string{LockFile, EnvironmentFile} {
		spit(t, dir, name, slurp(t, made, name))
	}
	for cut := whole; cut < len(chain); cut += 7 {
		spit(t, dir, ObservationsFile, chain[:cut])
		spit(t, dir, SamplesFile, samples)
		torn := cut - whole
		if run := intact(t, dir); len(run.Records) != len(all)-1 {
			t.Fatalf("%d bytes torn: %d records", torn, len(run.Records))
		}
		w, err := Resume(dir, "test", begin)
		if err != nil {
			t.Fatal(err)
		}
		addTrial(t, w, 4, 6)
		closed(t, w)
		run := intact(t, dir)
		if got := run.Records[len(all)-1].Resume; got == nil || got.Dropped != int64(torn) {
			t.Errorf("%d bytes torn, noted %+v", torn, got)
		}
		if len(run.Records) != len(all)+1 {
			t.Errorf("%d bytes torn: %d records in the end", torn, len(run.Records))
		}
		if now := slurp(t, dir, SamplesFile); !bytes.Equal(now, samples) {
			t.Errorf("%d bytes torn: the samples of the dropped record are still there: %d bytes, not %d", torn, len(now), len(samples))
		}
	}
}

func TestAllElseInAnUnfinishedRunIsDamage(t *testing.T) {
	dir := t.TempDir()
	unfinished(t, dir)
	all := chainLines(t, dir)
	n := len(all)
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	rng := seeded(t)
	b := slurp(t, dir, ObservationsFile)
	for range 100 {
		// The newline of the last line is all that makes it whole.
		at := rng.IntN(len(b) - 1)
		flipped(t, dir, ObservationsFile, at, b[at]^byte(1+rng.IntN(255)), 1+bytes.Count(b[:at], []byte("\n")))
	}
	for i := range n - 1 {
		damaged(t, dir, ObservationsFile, join(join(all[:i]...), join(all[i+1:]...)), i+1, fmt.Sprintf("line %d removed", i+1))
	}
	damaged(t, dir, ObservationsFile, join(b, all[n-1]), n+1, "the last line repeated")
	damaged(t, dir, ObservationsFile, join(b, []byte("garbage\n")), n+1, "a line of garbage appended")
	intact(t, dir)
}

func TestSamplesThatNoMarkVouchesForAreDropped(t *testing.T) {
	dir := t.TempDir()
	unfinished(t, dir)
	all := chainLines(t, dir)
	chain, samples := slurp(t, dir, ObservationsFile), slurp(t, dir, SamplesFile)
	const perTrial = 6 * 2 * 8
	for _, lost := range []int{1, 8, perTrial - 1, perTrial} {
		spit(t, dir, ObservationsFile, chain)
		spit(t, dir, SamplesFile, samples[:len(samples)-lost])
		w, err := Resume(dir, "test", begin)
		if err != nil {
			t.Fatalf("%d bytes of samples lost: %v", lost, err)
		}
		addTrial(t, w, 4, 6)
		closed(t, w)
		run := intact(t, dir)
		if got := run.Records[len(all)-1].Resume; got == nil || got.Dropped != int64(len(all[len(all)-1])) {
			t.Errorf("%d bytes of samples lost, noted %+v", lost, got)
		}
		if now := slurp(t, dir, SamplesFile); !bytes.Equal(now, samples) {
			t.Errorf("%d bytes of samples lost: they are %d bytes now, not %d", lost, len(now), len(samples))
		}
	}
	spit(t, dir, ObservationsFile, chain)
	for at := 0; at < 4*perTrial; at += 5 {
		now := bytes.Clone(samples)
		now[at] ^= 1
		damaged(t, dir, SamplesFile, now, 0, fmt.Sprintf("samples byte %d", at))
	}
	damaged(t, dir, SamplesFile, samples[:4*perTrial-1], 0, "samples lost that a mark vouches for")
	intact(t, dir)
}

// Rounds may follow each other faster than they are synced: a mark alone does
// not vouch for its own round.
func TestAMarkWithoutASyncVouchesForNothing(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	addTrial(t, w, 0, 2)
	mark(t, w, 0, true)
	w.lastSync = time.Now().Add(time.Hour)
	addTrial(t, w, 1, 2)
	mark(t, w, 1, false)
	addTrial(t, w, 2, 2)
	mark(t, w, 2, false)
	closed(t, w)
	samples := slurp(t, dir, SamplesFile)
	spit(t, dir, SamplesFile, samples[:len(samples)/3+5])
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	run := intact(t, dir)
	if len(run.Records) != 4 || run.Records[3].Resume == nil || run.Records[3].Resume.Dropped == 0 {
		t.Errorf("%d records, the last %+v", len(run.Records), run.Records[len(run.Records)-1])
	}
}

// To lose samples must not be a way to lose the note that a run was looked at.
func TestANoteIsNeverDropped(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	addTrial(t, w, 0, 2)
	closed(t, w)
	w, err := Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	add(t, w, Record{Kind: KindNote, Note: &Note{Text: "looked at", Exploratory: true}})
	addTrial(t, w, 1, 2)
	closed(t, w)
	samples := slurp(t, dir, SamplesFile)
	damaged(t, dir, SamplesFile, samples[:8], 0, "the samples before the note lost")
	spit(t, dir, SamplesFile, samples[:len(samples)-8])
	w, err = Resume(dir, "test", begin)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	var kinds []Kind
	for _, rec := range intact(t, dir).Records {
		kinds = append(kinds, rec.Kind)
	}
	if !reflect.DeepEqual(kinds, []Kind{KindBegin, KindTrial, KindResume, KindNote, KindResume}) {
		t.Errorf("kept %v", kinds)
	}
}

// A kill may hit Finish after each of its steps.
func TestFinishCanBeCutOffAnywhere(t *testing.T) {
	made := t.TempDir()
	finished(t, made)
	for _, written := range [][]string{
		{}, {".results.json-1"}, {ResultsFile}, {ResultsFile, ".seal.json-1"}, {ResultsFile, SealFile}, {ResultsFile, SealFile, ".verdict.json-1"}, {ResultsFile, SealFile, VerdictFile},
	} {
		dir := t.TempDir()
		for _, name := range []string{LockFile, EnvironmentFile, ObservationsFile, SamplesFile} {
			spit(t, dir, name, slurp(t, made, name))
		}
		for _, name := range written {
			if _, err := os.Stat(filepath.Join(made, name)); err == nil {
				spit(t, dir, name, slurp(t, made, name))
			} else {
				spit(t, dir, name, []byte("{"))
			}
		}
		run := intact(t, dir)
		if run.Sealed != (len(written) == 3 && written[2] == VerdictFile) {
			t.Errorf("with %v: sealed is %v", written, run.Sealed)
		}
		if !run.Sealed {
			w, err := Resume(dir, "test", begin)
			if err != nil {
				t.Fatalf("with %v: %v", written, err)
			}
			closed(t, w)
		}
		if run, err := Open(dir); err != nil {
			t.Errorf("with %v: %v", written, err)
		} else if err := run.Finish(madeResults, madeVerdict); err != nil {
			t.Errorf("with %v: %v", written, err)
		}
		if run := intact(t, dir); !run.Sealed {
			t.Errorf("with %v: not sealed in the end", written)
		}
		for _, name := range everyFile {
			if !bytes.Equal(slurp(t, dir, name), slurp(t, made, name)) {
				t.Errorf("with %v: %s differs from that of a Finish in one go", written, name)
			}
		}
	}
}

func TestASealedFolderStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	run := finished(t, dir)
	before := map[string][]byte{}
	for _, name := range everyFile {
		before[name] = slurp(t, dir, name)
	}
	if err := run.Finish(madeResults, madeVerdict); err != nil {
		t.Errorf("finishing with the same bytes: %v", err)
	}
	for what, err := range map[string]error{
		"other results": run.Finish([]byte("{}\n"), madeVerdict),
		"other verdict": run.Finish(madeResults, []byte("{}\n")),
		"resume":        func() error { _, err := Resume(dir, "test", begin); return err }(),
	} {
		if !errors.Is(err, ErrSealed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Create(dir, run.Lock, run.Protocol, machine, begin); err == nil {
		t.Error("another run began in it")
	}
	for name, b := range before {
		if !bytes.Equal(slurp(t, dir, name), b) {
			t.Errorf("%s was written", name)
		}
	}
}

func TestOnlyAnEndedRunIsSealed(t *testing.T) {
	dir := t.TempDir()
	unfinished(t, dir)
	if err := intact(t, dir).Finish(madeResults, madeVerdict); err == nil {
		t.Error("an unfinished run was sealed")
	}
	if _, err := os.Stat(filepath.Join(dir, ResultsFile)); err == nil {
		t.Error("results of an unfinished run were written")
	}
}
