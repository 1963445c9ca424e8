package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func TestARunComesToItsVerdict(t *testing.T) {
	b := newBench(t, with())
	o := b.run("run")
	if o.Verdict.Class != gate.Go || o.Verdict.Outcome != "PROCEED" || !o.Results.Clear || !o.Results.Complete {
		t.Errorf("%s %s: %s", o.Verdict.Class, o.Verdict.Outcome, o.Verdict.Why)
	}
	dir := b.path("run")
	run := intact(t, dir)
	if !run.Sealed || !slices.Equal(trials(run), scheduled(b.plan.Protocol)) {
		t.Errorf("it ran %q", trials(run))
	}
	for name, n := range side(t, b.path("side")) {
		if n != 1 {
			t.Errorf("trial %q ran %d times", name, n)
		}
	}
	if !missing(filepath.Join(dir, ledger.ScratchDir)) {
		t.Error("the scratch folder is still there")
	}

	names := []string{ledger.LockFile, ledger.EnvironmentFile, ledger.ObservationsFile, ledger.SamplesFile, ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile}
	before := map[string]string{}
	for _, name := range names {
		before[name] = slurp(t, filepath.Join(dir, name))
	}
	page, err := os.Stat(filepath.Join(dir, ledger.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if again, err := Analyze(dir, false); err != nil || again.Verdict.Outcome != o.Verdict.Outcome {
			t.Fatalf("judged again: %v", err)
		}
		if _, err := Load(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if slurp(t, filepath.Join(dir, name)) != before[name] {
				t.Errorf("judging again changed %s", name)
			}
		}
	}
	if now, err := os.Stat(filepath.Join(dir, ledger.ReportFile)); err != nil || !now.ModTime().Equal(page.ModTime()) {
		t.Error("the same page was written again, which a read-only archive would refuse")
	}
	if err := os.Remove(filepath.Join(dir, ledger.ReportFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Analyze(dir, false); err != nil || slurp(t, filepath.Join(dir, ledger.ReportFile)) != before[ledger.ReportFile] {
		t.Errorf("the page made again is another: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(names) {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestTwoRunsFindTheSame(t *testing.T) {
	b := newBench(t, with())
	b.run("one")
	b.run("two")
	if found(t, b.path("one")) != found(t, b.path("two")) {
		t.Error("two runs of one lock whose figures follow from the seed differ")
	}
}

func TestVerifyJudgesAgain(t *testing.T) {
	b := newBench(t, with())
	run := b.run("run").Run
	dir := b.path("run")
	// A forger who seals what he changed is found by judging the data.
	for _, name := range []string{ledger.ResultsFile, ledger.VerdictFile} {
		forged := b.path("forged-" + name)
		if err := os.CopyFS(forged, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{ledger.SealFile, ledger.VerdictFile, ledger.ResultsFile} {
			if err := os.Remove(filepath.Join(forged, gone)); err != nil {
				t.Fatal(err)
			}
		}
		open, err := ledger.Open(forged)
		if err != nil {
			t.Fatal(err)
		}
		made := map[string][]byte{ledger.ResultsFile: []byte(slurp(t, filepath.Join(dir, ledger.ResultsFile))), ledger.VerdictFile: []byte(slurp(t, filepath.Join(dir, ledger.VerdictFile)))}
		made[name] = bytes.Replace(made[name], []byte("told"), []byte("sold"), 1)
		if err := open.Finish(made[ledger.ResultsFile], made[ledger.VerdictFile]); err != nil {
			t.Fatal(err)
		}
		_, problems, err := Verify(forged)
		if err != nil || len(problems) != 1 || problems[0].File != name || !strings.Contains(problems[0].Message, "is not what analysing the data gives (line") {
			t.Errorf("%s: %v %v", name, problems, err)
		}
		if _, err := Analyze(forged, false); !errors.Is(err, ledger.ErrSealed) {
			t.Errorf("%s: judged again: %v", name, err)
		}
	}
	if run.Dir != dir {
		t.Errorf("the run is said to be in %s", run.Dir)
	}
}

func TestStopAndGo(t *testing.T) {
	b := newBench(t, with())
	b.run("whole")
	want := found(t, b.path("whole"))
	all := scheduled(b.plan.Protocol)
	rng := seeded(t)
	for i := range 4 {
		name := fmt.Sprint("run", i)
		if err := os.Remove(b.path("side")); err != nil {
			t.Fatal(err)
		}
		parts := 1
		at := rng.IntN(len(all) - 1)
		b.stopAfter(at, b.starting(name, Options{}))
		for ; rng.IntN(2) == 0 && at < len(all)-2; parts++ {
			more := rng.IntN(len(all) - 1 - at)
			b.stopAfter(more, b.resuming(name))
			at += more
		}
		if got := trials(intact(t, b.path(name))); !slices.Equal(got, all[:len(got)]) {
			t.Fatalf("stopped after %q", got)
		}
		o := b.resume(name)
		run := intact(t, b.path(name))
		if !slices.Equal(trials(run), all) {
			t.Errorf("in %d parts it ran %q", parts+1, trials(run))
		}
		if got := found(t, b.path(name)); got != want {
			t.Errorf("in %d parts it found\n%s\nand not\n%s", parts+1, got, want)
		}
		if o.Verdict.Outcome != "PROCEED" {
			t.Errorf("the verdict is %s", o.Verdict.Outcome)
		}
		notes, resumed := 0, 0
		for _, rec := range run.Records {
			if rec.Note != nil && rec.Note.Text == "interrupted" {
				notes++
			}
			if rec.Resume != nil {
				resumed++
			}
		}
		if notes != parts || resumed != parts {
			t.Errorf("%d stops have left %d notes and %d resumptions", parts, notes, resumed)
		}
	}
}

// A kill may come after the scratch folder is gone and before the end is
// recorded.
func TestAKillJustBeforeTheEnd(t *testing.T) {
	b := newBench(t, with())
	b.run("run")
	want := found(t, b.path("run"))
	lines := strings.SplitAfter(slurp(t, filepath.Join(b.path("run"), ledger.ObservationsFile)), "\n")
	for cut := 1; cut <= 3; cut++ {
		// 1: the end; 2: the look at the machine before it; 3: the run's check.
		b.write("run/observations.jsonl", strings.Join(lines[:len(lines)-1-cut], ""))
		for _, name := range []string{ledger.SealFile, ledger.ResultsFile, ledger.VerdictFile, ledger.ReportFile} {
			_ = os.Remove(filepath.Join(b.path("run"), name))
		}
		if err := os.Mkdir(filepath.Join(b.path("run"), ledger.ScratchDir), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write("run/scratch/origin.json", fmt.Sprintf("{\"dir\": %q}", b.dir))
		before := len(side(t, b.path("side")))
		o := b.resume("run")
		if len(side(t, b.path("side"))) != before {
			t.Errorf("%d lines cut: trials ran again", cut)
		}
		intact(t, b.path("run"))
		switch got := found(t, b.path("run")); {
		case cut < 3 && got != want:
			t.Errorf("%d lines cut: it found\n%s", cut, got)
		case cut == 3 && (o.Verdict.Class == gate.Go || !strings.Contains(got, "went with the scratch folder")):
			t.Errorf("a check of what is gone passed: %s %s", o.Verdict.Outcome, o.Verdict.Why)
		}
	}
}

func TestOnlyWhatWasFrozenRuns(t *testing.T) {
	newOne := func() (*bench, *protocol.Lock) {
		b := newBench(t, with("factors:", "inputs: [input]\nfactors:"))
		b.write("input", "as it was")
		return b, b.freeze()
	}
	for what, change := range map[string]func(b *bench){
		"another program":  func(b *bench) { b.write("arm.sh", script+"\n") },
		"another input":    func(b *bench) { b.write("input", "otherwise") },
		"a shorter input":  func(b *bench) { b.write("input", "as it wa") },
		"no input":         func(b *bench) { os.Remove(b.path("input")) },
		"a folder as such": func(b *bench) { os.Remove(b.path("input")); os.Mkdir(b.path("input"), 0o755) },
		"no program":       func(b *bench) { os.Remove(b.path("arm.sh")) },
		"another protocol": func(b *bench) {
			b.write("exp.yaml", with("factors:", "inputs: [input]\nfactors:", "seed: 11", "seed: 12"))
			b.read()
		},
	} {
		b, lock := newOne()
		change(b)
		_, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("run")})
		if err == nil || !errors.Is(err, ErrChanged) && !strings.HasPrefix(what, "no ") && !strings.HasPrefix(what, "a folder") {
			t.Errorf("%s: %v", what, err)
		}
		if !missing(b.path("run")) {
			t.Errorf("%s: a run folder was made", what)
		}
		if what == "another protocol" {
			continue // a run that goes on has its own
		}
		b, _ = newOne()
		b.stopAfter(3, b.starting("run", Options{}))
		change(b)
		if _, err := Resume(context.Background(), b.path("run"), nil, Options{}); err == nil {
			t.Errorf("%s: went on", what)
		}
		b.write("arm.sh", script)
		if info, err := os.Stat(b.path("input")); err == nil && info.IsDir() {
			os.Remove(b.path("input"))
		}
		b.write("input", "as it was")
		if o := b.resume("run"); o.Verdict.Outcome != "PROCEED" {
			t.Errorf("%s, and put back: %s", what, o.Verdict.Outcome)
		}
	}
}

func TestAProgramThatSetupMakes(t *testing.T) {
	b := newBench(t, with("./arm.sh, \"0\"]", "./made.sh, \"0\"], setup: 'cp arm.sh made.sh; echo \"# $$\" >> made.sh'"))
	lock := b.freeze()
	if r := lock.Receipts[0]; r.Program != "./made.sh (made by setup)" || r.SHA256 != "" {
		t.Errorf("the receipt is %+v", r)
	}
	b.stopAfter(3, b.starting("run", Options{}))
	if o := b.resume("run"); o.Verdict.Outcome != "PROCEED" {
		t.Errorf("%s: %s", o.Verdict.Outcome, o.Verdict.Why)
	}
	if o := b.run("again"); o.Verdict.Outcome != "PROCEED" {
		t.Errorf("run again: %s", o.Verdict.Outcome)
	}
}

func TestVersionReceipts(t *testing.T) {
	b := newBench(t, with("\"0\"]", "\"0\"], version: 'cat version; echo $MINE', env: {MINE: x}"))
	b.write("version", "1.0\n")
	lock := b.freeze()
	if lock.Receipts[0].Version != "1.0\nx" {
		t.Errorf("the receipt is %+v", lock.Receipts[0])
	}
	b.write("version", "1.1\n")
	if _, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("run")}); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), `was "1.0\nx" and is "1.1\nx"`) {
		t.Errorf("another version: %v", err)
	}
	for what, line := range map[string]string{
		"endless":    "yes | head -c 50000000",
		"left open":  "sleep 300 & echo 1",
		"binary":     `printf "\377\376\000v1"`,
		"long words": `head -c 399 /dev/zero | tr "\0" x; echo éé`,
	} {
		b := newBench(t, with("\"0\"]", fmt.Sprintf("\"0\"], version: %q", line)))
		lock := b.freeze()
		if v := lock.Receipts[0].Version; v == "" || len(v) > versionLimit || strings.ToValidUTF8(v, "") != v {
			t.Errorf("%s: %q", what, v)
		}
	}
	b = newBench(t, with("\"0\"]", "\"0\"], version: 'echo no; exit 3'"))
	if _, err := Freeze(context.Background(), b.plan, ""); err == nil || !strings.Contains(err.Error(), "arm control: version command") || !strings.Contains(err.Error(), "no") {
		t.Errorf("a version command that fails: %v", err)
	}
}

func TestFreezeAndAmend(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, with())
	if _, err := AmendFile(ctx, b.plan, "why"); err == nil || !strings.Contains(err.Error(), "freeze first") {
		t.Errorf("amended without a lock: %v", err)
	}
	lock, fresh, err := FreezeFile(ctx, b.plan)
	if err != nil || !fresh || lock.Version != 1 || lock.Source != "exp.yaml" {
		t.Fatalf("%+v %v %v", lock, fresh, err)
	}
	path := b.path("exp.lock.json")
	first := slurp(t, path)
	if again, fresh, err := FreezeFile(ctx, b.plan); err != nil || fresh || again.Digest != lock.Digest || slurp(t, path) != first {
		t.Errorf("frozen again: %v %v", fresh, err)
	}
	if _, err := AmendFile(ctx, b.plan, "why"); !errors.Is(err, protocol.ErrUnchanged) {
		t.Errorf("amended without a change: %v", err)
	}
	// A comment is no change.
	b.write("exp.yaml", with()+"# a remark\n")
	b.read()
	if _, fresh, err := FreezeFile(ctx, b.plan); err != nil || fresh {
		t.Errorf("with a remark: %v %v", fresh, err)
	}
	b.write("exp.yaml", with("rounds: 3", "rounds: 4"))
	b.read()
	var remedy *protocol.RemedyError
	if _, _, err := FreezeFile(ctx, b.plan); !errors.Is(err, ErrChanged) || !errors.As(err, &remedy) || !strings.Contains(remedy.Advice("queues"), "queues freeze --amend") {
		t.Errorf("changed: %v", err)
	}
	if slurp(t, path) != first {
		t.Error("a refused freeze wrote the lock")
	}
	if _, err := AmendFile(ctx, b.plan, "  "); err == nil {
		t.Error("amended without a reason")
	}
	second, err := AmendFile(ctx, b.plan, "too few rounds")
	if err != nil || second.Version != 2 || len(second.Deviations) != 1 || second.Deviations[0].Reason != "too few rounds" ||
		second.Deviations[0].Previous != lock.Digest || !slices.Equal(second.Deviations[0].Changed, []string{"design"}) {
		t.Fatalf("%+v %v", second, err)
	}
	if slurp(t, b.path("exp.lock.v1.json")) != first {
		t.Error("the first lock was not kept")
	}
	if o := b.run("run"); len(o.Run.Lock.Deviations) != 1 || o.Results.Version != 2 {
		t.Errorf("the run has lock version %d", o.Results.Version)
	}
	b.write("exp.lock.json", strings.Replace(slurp(t, path), "too few", "too many", 1))
	if _, _, err := FreezeFile(ctx, b.plan); !errors.Is(err, protocol.ErrLock) {
		t.Errorf("a lock that was changed: %v", err)
	}
	if _, err := AmendFile(ctx, b.plan, "why"); !errors.Is(err, protocol.ErrLock) {
		t.Errorf("a lock that was changed, amended: %v", err)
	}
}

func TestNarrowingDecidesNothing(t *testing.T) {
	third := `{name: third, command: [./arm.sh, "2"]}`
	for what, c := range map[string]struct {
		n     Narrowing
		said  string
		check func(p *protocol.Protocol) bool
	}{
		"rounds": {Narrowing{Rounds: 5, Warmup: -1}, "rounds set to 5", func(p *protocol.Protocol) bool {
			return len(p.Cells()) == 2 && p.Cells()[0].Rounds == 5 && p.Cells()[1].Rounds == 5
		}},
		"warm-up": {Narrowing{Warmup: 0}, "warm-up set to 0", func(p *protocol.Protocol) bool { return p.Cells()[0].Warmup == 0 && p.Cells()[1].Warmup == 0 }},
		"arms": {Narrowing{Warmup: -1, Arms: []string{"third"}}, "only arms third", func(p *protocol.Protocol) bool {
			return len(p.Arms) == 2 && p.Primary.Treatment == "third" && p.Check("only") == nil && slices.Equal(p.Check("some").Arms, []string{"control"})
		}},
		"cells": {Narrowing{Warmup: -1, Cells: []string{"size=2"}}, "only cells size=2", func(p *protocol.Protocol) bool { return len(p.Cells()) == 1 && p.Cells()[0].Name == "size=2" }},
	} {
		head, rest, _ := strings.Cut(with("factors:", "  - "+third+"\nfactors:"), "checks:")
		_, tail, _ := strings.Cut(rest, "primary:")
		b := newBench(t, head+`overrides: [{cells: {size: 2}, rounds: 4, warmup: 2}]
checks:
  - {name: all, scope: trial, shell: "true"}
  - {name: only, scope: trial, shell: "true", arms: [treatment]}
  - {name: some, scope: trial, shell: "true", arms: [treatment, control]}
primary:`+tail)
		if c.n.Empty() {
			t.Errorf("%s: is taken for nothing", what)
		}
		reason, err := c.n.Apply(b.plan)
		if err != nil || !strings.Contains(reason, c.said) || !c.check(b.plan.Protocol) {
			t.Fatalf("%s: %q %v %+v", what, reason, err, b.plan.Protocol)
		}
		lock, err := Freeze(context.Background(), b.plan, reason)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		o, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("run")})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if o.Verdict.Class == gate.Go || o.Verdict.Outcome != "EXPLORATORY" || !slices.Contains(o.Results.Exploratory, reason) {
			t.Errorf("%s: %s: %s", what, o.Verdict.Outcome, o.Verdict.Why)
		}
	}
	for what, n := range map[string]Narrowing{
		"no such arm":        {Warmup: -1, Arms: []string{"none"}},
		"the reference only": {Warmup: -1, Arms: []string{"control"}},
		"no such cell":       {Warmup: -1, Cells: []string{"size=3"}},
	} {
		if _, err := n.Apply(newBench(t, with()).plan); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if !(Narrowing{Warmup: -1}).Empty() {
		t.Error("nothing is taken for something")
	}
}

func TestOneFolderOneRun(t *testing.T) {
	b := newBench(t, with())
	lock := b.freeze()
	other := newBench(t, with("seed: 11", "seed: 12"))
	otherLock := other.freeze()
	again := func() {
		t.Helper()
		if _, err := Run(context.Background(), other.plan, otherLock, Options{Out: b.path("run"), Scratch: other.path("elsewhere")}); err == nil {
			t.Error("another run began in the folder")
		}
		if left := glob(t, other.path("elsewhere/*")); len(left) > 0 {
			t.Errorf("the refused run left %q", left)
		}
	}
	asked := false
	o := Options{Out: b.path("run")}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Events.Trial = func(*trial.Observation) {
		if asked {
			return
		}
		asked = true
		again()
		if _, err := Resume(context.Background(), b.path("run"), nil, Options{}); !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("resumed while it runs: %v", err)
		}
		if _, err := Analyze(b.path("run"), true); !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("analysed while it runs: %v", err)
		}
		if _, err := Analyze(b.path("run"), false); !errors.Is(err, ErrUnfinished) {
			t.Errorf("analysed while it runs: %v", err)
		}
		intact(t, b.path("run"))
		cancel()
	}
	if _, err := Run(ctx, b.plan, lock, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	again()
	// It goes on as what it was.
	if o := b.resume("run"); o.Verdict.Outcome != "PROCEED" || o.Run.Lock.Digest != lock.Digest {
		t.Errorf("%s: %s", o.Verdict.Outcome, o.Verdict.Why)
	}
	again()
	if _, err := Resume(context.Background(), b.path("run"), nil, Options{}); !errors.Is(err, ledger.ErrSealed) {
		t.Errorf("a finished run went on: %v", err)
	}
	intact(t, b.path("run"))

	for what, make := range map[string]func(dir string) error{
		"a user's folder":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "thesis"), nil, 0o644) },
		"a user's scratch": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "scratch", "thesis"), 0o755) },
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(context.Background(), b.plan, lock, Options{Out: dir}); err == nil {
			t.Errorf("%s: was taken", what)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: now holds %v", what, entries)
		}
	}
}

func TestScratchElsewhereIsOursAlone(t *testing.T) {
	b := newBench(t, with())
	lock := b.freeze()
	theirs := b.path("theirs")
	for _, dir := range []string{theirs, filepath.Join(theirs, "assay-run"), filepath.Join(theirs, "trial", "control")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "thesis"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ours := func() []string {
		return slices.DeleteFunc(glob(t, filepath.Join(theirs, "assay-*")), func(s string) bool { return filepath.Base(s) == "assay-run" })
	}
	// Two runs of one name in different folders share nothing.
	b.stopAfter(3, func(ctx context.Context, o Options) (*Outcome, error) {
		o.Out, o.Scratch = b.path("first/run"), theirs
		return Run(ctx, b.plan, lock, o)
	})
	kept := ours()
	if len(kept) != 1 || missing(filepath.Join(kept[0], "trial", "control")) {
		t.Errorf("a stopped run keeps %q", kept)
	}
	o, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("second/run"), Scratch: theirs})
	if err != nil || o.Verdict.Outcome != "PROCEED" {
		t.Fatalf("%v", err)
	}
	if left := ours(); !slices.Equal(left, kept) {
		t.Errorf("the other run left %q of %q", left, kept)
	}
	if o := b.resume("first/run"); o.Verdict.Outcome != "PROCEED" {
		t.Errorf("gone on: %s %s", o.Verdict.Outcome, o.Verdict.Why)
	}
	if left := ours(); len(left) > 0 {
		t.Errorf("in the end there is %q", left)
	}
	for _, dir := range []string{theirs, filepath.Join(theirs, "assay-run"), filepath.Join(theirs, "trial", "control")} {
		if missing(filepath.Join(dir, "thesis")) {
			t.Errorf("%s/thesis is gone", dir)
		}
	}
}

// After a reboot a scratch folder in memory is gone, and with it what the
// trials of a round left for its check.
func TestAScratchFolderThatIsGone(t *testing.T) {
	b := newBench(t, with())
	lost := func(name string, safe bool) {
		t.Helper()
		if err := os.RemoveAll(b.path("elsewhere")); err != nil {
			t.Fatal(err)
		}
		o := b.resume(name)
		same := o.Results.Checks[slices.IndexFunc(o.Results.Checks, func(c check.Result) bool { return c.Name == "same" })]
		if safe && o.Verdict.Outcome != "PROCEED" || !safe && (o.Verdict.Class != gate.Invalid || same.Verdict != check.Unknown || !strings.Contains(same.Message, "went with the scratch folder")) {
			t.Errorf("%s: %s, %+v", name, o.Verdict.Outcome, same)
		}
	}
	b.stopAfter(1, b.starting("within a round", Options{Scratch: b.path("elsewhere")}))
	lost("within a round", false)
	b.stopAfter(2, b.starting("before its check", Options{Scratch: b.path("elsewhere")}))
	lost("before its check", false)
	start := b.starting("between rounds", Options{Scratch: b.path("elsewhere")})
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := start(ctx, Options{Events: Events{Round: func(Progress) { cancel() }}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	lost("between rounds", true)
}

// A round that was cut in two is judged over both its halves.
func TestChecksReachAcrossAStop(t *testing.T) {
	// The arm that comes second in the very first round spoils it.
	for _, spoil := range []bool{false, true} {
		b := newBench(t, with())
		second := trial.Schedule(b.plan.Protocol)[0].Slots[1].Arm
		if spoil {
			b.write("arm.sh", script+fmt.Sprintf("[ $ASSAY_ROUND = 0 ] && [ $ASSAY_ARM = %s ] && echo other > $ASSAY_SCRATCH/left\ntrue\n", second))
		}
		b.stopAfter(1, b.starting("run", Options{}))
		o := b.resume("run")
		if spoil != (o.Verdict.Outcome == "ABORT") || spoil == (o.Verdict.Class == gate.Go) {
			t.Errorf("spoiled %v: %s %s", spoil, o.Verdict.Outcome, o.Verdict.Why)
		}
		judged := map[string]int{}
		for _, rec := range o.Run.Records {
			if rec.Check != nil {
				judged[fmt.Sprint(rec.Check.Scope, rec.Check.Cell, rec.Check.Round)]++
			}
		}
		if len(judged) != 2*4+2+1 {
			t.Errorf("judged %v", judged)
		}
		for place, n := range judged {
			if n != 1 {
				t.Errorf("%s was judged %d times", place, n)
			}
		}
	}
}

func TestLookingEarlyIsForEver(t *testing.T) {
	b := newBench(t, with())
	b.stopAfter(5, b.starting("run", Options{}))
	dir := b.path("run")
	if _, err := Analyze(dir, false); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "--early") {
		t.Errorf("analysed before its end: %v", err)
	}
	// A report of what is there is no look: it has no figures.
	o, err := Load(dir)
	if err != nil || o.Verdict.Outcome != "INCOMPLETE" || len(o.Results.Cells) > 0 {
		t.Errorf("loaded: %+v %v", o, err)
	}
	for range 2 {
		o, err := Analyze(dir, true)
		if err != nil || o.Verdict.Class == gate.Go || !slices.Contains(o.Results.Exploratory, "it was analysed before its end") {
			t.Fatalf("looked at: %v", err)
		}
		intact(t, dir)
	}
	for _, name := range []string{ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile} {
		if !missing(filepath.Join(dir, name)) {
			t.Errorf("looking wrote %s", name)
		}
	}
	o = b.resume("run")
	if o.Verdict.Outcome != "EXPLORATORY" || o.Verdict.Class != gate.Inconclusive {
		t.Errorf("in the end: %s %s", o.Verdict.Outcome, o.Verdict.Class)
	}
	if o, err := Analyze(dir, false); err != nil || o.Verdict.Outcome != "EXPLORATORY" {
		t.Errorf("judged again: %v", err)
	}
	intact(t, dir)
}

func TestMemoryIsNoDisk(t *testing.T) {
	const memory = "/dev/shm"
	tmpfs := func(dir string) bool {
		for _, r := range (host.Machine{}).Static(dir) {
			if r.Probe == "scratch_tmpfs" {
				return r.Available() && r.Value != 0
			}
		}
		return false
	}
	if !tmpfs(memory) {
		t.Skip("no tmpfs at " + memory)
	}
	b := newBench(t, with("seed: 11", "seed: 11, scratch: disk"))
	lock := b.freeze()
	mine, err := os.MkdirTemp(memory, "flow-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(mine) })
	for what, o := range map[string]Options{
		"scratch in memory":    {Out: b.path("run"), Scratch: filepath.Join(mine, "scratch")},
		"run folder in memory": {Out: filepath.Join(mine, "run")},
	} {
		_, err := Run(context.Background(), b.plan, lock, o)
		if err == nil || !strings.Contains(err.Error(), "tmpfs") || !strings.Contains(err.Error(), "--scratch") {
			t.Errorf("%s: %v", what, err)
		}
		if !missing(o.Out) || len(glob(t, filepath.Join(mine, "scratch", "*"))) > 0 {
			t.Errorf("%s: something was left behind", what)
		}
	}
	real, err := os.MkdirTemp(disk, "flow-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(real) })
	if tmpfs(real) {
		t.Skip("temporary files are in memory here")
	}
	if o, err := Run(context.Background(), b.plan, lock, Options{Out: filepath.Join(mine, "run"), Scratch: real}); err != nil || o.Verdict.Outcome != "PROCEED" {
		t.Errorf("scratch on disk: %v", err)
	}
}

func TestStudiesOfFunctions(t *testing.T) {
	t.Chdir(t.TempDir())
	plan, err := ReadStudy(studies[0], "")
	if err != nil {
		t.Fatal(err)
	}
	for _, isolation := range []string{protocol.IsolationProcess, protocol.IsolationShared} {
		plan.Protocol.Design.Isolation = isolation
		lock, err := Freeze(context.Background(), plan, "")
		if err != nil {
			t.Fatal(err)
		}
		if r := lock.Receipts[0]; r.SHA256 == "" {
			t.Errorf("the receipt is %+v", r)
		}
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		_, err = Run(ctx, plan, lock, Options{Out: isolation, Events: Events{Trial: func(*trial.Observation) {
			if n++; n == 5 {
				cancel()
			}
		}}})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := Resume(context.Background(), isolation, nil, Options{}); err == nil || !strings.Contains(err.Error(), `study "functions"`) {
			t.Errorf("%s: went on without its study: %v", isolation, err)
		}
		o, err := Resume(context.Background(), isolation, studies, Options{})
		if err != nil || o.Verdict.Class != gate.Go {
			t.Fatalf("%s: %v %+v", isolation, err, o)
		}
		intact(t, isolation)
	}
	if _, err := ReadStudy(studies[0], "none"); err == nil {
		t.Error("a protocol that the study does not have")
	}
}

func TestWhatIsNoRunIsNotResumed(t *testing.T) {
	b := newBench(t, with())
	for what, dir := range map[string]string{"nothing": b.path("none"), "a folder": b.dir, "a file": b.path("exp.yaml")} {
		if _, err := Resume(context.Background(), dir, nil, Options{}); !errors.Is(err, ledger.ErrNotRun) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := Analyze(dir, true); !errors.Is(err, ledger.ErrNotRun) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.stopAfter(2, b.starting("run", Options{}))
	if err := os.Remove(b.path("run/scratch/origin.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(context.Background(), b.path("run"), nil, Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "where it was started is not known") {
		t.Errorf("without its origin: %v", err)
	}
}

func TestJudgesAreLookedForWhereTheyRun(t *testing.T) {
	const check = "checks:\n  - {name: mine, scope: %s, command: [./judge.sh]}"
	for _, c := range []struct {
		scope string
		found bool
	}{{"trial", true}, {"run", false}} {
		b := newBench(t, with("./arm.sh, ", "../arm.sh, ", "\"0\"]", "\"0\"], dir: sub", "\"1\"]", "\"1\"], dir: sub", "checks:", fmt.Sprintf(check, c.scope)))
		if err := os.Mkdir(b.path("sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write("sub/judge.sh", "#!/bin/sh\nexit 0\n")
		lock, err := Freeze(context.Background(), b.plan, "")
		if !c.found {
			if err == nil || !strings.Contains(err.Error(), "check mine: find ./judge.sh") {
				t.Errorf("scope %s: %v", c.scope, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("scope %s: %v", c.scope, err)
		}
		if o, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("run")}); err != nil || o.Verdict.Outcome != "PROCEED" {
			t.Errorf("scope %s: %v", c.scope, err)
		}
	}
}
