package mux

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/chromedp/cdproto/target"
)

// openDeadline bounds the opening of a hidden tab.
const openDeadline = 10 * time.Second

// OpenHidden opens a tab for the daemon's own use, at about:blank with a random fragment.
// Full Chrome has hidden targets, which it lists for no client. On a Chrome without them,
// the mux sends clients no event of the tab's creation or end and detaches clients that
// auto-attach. Clients that request targets of type "tab" do see that target, empty.
// Close the tab with Target.closeTarget.
func (d *Driver) OpenHidden(ctx context.Context) (target.ID, error) {
	url := "about:blank#" + rand.Text()
	d.m.mu.Lock()
	d.m.targets.hideURL[url] = ""
	d.m.mu.Unlock()
	var r struct {
		TargetID target.ID `json:"targetId"`
	}
	params := map[string]any{"url": url, "background": true}
	if !d.m.opts.NoHiddenTargets {
		params["hidden"] = true
	}
	// A caller that gave up in the meantime would leave a tab that nothing closes.
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), openDeadline)
	defer cancel()
	err := d.Call(opening, "Target.createTarget", params, &r)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
		_ = d.Call(opening, "Target.closeTarget", target.CloseTargetParams{TargetID: r.TargetID}, nil)
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if err != nil {
		delete(d.m.targets.hideURL, url)
		return "", err
	}
	d.m.targets.conceal(string(r.TargetID), url)
	return r.TargetID, nil
}

// Hidden reports whether a target is hidden from clients.
func (d *Driver) Hidden(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.hidden(string(id))
}

// CreationOrder returns the target's position in the order of creation, from 1, which
// Chrome's own list of targets does not show. It returns 0 for an unknown target.
func (d *Driver) CreationOrder(id target.ID) int {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.all[string(id)].order
}
