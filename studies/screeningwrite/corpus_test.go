package screeningwrite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/ledger"
)

func TestReadRIS(t *testing.T) {
	const file = "\ufeffTY  - JOUR\r\nAU  - Shannon, Claude E.\r\nAU  - Other, A.\r\nTI  - A Mathematical Theory\r\n      of Communication\r\nT2  - Bell System\r\nER  - \r\n\r\n" +
		"TY  - BOOK\nT1  - Ein Titel mit Ü\nKW  - one\nKW  - two\n   goes on\nER  -\nTY  - GEN\nER  - \n"
	got, err := readRIS(strings.NewReader(file))
	if want := []string{"A Mathematical Theory of Communication", "Ein Titel mit Ü", "untitled 3"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for name, bad := range map[string]string{
		"no end":     "TY  - JOUR\nTI  - x\n",
		"two begins": "TY  - JOUR\nTY  - JOUR\nER  - \n",
		"outside":    "TI  - x\nTY  - JOUR\nER  - \n",
		"other text": "<html>\n",
		"not UTF-8":  "TY  - JOUR\nTI  - \xff\nER  - \n",
	} {
		if got, err := readRIS(strings.NewReader(bad)); err == nil {
			t.Errorf("%s is read as %q", name, got)
		}
	}
}

func TestReadCSV(t *testing.T) {
	got, err := readCSV(strings.NewReader("\ufeffID,Title,Year\n1,\"Of mice, and\nmen\",1937\n2,,1938\n"))
	if want := []string{"Of mice, and\nmen", "untitled 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "no title": "id,name\n1,x\n", "ragged": "id,title\n1\n", "quote": "title\n\"x\n",
	} {
		if got, err := readCSV(strings.NewReader(bad)); err == nil {
			t.Errorf("%s is read as %q", name, got)
		}
	}
}

func FuzzReadRIS(f *testing.F) {
	f.Add("TY  - JOUR\nTI  - x\nER  - \n")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<16 {
			return
		}
		titles, err := readRIS(strings.NewReader(s))
		if err == nil && len(titles) > strings.Count(s, "TY  -") {
			t.Errorf("%d titles of %q", len(titles), s)
		}
		for _, title := range titles {
			if title == "" || !utf8.ValidString(shortTitle(title)) || len(shortTitle(title)) > 80 {
				t.Errorf("title %q", title)
			}
		}
	})
}

// TestALibraryIsTheCorpus runs the large regime on the records of a file.
func TestALibraryIsTheCorpus(t *testing.T) {
	dir := t.TempDir()
	var ris strings.Builder
	for i := range 25 {
		fmt.Fprintf(&ris, "TY  - JOUR\nTI  - Paper %d\nER  - \n", i)
	}
	file := filepath.Join(dir, "library.ris")
	if err := os.WriteFile(file, []byte(ris.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := carryOut(t, nil, arms(), 1, small("corpus", file), cellName(targetSkewed, 50, "off", "library"))
	for _, name := range []string{checkPersisted, checkCauses, checkBefore, checkAfter, checkTransactional} {
		if r := worst(o)[name]; r.Verdict != check.Pass {
			t.Errorf("%s is %s: %s", name, r.Verdict, r.Message)
		}
	}
	if !slices.ContainsFunc(o.Run.Records, func(r ledger.Record) bool {
		return r.Note != nil && strings.Contains(r.Note.Text, "25 records, SHA-256")
	}) {
		t.Error("the run does not say what its corpus was")
	}
	for _, bad := range []string{"missing.ris", "library.txt", "few.csv"} {
		path := filepath.Join(dir, bad)
		if bad != "missing.ris" {
			if err := os.WriteFile(path, []byte("title\none\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := corpus(plan{corpus: path}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
