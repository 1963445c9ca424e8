package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func comparisonText(t *testing.T, runs ...*Source) string {
	t.Helper()
	var b bytes.Buffer
	if err := Compare(&b, runs); err != nil {
		t.Fatal(err)
	}
	wantNarrow(t, b.String(), defaultWidth)
	return b.String()
}

// shifted is a run whose treatment is slower in every round by so much.
func shifted(t *testing.T, factor float64) *Source {
	return makeRun(t, writePath, made{trial: writePathTrial(factor)})
}

func TestCompare(t *testing.T) {
	runs := []*Source{goRun(t), shifted(t, 0.97), shifted(t, 1.004), abortRun(t)}
	text := comparisonText(t, runs...)
	golden(t, "compare.txt", []byte(text))
	if again := comparisonText(t, runs...); again != text {
		t.Error("the same runs give other bytes")
	}
}

func TestCompareOfMatrix(t *testing.T) {
	other := makeRun(t, matrix, made{trial: func(slot trial.Slot, o *trial.Observation) {
		matrixTrial(slot, o)
		o.Values["conflicts"] = 40
	}})
	text := comparisonText(t, matrixRun(t), other)
	for _, want := range []string{
		"gate conflicts in size=1,keys=hot differs: broken, holds",
		"the outcome differs: REGRESSION, PROCEED",
		"latency in size=16,keys=uniform-8",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q\n%s", want, text)
		}
	}
}

func TestCompareWarnsOfAnotherProtocol(t *testing.T) {
	other := makeRun(t, strings.Replace(writePath, "rounds: 12", "rounds: 13", 1), made{trial: writePathTrial(0.82)})
	if text := comparisonText(t, goRun(t), other); !strings.Contains(text, "WARNING     run 2 has another protocol under the same name") {
		t.Error(text)
	}
}

func TestCompareOfRunsWithoutFigures(t *testing.T) {
	text := comparisonText(t, abortRun(t), abortRun(t))
	if !strings.Contains(text, "figures withheld") || strings.Contains(text, "max/min") {
		t.Error(text)
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, runs := range [][]*Source{nil, {goRun(t)}, {goRun(t), matrixRun(t)}} {
		if err := Compare(io.Discard, runs); !errors.Is(err, ErrNotComparable) {
			t.Errorf("%d runs: %v", len(runs), err)
		}
	}
}

func TestCompareOfHostileRuns(t *testing.T) {
	comparisonText(t, hostileRun(t, check.Pass), hostileRun(t, check.Pass), hostileRun(t, check.Fail))
	p := hostileProtocol(t)
	p.Factors = append(p.Factors, protocol.Factor{Name: "longer", Levels: []protocol.Scalar{protocol.Scalar(strings.Repeat("level", 60))}})
	comparisonText(t, makeRunOf(t, p, made{trial: hostileTrial(check.Pass)}), makeRunOf(t, p, made{trial: hostileTrial(check.Pass)}))
}
