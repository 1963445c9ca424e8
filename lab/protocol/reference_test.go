package protocol

import (
	"bytes"
	"os"
	"testing"
)

func TestReferencePageIsCurrent(t *testing.T) {
	const page = "../../docs/protocol.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, Reference(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Reference()) {
		t.Errorf("%s is not what the types say; run: UPDATE_DOCS=1 go test ./lab/protocol -run ReferencePage", page)
	}
}

func TestScopeNamesAreComplete(t *testing.T) {
	if got, want := len(RuleScope("").names()), len(RuleScope("")); got != want {
		t.Errorf("the page names %d of %d names that a rule may use", got, want)
	}
}
