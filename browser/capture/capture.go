// Package capture reads a browser's state over CDP and lays it down again.
//
// It speaks to targets through raw sessions and enables no domain that a page
// could notice (no Runtime.enable, no Debugger, no DOM agents). Reading is
// [Read]; laying down is [Lay] for what belongs to the whole browser and
// [Script] for what belongs to one tab.
package capture

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// Conn is the daemon's own CDP connection to one Chrome: a session of the
// browser target, and one for each target that it is attached to.
type Conn interface {
	cdp.Session
	Session(id target.SessionID) cdp.Session
	// OpenHidden opens a blank tab that is no part of the environment, and
	// Hidden knows it again.
	OpenHidden(ctx context.Context) (target.ID, error)
	Hidden(id target.ID) bool
	// Born orders targets by when they were made.
	Born(id target.ID) int
}

// leaveDeadline bounds what is done after a reading, whatever became of it: of
// a Chrome that does not answer any more nothing is waited for.
const leaveDeadline = 2 * time.Second

// attach opens a session to a target; detach ends it and outlives ctx.
func attach(ctx context.Context, conn Conn, id target.ID) (s cdp.Session, detach func(), err error) {
	flatten := true
	res, err := cdp.Call(ctx, conn, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &flatten})
	if err != nil {
		return nil, nil, err
	}
	return conn.Session(res.SessionID), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveDeadline)
		defer cancel()
		// A target that has gone detached by itself: nothing to tell.
		_, _ = cdp.Call(ctx, conn, target.DetachFromTarget, target.DetachFromTargetParams(res))
	}, nil
}

// Pages lists the page targets of the browser's own profile, the newest last:
// Chrome tells them in any order. Off-the-record contexts that a client made are not
// the environment's.
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

// split lists the targets of the browser's own profile, the newest last, and those
// of contexts that clients made.
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
	slices.SortFunc(res.TargetInfos, func(a, b *target.Info) int { return conn.Born(a.TargetID) - conn.Born(b.TargetID) })
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
