package api

import (
	"context"
	"net/http"
	"time"

	stasis "github.com/stasisd/stasis"
	"github.com/stasisd/stasis/session"
)

// Readiness reports whether the daemon can take sessions.
type Readiness interface {
	Ready(ctx context.Context) error
}

var _ Readiness = (*session.Service)(nil)

// operationsHandler serves operators and their tools.
type operationsHandler struct {
	readiness Readiness
	lease     func() Lease // nil: the daemon is no node
	audit     Audit
	metrics   http.Handler // nil: no metrics
	landlock  int          // ABI version of Landlock that restricts Chromes; 0: none
	limits    bool         // whether each Chrome has a control group
	egress    bool         // whether the addresses that Chromes connect to are limited
	uploads   bool         // whether the processes that read uploads are restricted
}

// readiness is the answer of a daemon that can take sessions.
type readiness struct {
	Status   string   `json:"status"`
	Landlock landlock `json:"landlock"`
	Egress   enforced `json:"egress"`
	Limits   enforced `json:"limits"`
	Uploads  enforced `json:"uploads"`
	Audit    audits   `json:"audit"`
	Lease    *lease   `json:"lease,omitempty"`
}

// Lease is the lease of a node.
type Lease struct {
	NodeID   string
	State    string
	Left     time.Duration
	Draining bool
	Leads    bool
}

// lease is the wire's Lease.
type lease struct {
	NodeID   string  `json:"node_id"`
	State    string  `json:"state"`
	Left     float64 `json:"left_seconds"`
	Draining bool    `json:"draining"`
	Leads    bool    `json:"leads"`
}

// audits says how the audit log does: whether the catalogue accepts its entries, how many
// wait, and how many were lost since the daemon has started.
type audits struct {
	Recording bool  `json:"recording"`
	Waiting   int   `json:"waiting"`
	Lost      int64 `json:"lost"`
}

// landlock says whether Landlock restricts Chromes, and which ABI version of it the kernel
// has; 0 if it does not restrict them.
type landlock struct {
	Enforced bool `json:"enforced"`
	ABI      int  `json:"abi"`
}

// enforced says whether a protection is in force.
type enforced struct {
	Enforced bool `json:"enforced"`
}

// health reports that the daemon answers.
func health(c *call) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// readyDeadline limits the checks of the catalogue and the store. A store that is cut off answers
// nothing, and a load balancer that waits for it still sends calls here.
const readyDeadline = 5 * time.Second

// ready reports that the daemon can take sessions.
func (h *operationsHandler) ready(c *call) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyDeadline)
	defer cancel()
	if err := h.readiness.Ready(ctx); err != nil {
		return err
	}
	log := h.audit.State()
	var own *lease
	if h.lease != nil {
		l := h.lease()
		own = &lease{NodeID: l.NodeID, State: l.State, Left: l.Left.Round(time.Millisecond).Seconds(), Draining: l.Draining, Leads: l.Leads}
	}
	return c.JSON(http.StatusOK, readiness{Lease: own, Status: "ok", Landlock: landlock{Enforced: h.landlock > 0, ABI: h.landlock}, Egress: enforced{h.egress}, Limits: enforced{h.limits}, Uploads: enforced{h.uploads},
		Audit: audits{!log.Failing, log.Waiting, log.Lost}})
}

// scrape serves the metrics in Prometheus's text format.
func (h *operationsHandler) scrape(c *call) error {
	h.metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

// openapi serves the description of the API.
func openapi(c *call) error {
	return c.Blob(http.StatusOK, "application/yaml", stasis.OpenAPI())
}
