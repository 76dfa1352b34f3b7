package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stasisd/stasis/session"
)

// catalogueTimeout limits how long a scrape waits for the catalogue.
const catalogueTimeout = 2 * time.Second

// Watched are the sources of what is read at each scrape.
type Watched struct {
	Counts func() session.Counts
	// Held returns the memory of messages, bodies and answers that are arriving or waiting,
	// in bytes, and how many clients were cut off because it was used up.
	Held func() (bytes, evicted int)
	// Deliveries counts the webhooks that wait to be sent, and those that were given up.
	Deliveries func(context.Context) (pending, failed int, err error)
}

// watch is Watched as a collector.
type watch struct {
	Watched
	sessions, rescuing, chromes, held, evicted, deliveries *prometheus.Desc
}

func (w watch) Describe(to chan<- *prometheus.Desc) {
	to <- w.sessions
	to <- w.rescuing
	to <- w.chromes
	to <- w.held
	to <- w.evicted
	to <- w.deliveries
}

func (w watch) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	n := w.Counts()
	gauge(w.sessions, n.Live)
	gauge(w.rescuing, n.Rescuing)
	gauge(w.chromes, n.Parked, "parked")
	gauge(w.chromes, n.Spares, "spare")
	gauge(w.chromes, n.Standbys, "standby")
	bytes, evicted := w.Held()
	gauge(w.held, bytes)
	to <- prometheus.MustNewConstMetric(w.evicted, prometheus.CounterValue, float64(evicted))
	ctx, cancel := context.WithTimeout(context.Background(), catalogueTimeout)
	defer cancel()
	pending, failed, err := w.Deliveries(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(w.deliveries, err)
		return
	}
	gauge(w.deliveries, pending, "pending")
	gauge(w.deliveries, failed, "failed")
}
