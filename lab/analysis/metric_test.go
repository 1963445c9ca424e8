package analysis

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

func TestValueOfEverySourceInEveryUnit(t *testing.T) {
	o := &trial.Observation{
		Status: trial.StatusOK, Exit: 3,
		Usage:  trial.Usage{Wall: 1500 * time.Millisecond, User: 400 * time.Millisecond, System: 100 * time.Millisecond, PeakMemory: 3 << 20, Switches: 7},
		Values: map[string]float64{"ops": 12.5, "zero": 0},
		Bench:  map[string]float64{"Sort ns/op": 812, "Sort B/op": 64},
	}
	samples := func(name string) ([]int64, error) {
		return map[string][]int64{"lat": {10, 20, 30, 40}}[name], nil
	}
	for _, c := range []struct {
		yaml string
		want float64
	}{
		{"{name: m, better: lower, source: wall}", 1.5},
		{"{name: m, better: lower, source: wall, unit: s}", 1.5},
		{"{name: m, better: lower, source: wall, unit: ms}", 1500},
		{"{name: m, better: lower, source: wall, unit: us}", 1.5e6},
		{"{name: m, better: lower, source: wall, unit: µs}", 1.5e6},
		{"{name: m, better: lower, source: wall, unit: ns}", 1.5e9},
		{"{name: m, better: lower, source: user, unit: ms}", 400},
		{"{name: m, better: lower, source: system, unit: ms}", 100},
		{"{name: m, better: lower, source: cpu, unit: ms}", 500},
		{"{name: m, better: lower, source: peak_memory}", 3},
		{"{name: m, better: lower, source: peak_memory, unit: B}", 3 << 20},
		{"{name: m, better: lower, source: peak_memory, unit: KiB}", 3 << 10},
		{"{name: m, better: lower, source: peak_memory, unit: GiB}", 3.0 / 1024},
		{"{name: m, better: lower, source: exit}", 3},
		{"{name: m, better: lower, source: switches}", 7},
		{"{name: ops, better: higher, source: json}", 12.5},
		{"{name: m, better: higher, source: json, key: ops}", 12.5},
		{"{name: m, better: higher, source: json, key: zero}", 0},
		// The unit of what an arm reports is a word for the table, never a factor.
		{"{name: ops, better: higher, source: json, unit: ms}", 12.5},
		{"{name: m, better: lower, source: gobench, key: Sort, unit: ns/op}", 812},
		{"{name: m, better: lower, source: gobench, key: Sort, unit: B/op}", 64},
		{"{name: lat, better: lower, source: samples, quantile: 0.5}", 25},
		{"{name: m, better: lower, source: samples, key: lat, quantile: 1, unit: ms}", 40},
		{"{name: m, better: lower, source: samples, key: lat, quantile: 0}", 10},
	} {
		m := metric(t, c.yaml)
		got, missing := Value(m, o, samples)
		if missing != "" || math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%s: got %v %q, want %v", c.yaml, got, missing, c.want)
		}
	}
}

func TestValueSaysWhyItIsMissing(t *testing.T) {
	ok := trial.Observation{Status: trial.StatusOK}
	ended := func(s trial.Status) trial.Observation {
		return trial.Observation{Status: s, Exit: -1, Usage: trial.Usage{Wall: time.Second, PeakMemory: 1}, Values: map[string]float64{"ops": 1}}
	}
	none := func(string) ([]int64, error) { return nil, nil }
	cases := []struct {
		name    string
		yaml    string
		o       trial.Observation
		samples func(string) ([]int64, error)
		want    string
	}{
		{"no key", "{name: ops, better: higher, source: json}", ok, none, `the arm reported no number under the key "ops"`},
		{"no benchmark", "{name: Sort, better: lower, source: gobench, unit: ns/op}", ok, none, "no benchmark line Sort with the unit ns/op"},
		{"no samples", "{name: lat, better: lower, source: samples, quantile: 0.5}", ok, none, `the arm reported no samples "lat"`},
		{"broken samples", "{name: lat, better: lower, source: samples, quantile: 0.5}", ok, func(string) ([]int64, error) { return nil, errors.New("samples were changed") }, "samples were changed"},
		{"memory of a shared process", "{name: m, better: lower, source: peak_memory}", ok, none, "peak memory is not the trial's own"},
		{"no exit status", "{name: m, better: lower, source: exit}", ended(trial.StatusTimeout), none, "the trial has no exit status: timeout"},
		{"unknown source", "", ok, none, "unknown source moon"},
	}
	for _, s := range []trial.Status{trial.StatusFailed, trial.StatusTimeout, trial.StatusNoStart, trial.StatusPrepare, trial.StatusOutput, ""} {
		for _, source := range []string{"wall", "user", "system", "cpu", "peak_memory", "json"} {
			cases = append(cases, struct {
				name    string
				yaml    string
				o       trial.Observation
				samples func(string) ([]int64, error)
				want    string
			}{string(s) + " " + source, "{name: ops, better: lower, source: " + source + "}", ended(s), none, "the trial ended with status " + string(s)})
		}
	}
	for _, c := range cases {
		m := &protocol.Metric{Source: "moon"}
		if c.yaml != "" {
			yaml := c.yaml
			if c.name == "no benchmark" {
				yaml = "{name: sort, key: Sort, better: lower, source: gobench, unit: ns/op}"
			}
			m = metric(t, yaml)
		}
		got, missing := Value(m, &c.o, c.samples)
		if !math.IsNaN(got) || missing != c.want {
			t.Errorf("%s: got %v %q, want NaN %q", c.name, got, missing, c.want)
		}
	}
}

func metric(t testing.TB, yaml string) *protocol.Metric {
	t.Helper()
	p := plan(t, head+"design: {rounds: 3, warmup: 0, seed: 1}\nmetrics:\n  - "+yaml+
		"\n  - {name: other, better: lower, source: wall}\nprimary: {metric: other}\n")
	return &p.Metrics[0]
}

func TestAnExitStatusCountsThatTheArmAllows(t *testing.T) {
	p := plan(t, head+`
design: {rounds: 4, warmup: 0, seed: 1}
metrics: [{name: code, better: lower, source: exit}]
primary: {metric: code}
`)
	r := Analyze(measure(t, p, func(s trial.Slot, i int, o *trial.Observation) { o.Exit = i }))
	if got := r.Cell("all").Metric("code").Arm("old").Values; !slices.Equal(got, []Number{0, 1, 2, 3}) {
		t.Errorf("exit statuses %v", got)
	}
}

func TestWarmupIsNeverAnalysed(t *testing.T) {
	p := plan(t, simple)
	value := func(s trial.Slot, i int) float64 { return 100 + noise(armNo(s), i) }
	quiet := measure(t, p, reports("ops", value))
	loud := measure(t, p, reports("ops", func(s trial.Slot, i int) float64 {
		if s.Warmup {
			return 1e9 * noise(i)
		}
		return value(s, i)
	}))
	a, b := Analyze(quiet), Analyze(loud)
	if string(a.Bytes()) != string(b.Bytes()) {
		t.Error("what a warm-up measured changes the results")
	}
	if tc := a.Trials[0]; tc.Warmup != 2 || tc.Planned != 10 || tc.Status["ok"] != 10 {
		t.Errorf("counted %+v", tc)
	}
}

func TestValuesStandInTheOrderOfRounds(t *testing.T) {
	p := plan(t, simple)
	run := measure(t, p, reports("ops", func(s trial.Slot, i int) float64 { return float64(1000*armNo(s) + i) }))
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(run.Records)-2, func(i, j int) {
		run.Records[i+1], run.Records[j+1] = run.Records[j+1], run.Records[i+1]
	})
	r := Analyze(run)
	for _, arm := range []string{"old", "new"} {
		var want []Number
		for i := range 10 {
			want = append(want, Number(1000*int(arm[0])+i))
		}
		if got := r.Cell("all").Metric("ops").Arm(arm).Values; !slices.Equal(got, want) {
			t.Errorf("%s: %v", arm, got)
		}
	}
}

func TestWhatIsMissingIsCountedAndNeverFilledIn(t *testing.T) {
	p := plan(t, simple)
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"ops": float64(10 + i)}
		switch {
		case s.Arm == "new" && i == 2:
			o.Values["ops"] = math.NaN()
		case s.Arm == "new" && i == 3:
			o.Values["ops"] = math.Inf(1)
		case s.Arm == "new" && i == 5:
			delete(o.Values, "ops")
		}
	})
	a := Analyze(run).Cell("all").Metric("ops").Arm("new")
	if a.N != 7 || len(a.Values) != 10 || a.Sum != 10+11+14+16+17+18+19 {
		t.Errorf("got %+v", a)
	}
	for i, v := range a.Values {
		if gone := i == 2 || i == 3 || i == 5; gone != math.IsNaN(float64(v)) {
			t.Errorf("round %d has %v", i, v)
		}
	}
	want := map[string]int{"the value is not a finite number": 2, `the arm reported no number under the key "ops"`: 1}
	if !maps.Equal(a.Missing, want) {
		t.Errorf("missing %v", a.Missing)
	}
	if a.Drift != nil {
		t.Error("a trend over rounds of which some are missing")
	}
}
