package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// worktree checks the arm's revision out, unless an earlier part of this run
// already did, and says where the arm runs in it. The mark beside it tells a
// whole check-out from one that was cut off.
func (e *Executor) worktree(s *armState, commit string) error {
	src, mark := filepath.Join(s.home, "src"), filepath.Join(s.home, "src.ready")
	// The protocol's folder may be below the top of the repository.
	prefix, err := e.git("rev-parse", "--show-prefix")
	if err != nil {
		return fmt.Errorf("git worktree for %s: %w", s.arm.Rev, err)
	}
	s.dir = filepath.Join(src, prefix, s.arm.Dir)
	rev := commit
	if rev == "" {
		rev = s.arm.Rev
	}
	if done, err := os.ReadFile(mark); err == nil && string(done) == rev {
		return nil
	}
	if _, err := os.Lstat(src); err == nil {
		_, _ = e.git("worktree", "remove", "--force", "--force", src)
		if err := RemoveAll(src); err != nil {
			return fmt.Errorf("git worktree for %s: %w", s.arm.Rev, err)
		}
	}
	// Twice: an add that was killed leaves its entry locked.
	if _, err := e.git("worktree", "add", "--detach", "--force", "--force", src, rev); err != nil {
		return fmt.Errorf("git worktree for %s: %w", s.arm.Rev, err)
	}
	return os.WriteFile(mark, []byte(rev), 0o644)
}

func (e *Executor) dropWorktree(s *armState) error {
	src := filepath.Join(s.home, "src")
	if _, err := e.git("worktree", "remove", "--force", "--force", src); err != nil {
		return fmt.Errorf("removing the worktree of arm %s: %w", s.arm.Name, err)
	}
	return nil
}

func (e *Executor) git(args ...string) (string, error) {
	return Git(context.Background(), e.dir, args...)
}

// Git runs git in a folder and returns what it printed, without the space around it. A
// repository that this program's environment names, as a hook's does, is not heeded.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
