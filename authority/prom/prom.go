// Package prom counts and times the decisions of authority as Prometheus metrics. It
// knows events, and must never know a request or a record.
package prom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assaylab/assay/authority"
)

// Observer is a pair of metrics:
//
//	authority_decisions_total{decision,role,reason}   counter
//	authority_read_seconds{decision}                  histogram of the read's latency
//
// Roles are those that handlers require, so the number of series is that of the code.
type Observer struct {
	decisions *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

// New registers the metrics. It returns the registry's error where they cannot be.
func New(reg prometheus.Registerer) (*Observer, error) {
	o := &Observer{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authority_decisions_total", Help: "Decisions on requests, by outcome, required role and reason of a refusal.",
		}, []string{"decision", "role", "reason"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authority_read_seconds", Help: "Latency of the read that decided.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"decision"}),
	}
	for _, c := range []prometheus.Collector{o.decisions, o.latency} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Observe is for Guard.Observe.
func (o *Observer) Observe(_ context.Context, e authority.Event) {
	o.decisions.WithLabelValues(e.Decision.String(), e.Role, string(e.Reason)).Inc()
	o.latency.WithLabelValues(e.Decision.String()).Observe(e.Latency.Seconds())
}
