// Package metrics defines the Prometheus metrics of a daemon, all in this file. No label
// names a session, a user or an address.
package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
)

// Metrics are the metrics of one daemon. They implement [session.Meter]. New registers the
// counters; [Metrics.AddSources] adds what is read at each scrape.
type Metrics struct {
	registry *prometheus.Registry
	checks   *prometheus.CounterVec
	expired  prometheus.Counter
	saves    *prometheus.CounterVec
}

var _ session.Meter = (*Metrics)(nil)

// New makes the metrics of a daemon of the given version.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stasis_login_checks_total",
			Help: "Login checks, by what they found: logged_in, logged_out, failed (the page could not be judged)."}, []string{"outcome"}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{Name: "stasis_logins_expired_total",
			Help: "Default environments found logged out; each version counts once."}),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stasis_saves_total",
			Help: "Saves of environments, by kind and outcome: saved, unchanged, failed."}, []string{"kind", "outcome"}),
	}
	for _, o := range []login.Verdict{login.LoggedIn, login.LoggedOut, login.Failed} {
		m.checks.WithLabelValues(string(o)) // exports the metric with 0
	}
	for _, k := range []save.Kind{save.ForEnd, save.ForCheckpoint, save.ForAutosave, save.ForRescue, save.ForImport, save.ForLoginCheck} {
		for _, o := range []save.Result{save.Saved, save.Failed} {
			m.saves.WithLabelValues(string(k), string(o))
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "stasis_build_info", Help: "Always 1; the labels name the running version.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(m.checks, m.expired, m.saves, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// LoginChecked implements [session.Meter].
func (m *Metrics) LoginChecked(v login.Verdict) { m.checks.WithLabelValues(string(v)).Inc() }

// LoginExpired implements [session.Meter].
func (m *Metrics) LoginExpired() { m.expired.Inc() }

// Saved implements [session.Meter].
func (m *Metrics) Saved(k save.Kind, r save.Result) {
	m.saves.WithLabelValues(string(k), string(r)).Inc()
}

// AddSources adds what is read at each scrape. It is called once.
func (m *Metrics) AddSources(s Sources) {
	m.registry.MustRegister(sourceCollector{Sources: s,
		sessions: prometheus.NewDesc("stasis_sessions_live", "Live sessions.", nil, nil),
		waiting:  prometheus.NewDesc("stasis_creates_waiting", "Creates and resumes that wait for a session slot.", nil, nil),
		free: prometheus.NewDesc("stasis_places_free",
			"Sessions that each engine of a node may still have. Engines share places, so the numbers do not add up.", []string{"engine"}, nil),
		rescuing: prometheus.NewDesc("stasis_sessions_rescuing", "Sessions of a killed daemon whose data is not saved yet.", nil, nil),
		chromes:  prometheus.NewDesc("stasis_chromes_kept", "Chromes without a session, by kind: parked, spare, standby.", []string{"kind"}, nil),
		held:     prometheus.NewDesc("stasis_client_memory_bytes", "Memory of CDP messages, HTTP bodies and answers that are arriving or waiting for a slow client.", nil, nil),
		evicted: prometheus.NewDesc("stasis_clients_evicted_total",
			"Clients that were cut off, and messages of Chromes that were dropped, because that memory was used up.", nil, nil),
		deliveries: prometheus.NewDesc("stasis_webhook_deliveries",
			"Webhooks that wait to be sent (pending), and those given up in the last 7 days (failed).", []string{"state"}, nil),
		refused: prometheus.NewDesc("stasis_egress_refused_total",
			"Packets of browsers to addresses that they may not reach; missing if addresses are not limited.", nil, nil)})
}

// Handler answers a scrape. It leaves out what cannot be read.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
