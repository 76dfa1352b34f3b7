package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
)

// latest copies snapshot_latest.json, of ours only where what it is a copy of is
// there.
func (c *copier) latest(ctx context.Context, loc Location, key Key, body []byte) error {
	if body == nil {
		return nil
	}
	f := Finding{Kind: LatestDamaged, Location: loc, Key: key.path}
	if loc.ScopeID != environments {
		if err := checkAgentDocument(body, loc.Scope); err != nil {
			return c.refuseDocument(f, err)
		}
		return c.move(ctx, f, key, body, newerAgents(loc, body))
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
		f.What = "the destination lacks the snapshot that it is a copy of"
		return c.refuse(f)
	}
	return c.move(ctx, f, key, body, c.newerOurs(loc, f.Snapshot))
}

// keeps looks at an object of the destination that the source has otherwise. stays
// is nil where it gives way, also because it is damaged; errNewer where it stays;
// snapshot_exists or unsupported where it stays and that is to be told. err is the
// destination's own.
type keeps func(ctx context.Context, there []byte) (stays, err error)

var errNewer = errors.New("the destination's is the newer one")

// newerOurs keeps a latest that is a copy of a later snapshot than the source's.
func (c *copier) newerOurs(loc Location, id string) keeps {
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

// newerAgents keeps an agent's latest that was made later than the source's: it may
// be all that there is of it.
func newerAgents(loc Location, body []byte) keeps {
	return func(_ context.Context, there []byte) (stays, err error) {
		if bad := checkAgentDocument(there, loc.Scope); bad != nil {
			return bad, nil
		}
		if timeIn(there, "createdAt").After(timeIn(body, "createdAt")) {
			stays = fault.New(fault.SnapshotExists, "snapshot.copy", "the destination has a newer one there, which stays")
		}
		return stays, nil
	}
}

// newerManifest keeps a manifest that was written later than the source's.
func newerManifest(body []byte) keeps {
	return func(_ context.Context, there []byte) (stays, err error) {
		if bad := checkManifest(there); bad != nil {
			return bad, nil
		}
		if timeIn(there, "updatedAt").After(timeIn(body, "updatedAt")) {
			stays = errNewer
		}
		return stays, nil
	}
}

// timeIn is a time in a JSON object; the zero one where there is none.
func timeIn(body []byte, name string) time.Time {
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

// move makes an object of the destination the source's, unless that one stays. f is
// what is told then.
func (c *copier) move(ctx context.Context, f Finding, key Key, body []byte, look keeps) error {
	for range overwrites {
		there, err := readWhole(ctx, c.to, key)
		if err != nil || bytes.Equal(there, body) {
			return err
		}
		if there == nil {
			_, err = c.to.Create(ctx, key, body)
		} else {
			var stays error
			stays, err = look(ctx, there)
			switch {
			case err != nil:
				return err
			case errors.Is(stays, errNewer):
				return nil
			case fault.Is(stays, fault.SnapshotExists):
				f.Kind, f.What = OtherObject, fault.MessageOf(stays)
				return c.refuse(f)
			case fault.Is(stays, fault.Unsupported):
				f.Kind, f.What = VersionUnknown, "a later Stasis wrote the destination's, which stays"
				return c.refuse(f)
			}
			_, err = c.to.Swap(ctx, key, there, body)
		}
		if err != nil {
			return err
		}
	}
	return fault.New(fault.StoreFailed, "snapshot.copy", "%s of the destination does not stay as it was written", key)
}
