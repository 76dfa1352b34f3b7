package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
)

// latest copies snapshot_latest.json. A latest of Stasis is copied only if the
// destination has the snapshot that it copies.
func (c *copier) latest(ctx context.Context, loc Location, key Key, body []byte) error {
	if body == nil {
		return nil
	}
	f := Finding{Kind: LatestDamaged, Location: loc, Key: key.path}
	if loc.ScopeID != environments {
		if err := checkAgentDocument(body, loc.Scope); err != nil {
			return c.refuseDocument(f, err)
		}
		return c.replaceObject(ctx, f, key, body, keepNewerAgent(loc, body))
	}
	doc, err := parseDocument(body, loc, "")
	if err != nil {
		return c.refuseDocument(f, err)
	}
	f.Snapshot = doc.Data.SnapshotID
	document, err := loc.DocumentKey(f.Snapshot)
	if err != nil {
		return err
	}
	there, err := readWhole(ctx, c.to, document)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, body) {
		f.What = "the destination does not have its snapshot"
		return c.refuse(f)
	}
	return c.replaceObject(ctx, f, key, body, c.keepNewerOwn(loc, f.Snapshot))
}

// keepRule decides whether the destination's object stays when it differs from the source's.
// stays is nil if the object may be overwritten, for example because it is damaged. stays
// is errNewer if the object stays. It is snapshot_exists or unsupported if the object
// stays and that must be reported. err is an error of the destination store.
type keepRule func(ctx context.Context, there []byte) (stays, err error)

var errNewer = errors.New("the destination's object is newer")

// keepNewerOwn keeps a latest of Stasis whose snapshot is later than the source's.
func (c *copier) keepNewerOwn(loc Location, id string) keepRule {
	return func(ctx context.Context, there []byte) (stays, err error) {
		doc, bad := parseDocument(there, loc, "")
		if bad != nil || doc.Data.SnapshotID <= id {
			return bad, nil
		}
		key, err := loc.DocumentKey(doc.Data.SnapshotID)
		if err != nil {
			return nil, err
		}
		history, err := readWhole(ctx, c.to, key)
		if err == nil && bytes.Equal(history, there) {
			stays = errNewer
		}
		return stays, err
	}
}

// keepNewerAgent keeps an agent's latest that was created later than the source's. It may be
// the only copy.
func keepNewerAgent(loc Location, body []byte) keepRule {
	return func(_ context.Context, there []byte) (stays, err error) {
		if bad := checkAgentDocument(there, loc.Scope); bad != nil {
			return bad, nil
		}
		if timeField(there, "createdAt").After(timeField(body, "createdAt")) {
			stays = fault.New(fault.SnapshotExists, "snapshot.copy", "the destination keeps its newer object")
		}
		return stays, nil
	}
}

// keepNewerManifest keeps a manifest that was written later than the source's.
func keepNewerManifest(body []byte) keepRule {
	return func(_ context.Context, there []byte) (stays, err error) {
		if bad := checkManifest(there); bad != nil {
			return bad, nil
		}
		if timeField(there, "updatedAt").After(timeField(body, "updatedAt")) {
			stays = errNewer
		}
		return stays, nil
	}
}

// timeField returns a time field of a JSON object, or the zero time if there is none.
func timeField(body []byte, name string) time.Time {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text(fields[name]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// replaceObject overwrites the destination's object with the source's, unless keep says
// that it stays. f is the finding to report in that case.
func (c *copier) replaceObject(ctx context.Context, f Finding, key Key, body []byte, keep keepRule) error {
	for range overwrites {
		there, err := readWhole(ctx, c.to, key)
		if err != nil || bytes.Equal(there, body) {
			return err
		}
		if there == nil {
			_, err = c.to.Create(ctx, key, body)
		} else {
			var stays error
			stays, err = keep(ctx, there)
			switch {
			case err != nil:
				return err
			case errors.Is(stays, errNewer):
				return nil
			case fault.Is(stays, fault.SnapshotExists):
				f.Kind, f.What = OtherObject, fault.MessageOf(stays)
				return c.refuse(f)
			case fault.Is(stays, fault.Unsupported):
				f.Kind, f.What = VersionUnknown, "a later version of Stasis wrote the destination's object, which stays"
				return c.refuse(f)
			}
			_, err = c.to.Swap(ctx, key, there, body)
		}
		if err != nil {
			return err
		}
	}
	return fault.New(fault.StoreFailed, "snapshot.copy", "another process keeps changing %s in the destination", key)
}
