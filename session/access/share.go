package access

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Share makes a shared link and its ticket. A link with control needs the permission to
// drive the session, any other the permission to look at it. A caller that came through a
// shared link may not make another one.
func (l *LiveSession) Share(ctx context.Context, keys Callers, c Caller, control bool, life time.Duration) (_ Link, ticket string, err error) {
	if err := l.mayShare(c, Link{Control: control}.needs()); err != nil {
		return Link{}, "", err
	}
	if err := l.endLinksOfDeletedKeys(ctx, keys); err != nil {
		return Link{}, "", err
	}
	made, err := l.links.add(c.KeyID, control, life)
	if err != nil {
		return Link{}, "", err
	}
	return made, l.tickets.Make(made.purpose(), made.ID), nil
}

// Shared lists the links of the session that have not ended, oldest first.
func (l *LiveSession) Shared(ctx context.Context, keys Callers, c Caller) ([]Link, error) {
	if err := l.mayShare(c, Look); err != nil {
		return nil, err
	}
	if err := l.endLinksOfDeletedKeys(ctx, keys); err != nil {
		return nil, err
	}
	return l.links.all(), nil
}

// endLinksOfDeletedKeys makes room for others: their tickets are refused already.
func (l *LiveSession) endLinksOfDeletedKeys(ctx context.Context, keys Callers) error {
	for _, link := range l.links.all() {
		_, err := keys.Caller(ctx, link.keyID)
		switch {
		case fault.Is(err, fault.Unauthorized):
			l.links.remove(link.ID)
		case err != nil:
			return err
		}
	}
	return nil
}

// Revoke ends a link and disconnects its viewers. A caller that may not drive the session may
// revoke only the links of its own key.
func (l *LiveSession) Revoke(c Caller, linkID string) error {
	if err := l.mayShare(c, Look); err != nil {
		return err
	}
	link, found := l.links.find(linkID)
	if !found {
		return fault.New(fault.LinkNotFound, "access.revoke", "the session has no link %q, or it has ended", linkID)
	}
	if link.keyID != c.KeyID {
		if err := l.Allow(c, Drive); err != nil {
			return err
		}
	}
	l.links.remove(linkID)
	return nil
}

func (l *LiveSession) mayShare(c Caller, p Permission) error {
	if c.Link != "" {
		return fault.New(fault.Forbidden, "access.share", "a shared link opens only the live view")
	}
	return l.Allow(c, p)
}

// JoinLink adds a viewer to the link that a caller came through, until leave is called. When
// the link ends, end is called; it must not block. It returns unauthorized if the link has
// ended. For a caller without a link it does nothing, and the Link is zero.
func (l *LiveSession) JoinLink(c Caller, end func()) (_ Link, leave func(), err error) {
	if c.Link == "" {
		return Link{}, func() {}, nil
	}
	link, leave, ok := l.links.join(c.Link, true, end)
	if !ok {
		return Link{}, nil, refusedTicket()
	}
	return link, leave, nil
}

// CallContext returns a context that ends with ctx or when the link ends that a caller came
// through. Its cause is then unauthorized. The caller calls leave when its call has ended.
func (l *LiveSession) CallContext(ctx context.Context, c Caller) (_ context.Context, leave func(), err error) {
	if c.Link == "" {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	_, left, ok := l.links.join(c.Link, false, func() { cancel(refusedTicket()) })
	if !ok {
		cancel(nil)
		return nil, nil, refusedTicket()
	}
	return ctx, func() { left(); cancel(nil) }, nil
}
