package screening_test

import (
	"slices"
	"testing"

	"github.com/assaylab/assay/screening"
	"github.com/assaylab/assay/screening/tally"
)

func wantCommands(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d commands\n%q\nwant %d\n%q", what, len(got), got, len(want), want)
	}
}

func TestBudgetSourceOnly(t *testing.T) {
	f := begin(t)
	s := f.open(screening.Options{})
	for _, guarded := range []bool{false, true} {
		got := f.seen.during(func() {
			d := decision("s0", "r", true)
			d.Guarded = guarded
			out, err := s.Save(within(t), screening.SourceOnly, d)
			must(t, err)
			if out.Attempts != 1 || out.Entries != 0 || out.Operation.IsZero() {
				t.Errorf("%+v", out)
			}
		})
		wantCommands(t, "source-only", got, []string{"find study", "findAndModify study"})
	}
}

func TestBudgetTransactional(t *testing.T) {
	f := begin(t, tally.ProjectScreening)
	f.mode(screening.ModeTransactional)
	s := f.open(screening.Options{})
	for _, include := range []bool{true, false} {
		got := f.seen.during(func() {
			out, err := s.Save(within(t), screening.Transactional, decision("s0", "r", include))
			must(t, err)
			if out.Entries != 1 {
				t.Errorf("%+v", out)
			}
		})
		wantCommands(t, "transactional", got, []string{
			"find study", "find statisticsGlobalControl", "find statisticsControl", "findAndModify study", "update statisticsControl",
			"find statisticsPublicationGuard", "find statisticsCurrent", "update statisticsCurrent", "update statisticsPublicationGuard",
			"find statisticsSourceOperationReceipt", "find statisticsReceiptRetirement", "insert statisticsSourceOperationReceipt",
			"insert statisticsRevision", "find statisticsNotificationOutbox", "update statisticsNotificationOutbox", "commitTransaction",
		})
		f.parity()
	}
}

func TestBudgetFold(t *testing.T) {
	f := begin(t, tally.ProjectScreening)
	f.mode(screening.ModeFold)
	s := f.open(screening.Options{})
	for _, guarded := range []bool{false, true} {
		got := f.seen.during(func() {
			d := decision("s0", "r", !guarded)
			d.Guarded = guarded
			out, err := s.Save(within(t), screening.Fold, d)
			must(t, err)
			if out.Entries != 1 {
				t.Errorf("%+v", out)
			}
		})
		slices.Sort(got[:3])
		wantCommands(t, "fold", got, []string{"find statisticsControl", "find statisticsGlobalControl", "find study", "findAndModify study"})
	}
	if p := f.parity(); p.Pending != 2 {
		t.Errorf("%d entries are pending, want 2", p.Pending)
	}
	if d := f.drain(); d.Entries != 2 {
		t.Errorf("%+v", d)
	}
	if p := f.parity(); p.Pending != 0 || p.Receipts != 2 {
		t.Errorf("%+v", p)
	}
}
