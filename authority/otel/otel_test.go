package otel_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/authority/otel"
)

func TestDecisionsAreCounted(t *testing.T) {
	reader := sdk.NewManualReader()
	o, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []authority.Event{
		{Decision: authority.Allowed, Role: "admin", Latency: 3 * time.Millisecond},
		{Decision: authority.Allowed, Role: "admin", Latency: 3 * time.Millisecond},
		{Decision: authority.Refused, Role: "admin", Reason: authority.Deadline, Latency: 5 * time.Second},
	} {
		o.Observe(context.Background(), e)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	counts, timed := map[string]int64{}, uint64(0)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					d, _ := p.Attributes.Value(attribute.Key("decision"))
					r, _ := p.Attributes.Value(attribute.Key("reason"))
					counts[d.AsString()+" "+r.AsString()] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					timed += p.Count
				}
			}
		}
	}
	if counts["allowed "] != 2 || counts["refused deadline"] != 1 || timed != 3 {
		t.Errorf("counted %v, timed %d", counts, timed)
	}
}
