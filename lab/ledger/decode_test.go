package ledger

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assaylab/assay/lab/check"
	"github.com/assaylab/assay/lab/trial"
)

func drawRecord(t *rapid.T) Record {
	word := rapid.OneOf(rapid.StringMatching(`[a-z=,.0-9 ]{0,12}`), rapid.String())
	plain := rapid.StringMatching(`[a-z=,.0-9 ]{0,12}`)
	counts := rapid.MapOfN(word, rapid.Int(), 0, 3)
	figures := rapid.MapOfN(word, rapid.Float64Range(-1e300, 1e300), 0, 4)
	if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
		return Record{Kind: KindRound, Round: &RoundMark{Cell: word.Draw(t, "cell"), Round: rapid.Int().Draw(t, "round"), Warmup: rapid.Bool().Draw(t, "warmup"), Durable: rapid.IntRange(0, 9).Draw(t, "durable")}}
	}
	if rapid.Bool().Draw(t, "plain") {
		word = plain
		counts = rapid.MapOfN(plain, rapid.Int(), 0, 3)
		figures = rapid.MapOfN(plain, rapid.Float64Range(-1e300, 1e300), 0, 4)
	}
	small := rapid.Int64Range(-2, 1<<62)
	o := &trial.Observation{
		Cell: word.Draw(t, "cell"), Round: rapid.Int().Draw(t, "round"), Warmup: rapid.Bool().Draw(t, "warmup"), Slot: rapid.IntRange(0, 5).Draw(t, "slot"),
		Arm: word.Draw(t, "arm"), Seed: rapid.Uint64().Draw(t, "seed"), Start: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "start"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
		Status: trial.Status(word.Draw(t, "status")), Exit: rapid.IntRange(-1, 255).Draw(t, "exit"), Signal: word.Draw(t, "signal"),
		Usage: trial.Usage{
			Wall: time.Duration(small.Draw(t, "wall")), User: time.Duration(small.Draw(t, "user")), System: time.Duration(small.Draw(t, "system")),
			PeakMemory: rapid.Int64Range(0, 3).Draw(t, "peak"), Switches: rapid.Int64Range(0, 3).Draw(t, "switches"), Faults: rapid.Int64Range(0, 3).Draw(t, "faults"),
		},
		Values: figures.Draw(t, "values"), Bench: figures.Draw(t, "bench"),
		Notes: rapid.SliceOfN(word, 0, 2).Draw(t, "notes"), Garbled: rapid.Bool().Draw(t, "garbled"), Stderr: word.Draw(t, "stderr"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "sets") {
		o.Samples = append(o.Samples, trial.SampleRef{Name: word.Draw(t, "name"), Offset: small.Draw(t, "offset"), Count: rapid.IntRange(0, 9).Draw(t, "count"), SHA256: word.Draw(t, "sha")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "checks") {
		o.Checks = append(o.Checks, check.Result{
			Name: word.Draw(t, "name"), Verdict: check.Verdict(rapid.IntRange(0, 3).Draw(t, "verdict")), Message: word.Draw(t, "message"), Operations: rapid.IntRange(0, 9).Draw(t, "operations"),
			Kinds: counts.Draw(t, "kinds"), Faults: counts.Draw(t, "faults"), Examples: rapid.SliceOfN(word, 0, 2).Draw(t, "examples"),
		})
	}
	return Record{Kind: KindTrial, Trial: o}
}

// The fast way reads what encoding/json reads, or leaves it to that.
func TestDecodeReadsWhatJSONReads(t *testing.T) {
	fast, slow := 0, 0
	one := func(t *rapid.T) {
		rec := drawRecord(t)
		line, _, err := encodeLine(string(bytes.Repeat([]byte("0"), hashLen)), rapid.IntRange(0, 1e6).Draw(t, "seq"), &rec)
		if err != nil {
			t.Fatal(err)
		}
		line = line[:len(line)-1]
		if rapid.Bool().Draw(t, "damage") {
			at := rapid.IntRange(len(prevStart)+hashLen+len(seqStart), len(line)-len(sumStart)-hashLen-len(sumEnd)-1).Draw(t, "at")
			line[at] = rapid.OneOf(rapid.SampledFrom([]byte(`{}[]",:0123456789.-+eE\ tfn`)), rapid.Byte()).Draw(t, "byte")
		}
		var want, got Record
		wrong := json.Unmarshal(line, &want)
		if c := (cursor{b: line}); !c.record(&got) {
			slow++
			return
		}
		fast++
		if wrong != nil {
			t.Fatalf("read what is no JSON (%v): %s", wrong, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is\n%+v %+v\nnot\n%+v %+v", line, got.Trial, got.Round, want.Trial, want.Round)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range map[bool]int{false: 20, true: 500}[long()] {
			one(t)
		}
	})
	t.Logf("%d read the fast way, %d not", fast, slow)
	if fast < slow/4 {
		t.Errorf("only %d of %d were read the fast way", fast, fast+slow)
	}
}

// What a run really writes goes the fast way.
func TestUsualRecordsAreReadFast(t *testing.T) {
	dir := t.TempDir()
	finished(t, dir)
	for _, line := range chainLines(t, dir) {
		var rec Record
		usual := bytes.Contains(line, []byte(`"kind":"trial"`)) || bytes.Contains(line, []byte(`"kind":"round"`))
		if c := (cursor{b: line[:len(line)-1]}); c.record(&rec) != usual {
			t.Errorf("usual %v: %s", usual, line)
		}
	}
}
