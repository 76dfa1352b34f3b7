// Package claims keeps what the sessions, login checks and saves of several nodes hold, in
// the catalogue that the nodes share. It stands beside package registry, which decides
// between the sessions of one node and is asked first.
package claims

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/restore"
)

// Store keeps the claims of all nodes.
type Store interface {
	profiles.ClaimStore
	profiles.ArchiveUseStore
	profiles.WaitingStore
}

// Claims are the claims of one node. Its methods are safe for concurrent use.
type Claims struct {
	store Store
	poll  time.Duration // between two looks at a claim of another node
	log   *slog.Logger
}

// New makes the Claims of a node that has joined. poll is the time between two looks at what
// another node holds; 0: half a second.
func New(store Store, poll time.Duration, log *slog.Logger) *Claims {
	if poll <= 0 {
		poll = time.Second / 2
	}
	return &Claims{store: store, poll: poll, log: log}
}

// Claim claims an ID for a session that is being created with a key. If another node has it,
// the error is that of [registry.Registry.Claim], with [registry.Elsewhere] as its cause.
func (c *Claims) Claim(ctx context.Context, keyID, id string) error {
	held, err := c.store.ClaimSession(ctx, id, keyID)
	switch {
	case err != nil || held == nil:
		return err
	case held.KeyID != keyID:
		return registry.IDTakenError()
	}
	return fault.Wrap(&registry.Elsewhere{SessionID: id, NodeID: held.NodeID}, fault.RequestInProgress, "session.create",
		"session_id: another node has this session, or is creating it; try again")
}

// Release gives an ID back whose session was not created.
func (c *Claims) Release(ctx context.Context, id string) {
	if err := c.store.ReleaseSession(ctx, id); err != nil {
		c.log.Warn("the claim of a session that was not created could not be removed; trying again", "session", id, "error", err)
	}
}

// Enter records that a claimed session starts from an environment. If a session on another
// node holds it, Enter returns that session, unless company is true. A scheduled check of the
// environment on another node is always returned. nil: nothing else holds it.
func (c *Claims) Enter(ctx context.Context, id string, from restore.Environment, company bool) (*Holder, error) {
	held, check, err := c.store.EnterEnvironment(ctx, profiles.SessionClaim{SessionID: id, UserID: from.UserID,
		SourceType: string(from.Source.Type), SourceID: from.Source.ID, SnapshotID: from.Snapshot.ID}, from.Snapshot.SessionID, company)
	switch {
	case err != nil:
		return nil, err
	case check != nil:
		return &Holder{NodeID: check.NodeID, Check: true}, nil
	case held != nil:
		return &Holder{SessionID: held.SessionID, NodeID: held.NodeID}, nil
	}
	return nil, nil
}

// Holder is what holds an environment on another node.
type Holder struct {
	SessionID, NodeID string
	Check             bool // a scheduled login check, and no session
}

// AwaitSession waits until a session of another node has ended, or its node has lost its
// lease. It returns false if ctx ends first.
func (c *Claims) AwaitSession(ctx context.Context, id string) (bool, error) {
	return c.await(ctx, func(ctx context.Context) (bool, error) {
		held, err := c.store.SessionClaim(ctx, id)
		return held == nil, err
	})
}

// AwaitCheck waits until no login check of a user is under way on any node. If ctx ends
// first, the error is timeout.
func (c *Claims) AwaitCheck(ctx context.Context, userID string) error {
	ended, err := c.await(ctx, func(ctx context.Context) (bool, error) {
		check, err := c.store.CheckClaim(ctx, userID)
		return check == nil, err
	})
	if err == nil && !ended {
		err = fault.Wrap(ctx.Err(), fault.Timeout, "claims.check", "a login check of this environment is running on another node; try again later")
	}
	return err
}

// await calls look until it returns true or an error. It returns false if ctx ends first.
func (c *Claims) await(ctx context.Context, look func(context.Context) (bool, error)) (bool, error) {
	for {
		done, err := look(context.WithoutCancel(ctx))
		if done || err != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(c.poll):
		}
	}
}

// EnterCheck registers a requested check of a user's default, after any other check of that
// user has ended; timeout if ctx ends first. The caller calls leave at its end.
func (c *Claims) EnterCheck(ctx context.Context, userID string) (leave func(), err error) {
	for {
		entered, err := c.store.EnterCheck(ctx, profiles.CheckClaim{UserID: userID})
		if err != nil {
			return nil, err
		}
		if entered {
			return func() { c.leaveCheck(userID) }, nil
		}
		if err := c.AwaitCheck(ctx, userID); err != nil {
			return nil, err
		}
	}
}

func (c *Claims) leaveCheck(userID string) {
	if err := c.store.LeaveCheck(context.Background(), userID); err != nil {
		c.log.Warn("the claim of a login check could not be removed; trying again", "owner", profiles.OwnerOf(userID), "error", err)
	}
}

// EnterScheduled registers a scheduled check of a snapshot. It returns nil if something else
// holds the environment, or if that is unknown. wanted is called, at most once, when a create
// on another node waits for the check; its context ends with leave. The caller calls leave at its end.
func (c *Claims) EnterScheduled(ctx context.Context, userID, snapshotID string, wanted func(context.Context)) (leave func()) {
	entered, err := c.store.EnterCheck(ctx, profiles.CheckClaim{UserID: userID, Scheduled: true, SnapshotID: snapshotID})
	if err != nil {
		c.log.Warn("a scheduled login check was put off, because the catalogue did not answer", "owner", profiles.OwnerOf(userID), "error", err)
	}
	if err != nil || !entered {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		is, err := c.await(ctx, func(ctx context.Context) (bool, error) {
			check, err := c.store.CheckClaim(ctx, userID)
			return check != nil && check.Wanted, err
		})
		if is && err == nil {
			wanted(ctx)
		}
	}()
	return func() {
		stop()
		<-watched
		c.leaveCheck(userID)
	}
}

// Count records whose quotas a claimed session counts for, if admit allows that; see
// [profiles.ClaimStore].
func (c *Claims) Count(ctx context.Context, id string, of profiles.QuotaCount, admit func(profiles.QuotaUse) error) error {
	return c.store.CountSession(ctx, id, of, admit)
}

// Hold prevents that another node removes a snapshot, until release is called, which may be
// called twice. what names the use ("restored"). A missing snapshot is snapshot_not_found.
func (c *Claims) Hold(ctx context.Context, snapshotID, what string) (release func(), err error) {
	id := profiles.NewID()
	if err := c.store.HoldSnapshot(ctx, id, snapshotID, what); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		if err := c.store.ReleaseSnapshot(context.WithoutCancel(ctx), id); err != nil {
			c.log.Warn("a snapshot that is no longer read could not be released; trying again", "snapshot", snapshotID, "error", err)
		}
	}), nil
}
