package host

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// GitState is which source a folder holds. The zero GitState is unavailable.
type GitState struct {
	State State `json:"state"`
	// Revision is the full hash of the commit that is checked out.
	Revision string `json:"revision,omitempty"`
	// Dirty says that the folder's repository has changes or untracked files.
	Dirty bool `json:"dirty"`
	// Detail says why the state is unavailable.
	Detail string `json:"detail,omitempty"`
}

// Git asks git which commit a folder is at and whether anything in its
// repository was changed. It is unavailable without git, without a repository
// or a commit, and where git does not answer within ten seconds.
func Git(dir string) GitState {
	if dir == "" {
		return GitState{State: Unavailable, Detail: "no folder is given"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := git(ctx, dir, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return GitState{State: Unavailable, Detail: err.Error()}
	}
	rev := strings.TrimSpace(string(out))
	if raw, err := hex.DecodeString(rev); err != nil || len(raw) != 20 && len(raw) != 32 {
		return GitState{State: Unavailable, Detail: "git named no commit"}
	}
	out, err = git(ctx, dir, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil {
		return GitState{State: Unavailable, Detail: err.Error()}
	}
	return GitState{State: OK, Revision: rev, Dirty: len(bytes.TrimSpace(out)) > 0}
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	// A monitor named in the repository's settings is a program that would be
	// run.
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.WaitDelay = time.Second
	for _, v := range os.Environ() {
		// A hook sets GIT_DIR and the like, which outweigh -C.
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// A status that refreshed the index would write into the folder.
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed")
	case ctx.Err() != nil:
		return nil, errors.New("git did not answer in time")
	}
	// What git says itself has paths in it, which have no place in a report.
	for said, means := range map[string]string{
		"not a git repository": "the folder is in no git repository",
		"cannot change to":     "there is no such folder",
		"single revision":      "no commit is checked out",
		"dubious ownership":    "git distrusts a repository of another user",
		"work tree":            "the folder is in no work tree of git",
	} {
		if strings.Contains(stderr.String(), said) {
			return nil, errors.New(means)
		}
	}
	return nil, fmt.Errorf("git %s failed: %w", args[0], err)
}
