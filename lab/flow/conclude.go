package flow

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/report"
	"github.com/assaylab/assay/lab/trial"
)

// Outcome is a run with its results and verdict.
type Outcome struct {
	Run     *ledger.Run
	Results *analysis.Results
	Verdict *gate.Verdict
}

// Source is the outcome as the report wants it.
func (o *Outcome) Source() (*report.Source, error) {
	env, err := o.Run.Environment()
	if err != nil {
		env = &host.Provenance{}
	}
	return &report.Source{Run: o.Run, Env: env, Results: o.Results, Verdict: o.Verdict}, err
}

// ErrUnfinished is returned when a run is to be analysed before its end.
var ErrUnfinished = errors.New("the run has not ended")

// Conclude analyses a run that has ended, decides, writes both and the page, and
// seals the folder.
func Conclude(run *ledger.Run) (*Outcome, error) {
	if !run.Ended() {
		return nil, unfinished(run.Dir, "")
	}
	if !run.Sealed {
		if err := trial.RemoveAll(filepath.Join(run.Dir, ledger.ScratchDir)); err != nil {
			return nil, fmt.Errorf("scratch folder: %w", err)
		}
	}
	o := judge(run)
	if err := run.Finish(o.Results.Bytes(), o.Verdict.Bytes()); err != nil {
		return nil, err
	}
	return o, o.writePage()
}

func unfinished(dir, aside string) error {
	return &protocol.RemedyError{Err: fmt.Errorf("%s: %w%s", dir, ErrUnfinished, aside), What: "go on with", Verb: "resume " + dir}
}

func judge(run *ledger.Run) *Outcome {
	results := analysis.Analyze(run)
	return &Outcome{Run: run, Results: results, Verdict: gate.Decide(run.Protocol, results)}
}

func (o *Outcome) page() ([]byte, error) {
	src, err := o.Source()
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = report.HTML(&page, src)
	return page.Bytes(), err
}

func (o *Outcome) writePage() error {
	page, err := o.page()
	if err != nil {
		return err
	}
	path := filepath.Join(o.Run.Dir, ledger.ReportFile)
	// An archive may be read-only, and the page there the one that is due.
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, page) {
		return nil
	}
	return ledger.WriteFile(path, page)
}

// forgedPage says that the page is not the one that the run gives. The program
// that made the run can say so; another version may draw it otherwise.
func (o *Outcome) forgedPage() bool {
	got, err := o.Run.ReadFile(ledger.ReportFile)
	if err != nil {
		return false
	}
	env, err := o.Run.Environment()
	if err != nil {
		return false
	}
	if sum, err := host.ToolSHA256(); err != nil || sum != env.ToolSHA256 {
		return false
	}
	page, err := o.page()
	return err == nil && !bytes.Equal(got, page)
}

// Analyze judges a run folder again from disk. early allows a run that has not
// ended: the run is then marked exploratory in its ledger, for ever, because
// whoever looks at half of the data can stop when he likes what he sees.
func Analyze(dir string, early bool) (*Outcome, error) {
	run, err := ledger.Open(dir)
	if err != nil {
		return nil, err
	}
	if run.Ended() {
		return Conclude(run)
	}
	if !early {
		return nil, unfinished(dir, " (--early looks at it now, and makes it exploratory for ever)")
	}
	w, err := ledger.Resume(dir, ToolVersion(), time.Now())
	if err != nil {
		return nil, err
	}
	note := &ledger.Note{Time: time.Now().UTC(), Text: "it was analysed before its end", Exploratory: true}
	if err := errors.Join(w.Append(ledger.Record{Kind: ledger.KindNote, Note: note}), w.Close()); err != nil {
		return nil, err
	}
	return judge(w.Run()), nil
}

// Load reads a run and judges it again without writing anything. Of a run that
// has not ended the analysis gives no figures, so that to load one is not to
// look at it.
func Load(dir string) (*Outcome, error) {
	run, err := ledger.Open(dir)
	if err != nil {
		return nil, err
	}
	return judge(run), nil
}

// Verify checks every hash of a run and, for one that has been decided, that
// results and verdict are what the data gives. It returns what is wrong; none
// means that the folder is what was recorded.
func Verify(dir string) (*ledger.Run, []ledger.Problem, error) {
	run, problems, err := ledger.Verify(dir)
	if err != nil || len(problems) > 0 || !run.Ended() {
		return run, problems, err
	}
	return run, judge(run).differences(), nil
}

// Inspect is Verify and Load in one, for a reader who trusts neither the folder
// nor the way to it: files are read in files and nowhere else, and nothing is
// written. name is what messages call the folder. There is an outcome only
// where no problem was found.
func Inspect(files fs.FS, name string) (*Outcome, []ledger.Problem, error) {
	run, problems, err := ledger.VerifyIn(files, name)
	if err != nil || len(problems) > 0 {
		return nil, problems, err
	}
	o := judge(run)
	if run.Ended() {
		problems = o.differences()
	}
	if len(problems) > 0 {
		return nil, problems, nil
	}
	return o, nil, nil
}

// differences are where the files that stand in the folder of a run that has
// ended are not what analysing its data gives.
func (o *Outcome) differences() (problems []ledger.Problem) {
	for _, f := range []struct {
		name string
		want []byte
	}{{ledger.ResultsFile, o.Results.Bytes()}, {ledger.VerdictFile, o.Verdict.Bytes()}} {
		got, err := o.Run.ReadFile(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !o.Run.Sealed:
		case err != nil:
			problems = append(problems, ledger.Problem{File: f.name, Message: err.Error()})
		case !bytes.Equal(got, f.want):
			problems = append(problems, ledger.Problem{File: f.name, Message: fmt.Sprintf("is not what analysing the data gives (line %d differs)", firstDifference(got, f.want))})
		}
	}
	if len(problems) == 0 && o.Run.Sealed && o.forgedPage() {
		problems = append(problems, ledger.Problem{File: ledger.ReportFile, Message: "is not the page that the run gives; make it again with: report RUN --format html"})
	}
	return problems
}

func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return bytes.Count(a[:n], []byte("\n")) + 1
}
