package session

import (
	"context"
	"crypto/rand"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
)

// nodeClaims are the claims of a Service: on this node, and among all nodes if there are several.
type nodeClaims struct{ svc *Service }

// claimID claims the ID of a session that is being created, on this node and among all nodes.
// The context that it returns ends when the node loses its lease; see [orLeaseLost].
// The caller calls release once. The claim of a session that lives then stays, until its end
// is recorded.
func (n nodeClaims) claimID(ctx context.Context, keyID, id string) (_ context.Context, release func(), err error) {
	leave, err := n.svc.sessions.Claim(keyID, id)
	if err != nil || n.svc.deps.Claims == nil {
		return ctx, leave, err
	}
	ctx, left, err := n.svc.creates.enter(ctx)
	if err != nil {
		leave()
		return nil, nil, err
	}
	if err := n.svc.deps.Claims.Claim(ctx, keyID, id); err != nil {
		err = orLeaseLost(ctx, err)
		leave()
		left()
		return nil, nil, err
	}
	return ctx, func() {
		if n.svc.sessions.Find(id) == nil && orLeaseLost(ctx, nil) == nil {
			n.svc.deps.Claims.Release(context.WithoutCancel(ctx), id)
		}
		leave()
		left()
	}, nil
}

// enterNodes applies on_live to what holds an environment on another node. again reports that
// the environment must be resolved again.
func (n nodeClaims) enterNodes(ctx, wait context.Context, r request.Create, o restore.Environment) (again bool, err error) {
	if n.svc.deps.Claims == nil {
		return false, nil
	}
	on := r.OnLiveOrDefault()
	other, err := n.svc.deps.Claims.Enter(ctx, r.SessionID, o, r.Shares())
	switch {
	case err != nil || other == nil:
		return false, err
	case other.Check:
		return true, n.svc.deps.Claims.AwaitCheck(ctx, o.UserID)
	case on == request.OnLiveShare:
		// The API passes the create on to that node, which knows whether it can be shared.
		return false, fault.Wrap(&registry.Elsewhere{SessionID: other.SessionID, NodeID: other.NodeID}, fault.EnvironmentInUse, "session.create",
			"session "+other.SessionID+" uses this environment on another node; end it, or set on_live to fork")
	case on == request.OnLiveWait && r.Wait > 0:
		ended, err := n.svc.deps.Claims.AwaitSession(wait, other.SessionID)
		if err != nil || ended {
			return ended, err
		}
	}
	return false, inUse(other.SessionID)
}

// countOnNodes counts a claimed session for the quotas of its user and key on all nodes. If a
// quota is reached, the error is quota_exceeded: the create waits with those of all nodes. Login
// checks count for their own node only. A new session that no quota limits is counted when it is
// recorded; see [nodeClaims.countOf].
func (n nodeClaims) countOnNodes(ctx context.Context, id string, c capacity.Claim, was *profiles.Session) error {
	if n.svc.deps.Claims == nil || was == nil && n.countOf(c) != nil {
		return nil
	}
	return n.svc.deps.Claims.Count(ctx, id, quotaCount(c), func(u profiles.QuotaUse) error { return admitted(c.Limits, u) })
}

// countOf returns what the record of a new session counts for, if it was not counted before.
func (n nodeClaims) countOf(c capacity.Claim) *profiles.QuotaCount {
	of := quotaCount(c)
	if n.svc.deps.Claims == nil || of.OfUser || of.OfKey {
		return nil
	}
	return &of
}

// quotaCount returns whose quotas a session counts for.
func quotaCount(c capacity.Claim) profiles.QuotaCount {
	of := profiles.QuotaCount{UserID: c.UserID}
	for _, l := range c.Limits {
		of.Saves = of.Saves || l.Name == quota.Snapshots
		if l.Kind == quota.Key {
			of.KeyID = l.ID
		}
		of.OfUser = of.OfUser || l.Kind == quota.User && l.Most != nil
		of.OfKey = of.OfKey || l.Kind == quota.Key && l.Most != nil
	}
	return of
}

// admitted returns quota_exceeded if one of the limits is reached.
func admitted(limits []quota.Limit, u profiles.QuotaUse) error {
	for _, l := range limits {
		n := u.UserSessions
		switch {
		case l.Kind == quota.User && l.Name == quota.Snapshots:
			n = u.UserSaving
		case l.Kind == quota.Key && l.Name == quota.Snapshots:
			n = u.KeySaving
		case l.Kind == quota.Key:
			n = u.KeySessions
		}
		if l.Reached(n) {
			return l.Error("session.quota", n)
		}
	}
	return nil
}

// scheduledChecks is what package renewal needs of sessions. leave ends the claim of the
// scheduled check, of which there is one at a time.
type scheduledChecks struct {
	*registry.Registry[*liveSession]
	ctx    context.Context
	claims *claims.Claims // nil: there is one node
	leave  func()
}

// EnterRenewal registers a scheduled check on this node and among all nodes.
func (c *scheduledChecks) EnterRenewal(r *renewal.Renewal) bool {
	if !c.Registry.EnterRenewal(r) {
		return false
	}
	if c.claims == nil {
		return true
	}
	c.leave = c.claims.EnterScheduled(c.ctx, r.UserID(), r.SnapshotID(), func(ctx context.Context) { _ = r.GiveWay(ctx) }) // the other node waits for the claim
	if c.leave == nil {
		c.Registry.LeaveRenewal(r)
	}
	return c.leave != nil
}

// LeaveRenewal removes the scheduled check, which has ended.
func (c *scheduledChecks) LeaveRenewal(r *renewal.Renewal) {
	c.Registry.LeaveRenewal(r)
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// ticketSalt returns what the tickets of a session are derived from. was is the record of a
// session that is resumed, else nil. A session that ended because its node died or was stopped
// keeps its tickets, so that clients find it again at the same cdp_url. Any other end ends them.
func ticketSalt(was *profiles.Session) string {
	if was != nil && was.TicketSalt != "" && was.Status != profiles.StatusCompleted &&
		was.Reason.Code != profiles.ReasonIdle && was.Reason.Code != profiles.ReasonLifetime {
		return was.TicketSalt
	}
	return rand.Text()
}

// leftovers returns what removes the archives that other nodes have left; nil if there is one
// daemon.
func (n nodeClaims) leftovers() func(context.Context) {
	if n.svc.deps.Claims == nil {
		return nil
	}
	return func(ctx context.Context) { n.svc.deps.Claims.RemoveLeftovers(ctx, n.svc.deps.Vault, n.svc.deps.Now()) }
}
