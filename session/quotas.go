package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/restore"
)

// quotaUse returns how much a user or a key has of what quotas limit; see [quota.Use].
func (s *Service) quotaUse(ctx context.Context, h quota.Holder) (map[quota.Name]int64, error) {
	stored, err := storedBy(ctx, s.deps.Catalogue, h)
	if err != nil {
		return nil, err
	}
	return map[quota.Name]int64{
		quota.Sessions:  s.capacity.Held(quota.Share{Holder: h, Name: quota.Sessions}),
		quota.Parked:    int64(s.capacity.ParkedOf(h)),
		quota.Standbys:  int64(s.capacity.StandbysOf(h.ID)),
		quota.Snapshots: stored.Snapshots,
		quota.Bytes:     stored.Bytes,
		quota.Imports:   s.imports.Held(quota.Share{Holder: h, Name: quota.Imports}),
		quota.Sockets:   s.sockets.Held(quota.Share{Holder: h, Name: quota.Sockets}),
		quota.Requests:  s.rates.Used(s.deps.Now(), h),
	}, nil
}

// storedBy returns what a user or a key has stored.
func storedBy(ctx context.Context, records profiles.SnapshotStore, h quota.Holder) (profiles.Stored, error) {
	if h.Kind == quota.Key {
		return records.StoredByKey(ctx, h.ID)
	}
	return records.StoredByUser(ctx, h.ID)
}

// TakeRequest counts a request of a caller against the quotas of its key and of the key's
// user (see [settings.Users.RequestLimits]), and returns their states. managing says that the
// request is about keys or the settings of users. If a quota is reached, the error is quota_exceeded. Requests
// of guests count for their shared link, with the smallest of these quotas. A guest does not
// learn whose quota it is.
func (s *Service) TakeRequest(ctx context.Context, c access.Caller, managing bool) ([]quota.Rate, error) {
	limits, err := s.users.RequestLimits(ctx, c, managing)
	if err != nil {
		return nil, err
	}
	if c.Link == "" {
		return s.rates.Take(s.deps.Now(), limits)
	}
	_, err = s.rates.Take(s.deps.Now(), []quota.Limit{quota.OfLink(c.Link, limits)})
	if fault.Is(err, fault.QuotaExceeded) {
		err = fault.New(fault.QuotaExceeded, "session.rate", "there are too many requests through this link; try again later")
	}
	return nil, err
}

// OpenSocket counts a socket or event stream of a session until release is called, for the
// session's user and the caller's key. If a quota is reached, the error is quota_exceeded.
// The caller has checked what the key may do.
func (s *Service) OpenSocket(ctx context.Context, c access.Caller, id string) (release func(), err error) {
	const op = "session.socket"
	var userID string
	if l := s.sessions.Find(id); l != nil { // a client waits, and the catalogue takes longer
		userID = l.rights.UserID
	} else {
		rec, err := s.deps.Catalogue.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		userID = rec.UserID
	}
	release, err = s.reserveSocket(ctx, c, userID)
	if fault.Is(err, fault.QuotaExceeded) && c.Link != "" { // a guest does not learn whose quota it is
		err = fault.New(fault.QuotaExceeded, op, "too many people view sessions of this user; try again later")
	}
	return release, err
}

// attach takes one of a session's connections and counts it, unless the create of the session
// has counted it already.
func (s *Service) attach(ctx context.Context, c access.Caller, id string, places *capacity.Clients) (release func(), err error) {
	leave, err := places.Take(id)
	if err != nil {
		return nil, err
	}
	var closed func()
	if l := s.sessions.Find(id); l != nil && places == s.clients {
		closed = l.socket.take(c.KeyID)
	}
	if closed == nil {
		if closed, err = s.OpenSocket(ctx, c, id); err != nil {
			leave()
			return nil, err
		}
	}
	return func() { closed(); leave() }, nil
}

// claim returns what a session of a user counts for. If it may be saved, that includes one
// snapshot: a save at its end is never refused, so there must be space for it now. An ended
// session that is resumed (was, else nil) counts for the key that made it, as its snapshots do.
func (s *Service) claim(ctx context.Context, c access.Caller, userID string, saves bool, was *profiles.Session) (capacity.Claim, error) {
	claim := capacity.Claim{UserID: userID, KeyID: c.KeyID}
	user, err := s.users.Quotas(ctx, userID)
	if err != nil {
		return claim, err
	}
	keyID, key := c.KeyID, c.Quotas
	if was != nil && was.KeyID != keyID {
		keyID = was.KeyID
		if key, err = s.deps.Keys.QuotasOf(ctx, keyID); err != nil {
			return claim, err
		}
	}
	claim.Limits = quota.Limits(quota.Sessions, userID, user, keyID, key)
	if was != nil && was.Reason.Code == profiles.ReasonMoved { // it has lived until now, and is counted but never refused
		for i := range claim.Limits {
			claim.Limits[i].Most = nil
		}
		return claim, nil
	}
	if !saves {
		return claim, nil
	}
	bytes := quota.Limits(quota.Bytes, userID, user, keyID, key)
	for i, l := range quota.Limits(quota.Snapshots, userID, user, keyID, key) {
		if l.Most != nil || bytes[i].Most != nil {
			stored, err := storedBy(ctx, s.deps.Catalogue, l.Holder)
			if err != nil {
				return claim, err
			}
			if l.Other = stored.Snapshots; bytes[i].Reached(stored.Bytes) {
				return claim, bytes[i].Error("session.quota", stored.Bytes)
			}
		}
		claim.Limits = append(claim.Limits, l)
	}
	return claim, nil
}

// recheckStored looks up again what is stored, after a claim got its slot. A session that
// ended meanwhile has stored a snapshot and no longer counts as live. The counts are read
// first, so that it cannot be missed in both.
func (s *Service) recheckStored(ctx context.Context, claim capacity.Claim) error {
	for _, l := range claim.Limits {
		if l.Name != quota.Snapshots || l.Most == nil {
			continue
		}
		held := s.capacity.Held(l.Share) // with this session
		stored, err := storedBy(ctx, s.deps.Catalogue, l.Holder)
		if err != nil {
			return err
		}
		if l.Other = stored.Snapshots; held+l.Other > *l.Most {
			return l.Error("session.quota", held-1)
		}
	}
	return nil
}

// admission returns what refuses a save that somebody asks for, and whose refusal loses
// nothing: a checkpoint or an import. It is nil if no quota limits storage. Live sessions that
// may be saved keep their space. The error is quota_exceeded if there is no space already.
func (s *Service) admission(ctx context.Context, userID, keyID string) (admit func(user, key profiles.Stored) error, err error) {
	user, err := s.users.Quotas(ctx, userID)
	if err != nil {
		return nil, err
	}
	key, err := s.deps.Keys.QuotasOf(ctx, keyID)
	if err != nil {
		return nil, err
	}
	snapshots := quota.Limits(quota.Snapshots, userID, user, keyID, key)
	bytes := quota.Limits(quota.Bytes, userID, user, keyID, key)
	check := func(i int, stored profiles.Stored, more int64) error {
		n, l := s.capacity.Held(snapshots[i].Share), snapshots[i]
		l.OfSave, l.Other = true, stored.Snapshots-more // without the new one
		if l.Reached(n) {
			return l.Error("session.quota", n)
		}
		if l = bytes[i]; l.Most != nil && (stored.Bytes > *l.Most || more == 0 && stored.Bytes == *l.Most) {
			l.OfSave = true
			return l.Error("session.quota", stored.Bytes)
		}
		return nil
	}
	limited := false
	for i, l := range snapshots {
		if l.Most == nil && bytes[i].Most == nil {
			continue
		}
		limited = true
		stored, err := storedBy(ctx, s.deps.Catalogue, l.Holder)
		if err == nil {
			err = check(i, stored, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	if !limited { // a commit would count what is stored in vain
		return nil, nil
	}
	return func(user, key profiles.Stored) error {
		if err := check(0, user, 1); err != nil {
			return err
		}
		if len(snapshots) < 2 {
			return nil
		}
		return check(1, key, 1)
	}, nil
}

// importQuotas is what package importer needs of quotas.
type importQuotas struct{ svc *Service }

// Begin counts an import for a user and the caller's key until release is called.
func (q importQuotas) Begin(ctx context.Context, c access.Caller, userID string) (release func(), err error) {
	limits, err := q.svc.users.QuotaLimits(ctx, c, userID, quota.Imports)
	if err != nil {
		return nil, err
	}
	return q.svc.imports.Take("session.import", limits)
}

// Admission returns what refuses an import beyond the quotas of storage.
func (q importQuotas) Admission(ctx context.Context, userID, keyID string) (func(user, key profiles.Stored) error, error) {
	return q.svc.admission(ctx, userID, keyID)
}

// readyAdapter is what package save needs of the Chromes that are kept ready.
type readyAdapter struct{ svc *Service }

// Park keeps the frozen Chrome of a session's snapshot. The oldest parked Chromes of its
// user, or of the key that made the session, give way if there are too many. If the quotas
// cannot be read, there is no limit.
func (r readyAdapter) Park(ctx context.Context, snapshotID string, rec profiles.Session, chrome *restore.Parked) error {
	user, err := r.svc.users.Quotas(ctx, rec.UserID)
	if err != nil {
		r.svc.deps.Log.Warn("cannot read a user's quotas; its Chrome is parked without a limit", "session", rec.ID, "error", err)
	}
	key, err := r.svc.deps.Keys.QuotasOf(ctx, rec.KeyID)
	if err != nil {
		r.svc.deps.Log.Warn("cannot read a key's quotas; its Chrome is parked without a limit", "session", rec.ID, "error", err)
	}
	return r.svc.capacity.Park(ctx, snapshotID, chrome, quota.Limits(quota.Parked, rec.UserID, user, rec.KeyID, key))
}

// DefaultChanged updates the standbys after a default has moved.
func (r readyAdapter) DefaultChanged() { r.svc.capacity.DefaultChanged() }
