package mux

import (
	"context"
	"crypto/rand"

	"github.com/chromedp/cdproto/target"
)

// OpenHidden opens a tab for the daemon's own use, about:blank with a fragment
// of its own. Full Chrome lists it for nobody. Where Chrome has no such tabs no
// client is told of it, neither of its creation nor of its end, and clients that
// auto-attach are detached from it; its target of type "tab", which only few
// clients ask for, is seen, empty. Close it with Target.closeTarget.
func (d *Driver) OpenHidden(ctx context.Context) (target.ID, error) {
	url := "about:blank#" + rand.Text()
	d.m.mu.Lock()
	d.m.targets.hideURL[url] = struct{}{}
	d.m.mu.Unlock()
	var r struct {
		TargetID target.ID `json:"targetId"`
	}
	params := map[string]any{"url": url, "background": true}
	if !d.m.opts.HidesNone {
		params["hidden"] = true
	}
	err := d.Call(ctx, "Target.createTarget", params, &r)
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if err != nil {
		delete(d.m.targets.hideURL, url)
		return "", err
	}
	d.m.targets.hide[string(r.TargetID)] = struct{}{}
	return r.TargetID, nil
}

// Hidden reports whether a target is one of those that clients are not told of.
func (d *Driver) Hidden(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.targets.hidden(string(id))
}
