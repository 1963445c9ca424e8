// Package otel counts and times the decisions of authority as OpenTelemetry metrics.
// It knows events, and must never know a request or a record.
package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/assaylab/assay/authority"
)

// Observer is a pair of instruments:
//
//	authority.decisions       counter, attributes decision, role, reason
//	authority.read.duration   histogram of the read's latency in s, attribute decision
type Observer struct {
	decisions metric.Int64Counter
	latency   metric.Float64Histogram
}

// New makes the instruments. It returns the meter's error where they cannot be made.
func New(meter metric.Meter) (*Observer, error) {
	decisions, err := meter.Int64Counter("authority.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions on requests, by outcome, required role and reason of a refusal."))
	if err != nil {
		return nil, err
	}
	latency, err := meter.Float64Histogram("authority.read.duration", metric.WithUnit("s"),
		metric.WithDescription("Latency of the read that decided."),
		metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	if err != nil {
		return nil, err
	}
	return &Observer{decisions, latency}, nil
}

// Observe is for Guard.Observe.
func (o *Observer) Observe(ctx context.Context, e authority.Event) {
	decision := attribute.String("decision", e.Decision.String())
	o.decisions.Add(ctx, 1, metric.WithAttributes(decision, attribute.String("role", e.Role), attribute.String("reason", string(e.Reason))))
	o.latency.Record(ctx, e.Latency.Seconds(), metric.WithAttributes(decision))
}
