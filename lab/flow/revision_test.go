package flow

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/gate"
)

const revisions = `
assay: 1
name: revisions
question: Did the change help?
arms:
  - {name: control, rev: HEAD~1, command: [./built], setup: "cp program built"}
  - {name: treatment, rev: HEAD, command: [./built], setup: "cp program built"}
design: {rounds: 6, seed: 3}
metrics: [{name: ops, source: json, better: higher}]
checks: [{name: sound, scope: trial, reported: true}]
primary: {metric: ops}
decision: {preset: four-branch}
`

// newRepo is a bench in a subfolder of a repository with two revisions of the
// program.
func newRepo(t *testing.T) (b *bench, git func(args ...string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	b = newBench(t, revisions)
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", b.dir, "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	for i := range 2 {
		b.write("program", fmt.Sprintf("#!/bin/sh\necho \"{\\\"ops\\\": $((%d + ASSAY_ROUND %% 3))}\"\necho '{\"check\": \"sound\", \"status\": \"pass\"}'\n", 100+50*i))
		git("add", "program", "exp.yaml")
		git("commit", "--quiet", "-m", fmt.Sprint(i))
	}
	return b, git
}

func TestRevisionsAreMeasuredAsTheyWere(t *testing.T) {
	b, git := newRepo(t)
	commits := []string{git("rev-parse", "HEAD~1"), git("rev-parse", "HEAD")}
	if lock, err := Freeze(context.Background(), b.plan, ""); err != nil || !lock.Receipts[1].Dirty {
		// The lock's own folder holds files that no commit has.
		t.Errorf("%v: a dirty tree is called clean: %+v", err, lock.Receipts)
	}
	b.write(".git/info/exclude", "*\n")
	lock := b.freeze()
	for i, r := range lock.Receipts {
		if r.Rev != commits[i] || r.Dirty || r.SHA256 != "" || r.Program != "./built (of the revision)" {
			t.Errorf("receipt %d is %+v", i, r)
		}
	}
	// What lies about in the author's tree is neither measured nor a change.
	b.write("built", "#!/bin/sh\nexit 1\n")
	b.write("program", "#!/bin/sh\nexit 1\n")
	b.stopAfter(5, b.starting("run", Options{}))
	if n := strings.Count(git("worktree", "list"), "\n") + 1; n != 3 {
		t.Errorf("%d worktrees while it is stopped", n)
	}
	b.write("built", "#!/bin/sh\nexit 2\n")
	o := b.resume("run")
	if o.Verdict.Class != gate.Go {
		t.Errorf("%s: %s", o.Verdict.Outcome, o.Verdict.Why)
	}
	if n := strings.Count(git("worktree", "list"), "\n") + 1; n != 1 {
		t.Errorf("%d worktrees in the end", n)
	}
	intact(t, b.path("run"))
	// HEAD means another commit now.
	git("commit", "--quiet", "--allow-empty", "-m", "more")
	if _, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("again")}); err == nil || !strings.Contains(err.Error(), "its revision was") {
		t.Errorf("run at another revision: %v", err)
	}
}

func TestARevisionThatIsNotThere(t *testing.T) {
	b, _ := newRepo(t)
	b.plan.Protocol.Arms[0].Rev = "no-such-branch"
	if _, err := Freeze(context.Background(), b.plan, ""); err == nil || !strings.Contains(err.Error(), `arm control: git knows no revision "no-such-branch"`) {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(b.path(".git")); err != nil {
		t.Fatal(err)
	}
	b.plan.Protocol.Arms[0].Rev = "HEAD"
	if _, err := Freeze(context.Background(), b.plan, ""); err == nil || !strings.Contains(err.Error(), "in a repository that has it") {
		t.Errorf("%v", err)
	}
}
