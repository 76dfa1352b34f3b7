package targetinit

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// Setup is something that the targets of a session are given before their first
// request and script.
type Setup interface {
	// Wants reports whether targets of a type (CDP TargetInfo.type: page, iframe,
	// worker, shared_worker, service_worker) are given something.
	Wants(kind string) bool
	// Initialise gives a new target what it is to have. The target waits until every
	// setup has returned. Most domains answer only after that, so commands to the
	// page are posted, not called. Targets are initialised concurrently.
	Initialise(ctx context.Context, t *Target)
	// Renew gives it again what clients may have changed, and what ended with their
	// sessions: the last client has left.
	Renew(ctx context.Context, t *Target)
	// Gone is called for a target that has gone, with those that are left.
	Gone(ctx context.Context, gone *Target, left []*Target)
}

// Target is one target, with the session that the daemon sets it up by.
type Target struct {
	session cdp.Session
	driver  Driver
	id      target.SessionID
	info    *target.Info
	ready   bool // it has been initialised; guarded by the Initialiser
}

var _ cdp.Session = (*Target)(nil)

// NewTarget is a target that somebody has attached to on a connection.
func NewTarget(driver Driver, id target.SessionID, info *target.Info) *Target {
	return &Target{session: driver.Session(id), driver: driver, id: id, info: info}
}

// SessionID is the ID of the session.
func (t *Target) SessionID() target.SessionID { return t.id }

// Info is what Chrome reported of the target when it was attached to.
func (t *Target) Info() *target.Info { return t.info }

// Call runs a command in the target; see [cdp.Session].
func (t *Target) Call(ctx context.Context, method string, params, result any) error {
	return t.session.Call(ctx, method, params, result)
}

// Subscribe gives an event of the target; see [cdp.Session].
func (t *Target) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return t.session.Subscribe(method)
}

// Browser is the browser's session of the same connection.
func (t *Target) Browser() cdp.Session { return t.driver }

// Post sends a command without waiting for the answer.
func (t *Target) Post(ctx context.Context, method string, params any) {
	// A lost pipe ends the initialiser; a target that has gone needs nothing.
	_ = t.driver.Post(ctx, t.id, method, params)
}

// Events gives events of all targets that the connection is attached to, until
// cancel.
func (t *Target) Events(methods ...string) (events <-chan mux.Event, cancel func()) {
	return t.driver.Events(methods...)
}

// Renew sets every target up again after the last client has left.
func (i *Initialiser) Renew(ctx context.Context) {
	for _, t := range i.Targets() {
		for _, s := range i.setups {
			if s.Wants(t.info.Type) {
				s.Renew(ctx, t)
			}
		}
	}
}

// Targets are the targets that the initialiser is attached to, in no order.
func (i *Initialiser) Targets() []*Target {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]*Target, 0, len(i.targets))
	for _, t := range i.targets {
		all = append(all, t)
	}
	return all
}

// PageSetups are the setups that pages are given; none of a nil Initialiser.
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
