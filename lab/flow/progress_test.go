package flow

import (
	"context"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// Whoever watches the records of a run says what the run itself says.
func TestAWatchSaysWhatTheRunSays(t *testing.T) {
	b := newBench(t, told)
	lock := b.freeze()
	watch := NewWatch(b.plan.Protocol)
	if got, want := watch.Progress(), (Progress{Cell: "size=1", Round: 1, Of: 4, Warmup: true, Total: 8}); got != want {
		t.Errorf("before the run: %+v, want %+v", got, want)
	}
	follower := ledger.Follow(lock)
	var chain *os.File
	rounds := 0
	_, err := Run(context.Background(), b.plan, lock, Options{Out: b.path("run"), Events: Events{
		Begin: func(dir string, n int) {
			var err error
			if chain, err = os.Open(b.path("run/" + ledger.ObservationsFile)); err != nil {
				t.Fatal(err)
			}
			if !ledger.Busy(chain) {
				t.Error("nobody is said to write")
			}
		},
		Round: func(own Progress) {
			records, err := follower.Read(chain)
			if err != nil {
				t.Error(err)
			}
			for _, rec := range records {
				watch.Add(rec)
			}
			rounds++
			got := watch.Progress()
			if got.Done != own.Done || got.Total != own.Total {
				t.Errorf("%+v, and the run says %+v", got, own)
			}
			if own.Done < own.Total && (got.Cell != own.Cell || got.Round != own.Round+1) && got.Round != 1 {
				t.Errorf("%+v, and the run says %+v", got, own)
			}
			if own.Done > 1 && own.Done < own.Total && got.Left <= 0 {
				t.Errorf("nothing left of %+v", got)
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	if ledger.Busy(chain) {
		t.Error("somebody is said to write to a finished run")
	}
	if got, want := watch.Progress(), (Progress{Done: 8, Total: 8}); got != want || rounds != 8 || watch.Failed != 0 {
		t.Errorf("at the end: %+v, want %+v", got, want)
	}
}

func TestAWatchGuesses(t *testing.T) {
	p, faults := protocol.Parse("exp.yaml", []byte(told), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	w := NewWatch(p)
	schedule := trial.Schedule(p)
	at := start
	round := func(i int, status trial.Status, took time.Duration) {
		for _, s := range schedule[i].Slots {
			w.Add(ledger.Record{Trial: &trial.Observation{Cell: s.Cell, Round: s.Round, Arm: s.Arm, Start: at, Status: status}})
			at = at.Add(took / time.Duration(len(schedule[i].Slots)))
		}
		w.Add(ledger.Record{Round: &ledger.RoundMark{Cell: schedule[i].Cell, Round: schedule[i].Round}})
	}
	left := func(want time.Duration) {
		t.Helper()
		if got := w.Progress().Left; got != want {
			t.Errorf("%s left, want %s", got, want)
		}
	}
	left(0)
	round(0, trial.StatusOK, 10*time.Second)
	left(0) // no second round has begun yet, so nobody knows how long the first took
	round(1, trial.StatusFailed, 20*time.Second)
	left(6 * 10 * time.Second)
	// A night between two sessions is no round.
	w.Add(ledger.Record{Resume: &ledger.Resumption{}})
	at = at.Add(8 * time.Hour)
	round(2, trial.StatusOK, 10*time.Second)
	left(5 * 10 * time.Second)
	// Neither is a clock that is set back.
	at = at.Add(-time.Hour)
	round(3, trial.StatusOK, 30*time.Second)
	left(4 * 10 * time.Second)
	// Another cell has a pace of its own once it has one.
	round(4, trial.StatusOK, 2*time.Second)
	if got := w.Progress(); got.Cell != "size=2" || got.Round != 2 || got.Warmup || got.Done != 5 {
		t.Errorf("%+v", got)
	}
	round(5, trial.StatusOK, 2*time.Second)
	left(2 * 2 * time.Second)
	if w.Failed != 2 {
		t.Errorf("%d failed", w.Failed)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", time.Millisecond: "1s", 59 * time.Second: "59s", 125 * time.Second: "2m05s", 61 * time.Minute: "1h01m", 100 * time.Hour: "100h00m"} {
		if got := Short(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

// Inspect believes what Verify and Load believe together, and no less.
func TestInspectIsVerifyAndLoad(t *testing.T) {
	b := newBench(t, told)
	b.run("run")
	b.stopAfter(5, b.starting("half", Options{}))
	for _, name := range []string{"run", "half"} {
		o, problems, err := Inspect(os.DirFS(b.path(name)), name)
		if err != nil || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", name, problems, err)
		}
		loaded, err := Load(b.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if string(o.Results.Bytes()) != string(loaded.Results.Bytes()) || !reflect.DeepEqual(o.Verdict, loaded.Verdict) {
			t.Errorf("%s: judged in another way than by Load", name)
		}
		src, err := o.Source()
		if err != nil || src.Env.OS != "linux" {
			t.Errorf("%s: %+v, %v", name, src, err)
		}
	}
	for _, name := range []string{ledger.LockFile, ledger.EnvironmentFile, ledger.ObservationsFile, ledger.SamplesFile, ledger.ResultsFile, ledger.VerdictFile, ledger.SealFile, ledger.ReportFile} {
		damaged := b.path("damaged-" + name)
		if err := os.CopyFS(damaged, os.DirFS(b.path("run"))); err != nil {
			t.Fatal(err)
		}
		text := []byte(slurp(t, damaged+"/"+name))
		text[len(text)/2] ^= 1
		if err := os.WriteFile(damaged+"/"+name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		_, want, err := Verify(damaged)
		if err != nil || len(want) == 0 {
			t.Fatalf("%s: %v, %v", name, want, err)
		}
		if o, got, err := Inspect(os.DirFS(damaged), damaged); o != nil || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, %v; Verify says %v", name, o, got, err, want)
		}
	}
	if o, problems, err := Inspect(os.DirFS(t.TempDir()), "empty"); o != nil || problems != nil || err == nil {
		t.Errorf("empty: %v, %v, %v", o, problems, err)
	}
}
