package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A twin is a history under testdata/<checker>, named by the verdict it must
// get: ok-x.json, and beside it bad-x.json or unknown-x.json, as like it as the
// defect allows. A checker that takes everything for good fails on the
// second, one that refuses everything on the first.
type twin struct {
	Why     string          `json:"why"`
	Message string          `json:"message"` // of the result; empty for ok
	Example string          `json:"example"` // in one of the examples; only for bad
	History json.RawMessage `json:"history"`
}

// least is how many defects must be planted for each checker, so that a folder
// that moved away cannot make this test pass.
var twinFolders = map[string]struct {
	least int
	judge func(*testing.T, []byte) Result
}{
	"set": {8, func(t *testing.T, raw []byte) Result {
		return SetExact("set", decode[SetHistory[string]](t, raw))
	}},
	"map": {5, func(t *testing.T, raw []byte) Result {
		return MapExact("map", decode[MapHistory[string, int]](t, raw))
	}},
	"staleness": {8, func(t *testing.T, raw []byte) Result {
		return Staleness("staleness", decode[StaleHistory](t, raw))
	}},
	"register": {8, func(t *testing.T, raw []byte) Result {
		return LinearizableOps("register", Register("0"), decode[[]Op](t, raw), time.Minute)
	}},
	"dictionary": {6, func(t *testing.T, raw []byte) Result {
		return LinearizableOps("dictionary", Dictionary(), decode[[]Op](t, raw), time.Minute)
	}},
}

func decode[H any](t *testing.T, raw []byte) H {
	t.Helper()
	var h H
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTwins(t *testing.T) {
	for folder, checker := range twinFolders {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		planted := 0
		for _, file := range files {
			want, rest, _ := strings.Cut(filepath.Base(file), "-")
			if want != "ok" {
				planted++
				good := filepath.Join("testdata", folder, "ok-"+rest)
				if _, err := os.Stat(good); err != nil {
					t.Errorf("%s has no good twin: %v", file, err)
				}
			}
			t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				tw := decode[twin](t, raw)
				judgeTwin(t, want, tw, checker.judge(t, tw.History))
			})
		}
		if planted < checker.least {
			t.Errorf("%s: %d planted defects, want at least %d", folder, planted, checker.least)
		}
	}
}

func judgeTwin(t *testing.T, want string, tw twin, got Result) {
	verdict, known := map[string]Verdict{"ok": Pass, "bad": Fail, "unknown": Unknown}[want]
	if !known {
		t.Fatalf("no verdict is called %q", want)
	}
	if got.Verdict != verdict {
		t.Fatalf("%s: %v %q %q, want %v", tw.Why, got.Verdict, got.Message, got.Examples, verdict)
	}
	if tw.Message == "" != (verdict == Pass) || !strings.Contains(got.Message, tw.Message) {
		t.Errorf("message %q, want %q", got.Message, tw.Message)
	}
	if verdict == Fail {
		all := strings.Join(got.Examples, "\n")
		if tw.Example == "" || !strings.Contains(all, tw.Example) {
			t.Errorf("examples\n%s\nwant %q", all, tw.Example)
		}
	}
}
