package browser

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// One browser serves all tests of the package, each page in a tab of its own.
var shared struct {
	once sync.Once
	b    *Browser
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.b != nil {
		shared.b.Close()
	}
	os.Exit(code)
}

// start skips the test where there is no Chromium, but not in CI, where a test
// that is skipped would be a gap that nobody sees.
func start(t *testing.T) *Browser {
	t.Helper()
	shared.once.Do(func() { shared.b, shared.err = Start(context.Background()) })
	switch {
	case shared.err == nil:
		return shared.b
	case errors.Is(shared.err, ErrMissing) && os.Getenv("CI") == "":
		t.Skipf("pages are not looked at in a browser: %v", shared.err)
	default:
		t.Fatal(shared.err)
	}
	return nil
}

func TestNoBrowserIsSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b, err := Start(t.Context())
	if !errors.Is(err, ErrMissing) {
		t.Fatalf("%v, %v", b, err)
	}
}
