package report

import (
	"math"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/trial"
)

func TestASeriesIsDrawnOverTime(t *testing.T) {
	s := makeRun(t, writePath, made{trial: func(slot trial.Slot, o *trial.Observation) {
		writePathTrial(0.8)(slot, o)
		for second := range 5 {
			if slot.Arm == "treatment" && second == 4 {
				continue // one arm's series is shorter
			}
			o.Bulk = bulk(o.Bulk, "served_per_second", int64(100*second+slot.Round%2*10))
		}
	}})
	cell := &s.Results.Cells[0]
	list := seriesOverTime(s, cell, "served_per_second")
	if len(list) < 2 || len(list[0].values) != 5 || len(list[1].values) != 5 {
		t.Fatalf("series %+v", list)
	}
	for second, v := range list[0].values {
		// The order of seconds is kept; half of the rounds are 10 higher.
		if lo := float64(100 * second); v < lo || v > lo+10 {
			t.Errorf("second %d is %v", second, v)
		}
	}
	if !math.IsNaN(list[1].values[4]) {
		t.Errorf("a second that an arm does not have is %v", list[1].values[4])
	}
	html := htmlOf(t, s)
	for _, want := range []string{"served_per_second over time", "second of the trial"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(html, "Tail of all samples of served_per_second") {
		t.Error("a series is shown as a distribution")
	}
	if len(seriesOverTime(s, cell, "none_per_second")) != 0 {
		t.Error("a series that nobody kept has values")
	}
}
