package snapshot

import "context"

// Delete removes one document, or the latest for [LatestID]. The others stay. A missing
// document is snapshot_not_found.
func (d *Documents) Delete(ctx context.Context, loc Location, id string) error {
	key, err := d.key(loc, id)
	if err != nil {
		return err
	}
	if _, err := d.store.Stat(ctx, key); err != nil {
		return err
	}
	return d.store.Delete(ctx, key)
}

// DeleteSession removes every document and manifest of agents in a session of an owner.
// Snapshots of Stasis stay. It is idempotent, and can be repeated after a failure.
func (d *Documents) DeleteSession(ctx context.Context, owner, session string) error {
	of := Location{Owner: owner, Session: session, Scope: "agent", ScopeID: "any"}
	if err := of.Check(); err != nil {
		return err
	}
	all, err := scopes(ctx, d.store, of)
	if err != nil {
		return err
	}
	for _, loc := range all {
		if reserved(loc.ScopeID) {
			continue
		}
		if err := d.deleteLocation(ctx, loc); err != nil {
			return err
		}
	}
	return nil
}

// deleteLocation removes the latest first. An agent that returns meanwhile then starts
// anew, and not from a half-deleted history.
func (d *Documents) deleteLocation(ctx context.Context, loc Location) error {
	latest, err := loc.LatestKey()
	if err != nil {
		return err
	}
	if err := d.store.Delete(ctx, latest); err != nil {
		return err
	}
	for after := ""; ; {
		ids, next, err := listIDs(ctx, d.store, loc, maxPage, after)
		if err != nil {
			return err
		}
		for _, id := range ids {
			key, err := loc.DocumentKey(id)
			if err != nil {
				return err
			}
			if err := d.store.Delete(ctx, key); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			break
		}
	}
	manifest, err := loc.ManifestKey()
	if err != nil {
		return err
	}
	return d.store.Delete(ctx, manifest)
}
