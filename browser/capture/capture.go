// Package capture reads a browser's state over CDP.
//
// It talks to targets through raw sessions and enables no CDP domain that a page could
// notice (no Runtime.enable, no Debugger, no DOM agents). [Read] reads an environment
// whose tabs are open. [HiddenReader] and [ReadStorage] read origins that no tab has open.
package capture

import (
	"context"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// Conn is the daemon's own CDP connection to one Chrome.
type Conn interface {
	hiddentab.Conn
	// Hidden reports whether OpenHidden opened the target.
	Hidden(id target.ID) bool
	// CreationOrder orders targets by their time of creation.
	CreationOrder(id target.ID) int
	// LastShown orders targets by when they came to the front.
	LastShown(id target.ID) int
	// Temporary reports whether a page closes with a client; it is in a context of the client that shares the profile.
	Temporary(id target.ID) bool
	// Paused reports whether a client keeps a page paused at its start.
	Paused(id target.ID) bool
}

// Pages lists the page targets of the browser's own profile, the newest last (Chrome
// lists them in any order). Off-the-record contexts that a client made do not belong to
// the environment and are left out.
func Pages(ctx context.Context, conn Conn) ([]*target.Info, error) {
	all, _, err := split(ctx, conn)
	if err != nil {
		return nil, err
	}
	pages := all[:0]
	for _, t := range all {
		if t.Type == "page" {
			pages = append(pages, t)
		}
	}
	return pages, nil
}

// split lists the targets of the browser's own profile (own) and those of contexts that
// clients made (foreign), the newest last.
func split(ctx context.Context, conn Conn) (own, foreign []*target.Info, err error) {
	contexts, err := cdp.Call(ctx, conn, target.GetBrowserContexts, cdp.Empty{})
	if err != nil {
		return nil, nil, err
	}
	made := map[cdp.BrowserContextID]bool{}
	for _, id := range contexts.BrowserContextIDs {
		made[id] = true
	}
	res, err := cdp.Call(ctx, conn, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(res.TargetInfos, func(a, b *target.Info) int { return conn.CreationOrder(a.TargetID) - conn.CreationOrder(b.TargetID) })
	for _, t := range res.TargetInfos {
		switch {
		case conn.Hidden(t.TargetID):
		case made[t.BrowserContextID]:
			foreign = append(foreign, t)
		default:
			own = append(own, t)
		}
	}
	return own, foreign, nil
}
