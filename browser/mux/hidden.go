package mux

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/chromedp/cdproto/target"
)

// openDeadline bounds the opening of a hidden tab.
const openDeadline = 10 * time.Second

// OpenHidden opens a tab for the daemon's own use, about:blank with a fragment
// of its own. Full Chrome lists it for nobody. Where Chrome has no such tabs no
// client is told of it, neither of its creation nor of its end, and clients that
// auto-attach are detached from it; its target of type "tab", which only few
// clients ask for, is seen, empty. Close it with Target.closeTarget.
func (d *Driver) OpenHidden(ctx context.Context) (target.ID, error) {
	url := "about:blank#" + rand.Text()
	d.m.mu.Lock()
	d.m.targets.hideURL[url] = ""
	d.m.mu.Unlock()
	var r struct {
		TargetID target.ID `json:"targetId"`
	}
	params := map[string]any{"url": url, "background": true}
	if !d.m.opts.HidesNone {
		params["hidden"] = true
	}
	// Whoever has given up meanwhile would leave a tab behind that nobody closes.
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

// Hidden reports whether a target is one of those that clients are not told of.
func (d *Driver) Hidden(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.hidden(string(id))
}

// Born counts the targets in the order in which they were made, which Chrome's own
// list of them does not tell; 0 for one that is not there.
func (d *Driver) Born(id target.ID) int {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.all[string(id)].born
}
