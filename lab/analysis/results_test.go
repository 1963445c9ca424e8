package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

func TestNumbersSurviveJSON(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 1e-320, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, math.Inf(1), math.Inf(-1), math.NaN()} {
		var box struct {
			N Number
			L []Number
		}
		b, err := json.Marshal(map[string]any{"N": Number(f), "L": []Number{Number(f)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &box); err != nil {
			t.Fatal(err)
		}
		for _, n := range []Number{box.N, box.L[0]} {
			if math.Float64bits(float64(n)) != math.Float64bits(f) && !(math.IsNaN(f) && math.IsNaN(float64(n))) {
				t.Errorf("%v came back as %v from %s", f, n, b)
			}
		}
	}
	for _, bad := range []string{`"nan"`, `"Infinity"`, `true`, `"1"`, `{}`} {
		var n Number
		if err := json.Unmarshal([]byte(bad), &n); err == nil {
			t.Errorf("%s was read as %v", bad, n)
		}
	}
}

func TestResultsSurviveJSON(t *testing.T) {
	run, _ := draws(t, 50)
	r := Analyze(run)
	var back Results
	if err := json.Unmarshal(r.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Bytes(), r.Bytes()) {
		t.Error("results.json reads back as something else")
	}
}

// busy is a run with everything in it that results are made from.
func busy(t *testing.T, bad bool) *ledger.Run {
	p := plan(t, head+`
factors: [{name: size, levels: [1, 2]}, {name: keys, levels: [hot, cold]}]
design: {rounds: 6, warmup: 1, seed: 7}
metrics:
  - {name: ops, better: higher, source: json}
  - {name: lat, better: lower, source: samples, quantile: 0.9}
  - {name: wait, better: lower, source: samples, quantile: 0.5}
checks:
  - {name: each, scope: trial, shell: "true"}
  - {name: round, scope: round, shell: "true"}
  - {name: cell, scope: cell, shell: "true"}
  - {name: run, scope: run, shell: "true"}
primary: {metric: ops}
`)
	run := measure(t, p, func(s trial.Slot, i int, o *trial.Observation) {
		o.Values = map[string]float64{"ops": 100 + noise(armNo(s), i, len(s.Cell))}
		o.Bulk = map[string][]int64{}
		for j := range 20 {
			for no, name := range []string{"lat", "wait"} {
				o.Bulk[name] = append(o.Bulk[name], latency(armNo(s), i, j, no))
			}
		}
		if bad && noise(i, armNo(s), len(s.Cell)) > 0.3 {
			o.Status, o.Notes = trial.StatusFailed, []string{s.Cell + s.Arm}
			o.Checks = append(o.Checks, check.Result{Name: "b" + s.Arm, Verdict: check.Fail, Message: s.Cell}, check.Result{Name: "a" + s.Arm, Verdict: check.Fail, Message: s.Arm})
			for k := range o.Checks {
				o.Checks[k].Examples = []string{s.Cell, s.Arm}
			}
		}
	})
	for _, rec := range run.Records {
		if rec.Check != nil && bad {
			rec.Check.Result.Verdict, rec.Check.Result.Message = check.Unknown, "nothing seen in "+rec.Check.Cell
		}
	}
	windows(run, p.Host, []host.Reading{read("steal", 1)}, []host.Reading{read("psi_io", 2)})
	return run
}

func TestTheSameRunGivesTheSameBytes(t *testing.T) {
	for _, bad := range []bool{false, true} {
		run := busy(t, bad)
		want := Analyze(run).Bytes()
		if !bytes.Equal(want, Analyze(run).Bytes()) {
			t.Fatalf("bad %v: the second analysis differs", bad)
		}
		// Which cell ran first is no figure.
		rng := rand.New(rand.NewPCG(3, 4))
		for range 5 {
			shuffled := *run
			shuffled.Records = shuffleCells(rng, run.Records)
			if got := Analyze(&shuffled).Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("bad %v: the order of cells shows in results.json", bad)
			}
		}
	}
}

// shuffleCells interleaves the records of different cells at random and keeps
// the order within each.
func shuffleCells(rng *rand.Rand, records []ledger.Record) []ledger.Record {
	cell := func(rec ledger.Record) string {
		switch {
		case rec.Trial != nil:
			return rec.Trial.Cell
		case rec.Check != nil && rec.Check.Cell != "":
			return rec.Check.Cell
		}
		return ""
	}
	queues := map[string][]ledger.Record{}
	var order []string
	for _, rec := range records {
		if c := cell(rec); c != "" {
			queues[c] = append(queues[c], rec)
			order = append(order, c)
		}
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var out []ledger.Record
	for _, rec := range records {
		if cell(rec) == "" {
			out = append(out, rec)
			continue
		}
		c := order[0]
		order = order[1:]
		out = append(out, queues[c][0])
		queues[c] = queues[c][1:]
	}
	return slices.Clip(out)
}

func TestLookupsOfWhatIsNotThere(t *testing.T) {
	r := Analyze(measure(t, plan(t, simple), steady))
	if r.Cell("none") != nil || r.Cell("none").Metric("ops") != nil || r.Cell("all").Metric("none").Arm("old") != nil ||
		r.Cell("all").Metric("none").Against("new") != nil || r.Cell("all").Metric("ops").Against("old") != nil || r.Cell("all").Metric("ops").Arm("none") != nil {
		t.Error("something was found")
	}
}
