package prom_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/authority/prom"
)

func TestDecisionsAreCounted(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	o, err := prom.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []authority.Event{
		{Decision: authority.Allowed, Role: "admin", Latency: 3 * time.Millisecond},
		{Decision: authority.Allowed, Role: "admin", Latency: 3 * time.Millisecond},
		{Decision: authority.Denied, Role: "admin"},
		{Decision: authority.Refused, Role: "admin", Reason: authority.Deadline, Latency: 5 * time.Second},
	} {
		o.Observe(context.Background(), e)
	}
	want := `
# HELP authority_decisions_total Decisions on requests, by outcome, required role and reason of a refusal.
# TYPE authority_decisions_total counter
authority_decisions_total{decision="allowed",reason="",role="admin"} 2
authority_decisions_total{decision="denied",reason="",role="admin"} 1
authority_decisions_total{decision="refused",reason="deadline",role="admin"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "authority_decisions_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "authority_read_seconds"); err != nil || n != 3 {
		t.Errorf("%d histograms, %v", n, err)
	}
	if _, err := prom.New(reg); err == nil {
		t.Error("a second observer in one registry is no error")
	}
}

func BenchmarkObserve(b *testing.B) {
	o, err := prom.New(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	e := authority.Event{Decision: authority.Allowed, Role: "admin", Latency: time.Millisecond}
	for b.Loop() {
		o.Observe(context.Background(), e)
	}
}
