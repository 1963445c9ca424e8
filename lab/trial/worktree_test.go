package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repo makes a repository with two commits of sub/program and returns it with
// their hashes.
func repo(t *testing.T) (dir string, commits []string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		program := fmt.Sprintf("#!/bin/sh\necho '{\"ops\": %d}'\n", i+1)
		if err := os.WriteFile(filepath.Join(dir, "sub", "program"), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
		git("add", "sub")
		git("commit", "--quiet", "-m", fmt.Sprint(i))
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	return dir, commits
}

func worktrees(t *testing.T, dir string) int {
	t.Helper()
	out, err := exec.Command("git", "-C", dir, "worktree", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(out), "\n")
}

const revArms = `  - {name: a, rev: HEAD~1, command: [./built], setup: "cp program built; echo x >> $ASSAY_ARM_DIR/builds"}
  - {name: b, rev: HEAD, command: [./built], setup: "cp program built"}`

func TestArmsFromRevisions(t *testing.T) {
	dir, commits := repo(t)
	// What lies about in the author's own tree is not measured.
	if err := os.WriteFile(filepath.Join(dir, "sub", "program"), []byte("#!/bin/sh\necho '{\"ops\": 99}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Whoever runs this from a hook has another repository in the environment.
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "none"))
	scratch := filepath.Join(t.TempDir(), "scratch")
	o := Options{Dir: filepath.Join(dir, "sub"), Scratch: scratch, Revs: map[string]string{"a": commits[0], "b": commits[1]}}
	r := newRigIn(t, dir, o, revArms)
	for i, arm := range []string{"a", "b"} {
		obs := r.trial(arm, 0)
		want(t, obs, StatusOK)
		if obs.Values["ops"] != float64(i+1) {
			t.Errorf("arm %s ran %v", arm, obs.Values)
		}
	}
	if err := r.Close(context.Background(), false); err != nil {
		t.Fatal(err)
	}

	// A run that goes on finds its trees, with what was built in them.
	builds := filepath.Join(scratch, "arms", "a", "builds")
	if err := os.WriteFile(filepath.Join(scratch, "arms", "a", "src", "sub", "left"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r = newRigIn(t, dir, o, revArms)
	obs := r.trial("a", 1)
	want(t, obs, StatusOK)
	if obs.Values["ops"] != 1 || read(t, builds) != "x\nx\n" {
		t.Errorf("going on it ran %v after builds %q", obs.Values, read(t, builds))
	}
	if _, err := os.Stat(filepath.Join(scratch, "arms", "a", "src", "sub", "left")); err != nil {
		t.Error("the tree was checked out anew")
	}
	if err := r.Close(context.Background(), false); err != nil {
		t.Fatal(err)
	}

	// A check-out that was cut off is not taken for a tree.
	if err := os.Remove(filepath.Join(scratch, "arms", "a", "src.ready")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(scratch, "arms", "a", "src", "sub", "program")); err != nil {
		t.Fatal(err)
	}
	r = newRigIn(t, dir, o, revArms)
	want(t, r.trial("a", 2), StatusOK)
	os.Unsetenv("GIT_DIR")
	if n := worktrees(t, dir); n != 3 {
		t.Errorf("%d worktrees while it runs", n)
	}
	if err := r.Close(context.Background(), true); err != nil {
		t.Error(err)
	}
	if n := worktrees(t, dir); n != 1 {
		t.Errorf("%d worktrees in the end", n)
	}
}

// A kill in the middle of a check-out leaves an entry that git has locked.
func TestACutOffCheckOutIsMadeAgain(t *testing.T) {
	dir, commits := repo(t)
	scratch := filepath.Join(t.TempDir(), "scratch")
	src := filepath.Join(scratch, "arms", "a", "src")
	if out, err := exec.Command("git", "-C", dir, "worktree", "add", "--detach", "--lock", src, commits[1]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for what, spoil := range map[string]func() error{
		"locked":          func() error { return nil },
		"without its tie": func() error { return os.Remove(filepath.Join(src, ".git")) },
		"gone":            func() error { return os.RemoveAll(src) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(src + ".ready")
		r := newRigIn(t, dir, Options{Dir: filepath.Join(dir, "sub"), Scratch: scratch, Revs: map[string]string{"a": commits[0]}}, revArms)
		if o := r.trial("a", 0); o.Status != StatusOK || o.Values["ops"] != 1 {
			t.Errorf("%s: %s %v %q", what, o.Status, o.Values, o.Notes)
		}
		if err := r.Close(context.Background(), false); err != nil {
			t.Error(err)
		}
	}
}

func TestARevisionThatIsNotThere(t *testing.T) {
	dir, _ := repo(t)
	p := parse(t, `  - {name: a, rev: no-such-branch, command: ["true"]}
  - {name: b, command: ["true"]}`)
	before := children(t)
	_, err := NewExecutor(p, Options{Dir: dir, Scratch: filepath.Join(t.TempDir(), "scratch")})
	if err == nil || !strings.Contains(err.Error(), "arm a: git worktree for no-such-branch") {
		t.Errorf("%v", err)
	}
	if now := children(t); now != before {
		t.Errorf("a launcher was left behind: %q, before %q", now, before)
	}
	if _, err := NewExecutor(p, Options{Dir: t.TempDir(), Scratch: filepath.Join(t.TempDir(), "scratch")}); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("outside of any repository: %v", err)
	}
}

func children(t *testing.T) string {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(all) == 0 {
		t.Skip("this kernel does not list children")
	}
	s := ""
	for _, path := range all {
		b, _ := os.ReadFile(path)
		s += string(b)
	}
	return s
}
