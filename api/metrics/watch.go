package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stasisd/stasis/session"
)

// catalogueTimeout limits how long a scrape waits for the catalogue.
const catalogueTimeout = 2 * time.Second

// Sources are the sources of what is read at each scrape.
type Sources struct {
	Counts func() session.Counts
	// ClientMemory returns the memory of messages, bodies and answers that are arriving or
	// waiting, in bytes, and how many clients were cut off because it was used up.
	ClientMemory func() (bytes, evicted int)
	// EgressRefused counts the packets of browsers that were refused; nil: addresses are not
	// limited.
	EgressRefused func() (uint64, error)
	// Places returns how many more sessions each engine may have; nil: the daemon is no node.
	Places func() map[string]int
	// Deliveries counts the webhooks that wait to be sent, and those that were given up.
	Deliveries func(context.Context) (pending, failed int, err error)
}

// sourceCollector is Sources as a collector.
type sourceCollector struct {
	Sources
	sessions, waiting, free, rescuing, chromes, held, evicted, deliveries, refused *prometheus.Desc
}

func (c sourceCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.sessions
	to <- c.waiting
	to <- c.free
	to <- c.rescuing
	to <- c.chromes
	to <- c.held
	to <- c.evicted
	to <- c.deliveries
	to <- c.refused
}

func (c sourceCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	n := c.Counts()
	gauge(c.sessions, n.Live)
	gauge(c.waiting, n.WaitForSlot)
	gauge(c.rescuing, n.Rescuing)
	if c.Places != nil {
		for engine, free := range c.Places() {
			gauge(c.free, free, engine)
		}
	}
	gauge(c.chromes, n.Parked, "parked")
	gauge(c.chromes, n.Spares, "spare")
	gauge(c.chromes, n.Standbys, "standby")
	bytes, evicted := c.ClientMemory()
	gauge(c.held, bytes)
	to <- prometheus.MustNewConstMetric(c.evicted, prometheus.CounterValue, float64(evicted))
	if c.EgressRefused != nil {
		if refused, err := c.EgressRefused(); err != nil {
			to <- prometheus.NewInvalidMetric(c.refused, err)
		} else {
			to <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(refused))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), catalogueTimeout)
	defer cancel()
	pending, failed, err := c.Deliveries(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.deliveries, err)
		return
	}
	gauge(c.deliveries, pending, "pending")
	gauge(c.deliveries, failed, "failed")
}
