package targetinit

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// Setup is a setting that the targets of a session get before their first request and
// script.
type Setup interface {
	// Wants reports whether the setup applies to targets of a type (CDP TargetInfo.type:
	// page, iframe, worker, shared_worker, service_worker).
	Wants(kind string) bool
	// Initialise applies the setup to a new target. The target stays paused until every
	// setup has returned. Most domains answer only after that, so commands to the page are
	// posted, not called. Targets are initialised concurrently.
	Initialise(ctx context.Context, t *Target)
	// Renew applies the setup again after the last client has disconnected: clients may
	// have changed it, and some of it ends with their sessions.
	Renew(ctx context.Context, t *Target)
	// TargetClosed is called for a target that has closed, with the remaining targets.
	TargetClosed(ctx context.Context, closed *Target, remaining []*Target)
}

// Target is one target, with the daemon's session for its setup.
type Target struct {
	session cdp.Session
	driver  Driver
	id      target.SessionID
	info    *target.Info
	ready   bool // has been initialised; guarded by the Initialiser
}

var _ cdp.Session = (*Target)(nil)

// NewTarget returns a target that driver's connection has attached to.
func NewTarget(driver Driver, id target.SessionID, info *target.Info) *Target {
	return &Target{session: driver.Session(id), driver: driver, id: id, info: info}
}

// SessionID returns the ID of the session.
func (t *Target) SessionID() target.SessionID { return t.id }

// Info returns Chrome's description of the target from when it was attached.
func (t *Target) Info() *target.Info { return t.info }

// Call runs a command in the target; see [cdp.Session].
func (t *Target) Call(ctx context.Context, method string, params, result any) error {
	return t.session.Call(ctx, method, params, result)
}

// Subscribe returns the parameters of an event of the target; see [cdp.Session].
func (t *Target) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return t.session.Subscribe(method)
}

// Browser returns the browser's session of the same connection.
func (t *Target) Browser() cdp.Session { return t.driver }

// Post sends a command without waiting for the answer.
func (t *Target) Post(ctx context.Context, method string, params any) {
	// A lost pipe ends the initialiser, and a closed target needs nothing.
	_ = t.driver.Post(ctx, t.id, method, params)
}

// Events returns events of all targets that the connection is attached to, until cancel.
func (t *Target) Events(methods ...string) (events <-chan mux.Event, cancel func()) {
	return t.driver.Events(methods...)
}

// Renew applies every setup again after the last client has disconnected.
func (i *Initialiser) Renew(ctx context.Context) {
	for _, t := range i.Targets() {
		for _, s := range i.setups {
			if s.Wants(t.info.Type) {
				s.Renew(ctx, t)
			}
		}
	}
}

// Targets returns the targets that the initialiser is attached to, in no particular
// order.
func (i *Initialiser) Targets() []*Target {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]*Target, 0, len(i.targets))
	for _, t := range i.targets {
		all = append(all, t)
	}
	return all
}

// PageSetups returns the setups for pages; none for a nil Initialiser.
func (i *Initialiser) PageSetups() []Setup {
	if i == nil {
		return nil
	}
	var all []Setup
	for _, s := range i.setups {
		if s.Wants("page") {
			all = append(all, s)
		}
	}
	return all
}
