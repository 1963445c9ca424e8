package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func wantNoGit(t *testing.T, g GitState) {
	t.Helper()
	if g.State != Unavailable || g.Revision != "" || g.Dirty || g.Detail == "" {
		t.Errorf("%+v", g)
	}
}

func TestGitRefuses(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	dir := t.TempDir()
	wantNoGit(t, Git(""))
	wantNoGit(t, Git(dir))
	wantNoGit(t, Git(filepath.Join(dir, "absent")))
	t.Setenv("PATH", dir)
	if g := Git(dir); g.Detail != "git is not installed" {
		t.Errorf("%+v", g)
	}
}

func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	wantNoGit(t, Git(dir))
	write(t, filepath.Join(dir, "sub", "f"), "1")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "m")
	clean := Git(dir)
	if clean.State != OK || len(clean.Revision) != 40 || clean.Dirty {
		t.Errorf("%+v", clean)
	}
	other := t.TempDir()
	gitIn(t, other, "init", "-q")
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	if g := Git(dir); g != clean {
		t.Errorf("the environment outweighs the folder: %+v", g)
	}
	os.Unsetenv("GIT_DIR")
	gitIn(t, dir, "config", "status.showUntrackedFiles", "no")
	write(t, filepath.Join(dir, "g"), "2")
	if g := Git(filepath.Join(dir, "sub")); !g.Dirty || g.Revision != clean.Revision {
		t.Errorf("%+v", g)
	}
	wantNoGit(t, Git(filepath.Join(dir, ".git")))
}
