package session

import (
	"context"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/view"
	"github.com/stasisd/stasis/session/access"
)

// ViewConn is the connection of one viewer of the live view; see view.Conn.
type ViewConn = view.Conn

// AttachViewer reserves a connection for one viewer of a session, before it is upgraded and
// served by [Service.View]; see [capacity.Clients.Take] and [Service.OpenSocket].
func (s *Service) AttachViewer(ctx context.Context, c access.Caller, id string) (release func(), err error) {
	return s.attach(ctx, c, id, s.viewers)
}

// View serves one viewer of a session's live view until it disconnects, the session ends,
// the caller's key is deleted or its shared link ends. The viewer has control if the caller
// may drive the session. While somebody views a session, it is not paused or idle.
func (s *Service) View(ctx context.Context, c access.Caller, id string, conn ViewConn) error {
	l, err := s.running(ctx, c, id, access.Look)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := func(code int, reason string) {
		_ = conn.Close(code, reason) // the viewer may have disconnected already
		cancel()
	}
	leave, err := s.deps.Keys.RegisterConnection(ctx, c, func(why error) { end(mux.CloseKeyDeleted, access.KeyEnded(why)) })
	if err != nil {
		return err
	}
	defer leave()
	link, leaveLink, err := l.rights.JoinLink(c, func() { end(mux.CloseLinkEnded, "link_ended") })
	if err != nil {
		return err
	}
	defer leaveLink()
	chrome, useCtx, giveBack, err := l.borrow(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	defer context.AfterFunc(useCtx, func() { end(closeOf(context.Cause(useCtx))) })()
	changed, left := l.viewers.join()
	defer left()
	v := view.Viewer{Control: l.rights.Allow(c, access.Drive) == nil, LinkExpires: link.ExpiresAt,
		Session: l.id, User: l.rights.UserID, Clients: func() int { return s.clients.Count(l.id) }, Viewers: l.viewers.count, ViewersChanged: changed}
	v.MayShare = v.Control && c.Link == ""
	v.MaySave = v.MayShare && !l.readOnly
	return chrome.View(ctx, conn, v)
}
