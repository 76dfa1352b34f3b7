package snapshot

import (
	"bytes"
	"context"

	"github.com/stasisd/stasis/fault"
)

// latest checks snapshot_latest.json. An agent's latest is a document in its own right. A
// latest of Stasis must be a copy of a snapshot that can be restored.
func (l *locationCheck) latest(ctx context.Context) error {
	key, err := l.loc.LatestKey()
	if err != nil {
		return err
	}
	f := Finding{Kind: LatestDamaged, Location: l.loc, Key: key.path, Repairable: l.newest != ""}
	body, err := readWhole(ctx, l.vault.store, key)
	if err != nil {
		l.countUnclear()
		f.Repairable = false
		return l.reportUnreadable(ctx, err, f, l.report)
	}
	if l.loc.ScopeID != environments {
		if body == nil {
			return nil
		}
		f.Repairable = false
		if err := checkAgentDocument(body, l.loc.Scope); err != nil {
			f.What = fault.MessageOf(err)
			return l.report(f)
		}
		return nil
	}
	if body == nil {
		if !l.hasDocuments {
			return nil
		}
		f.Kind, f.What = LatestMissing, "there are snapshots, but snapshot_latest.json is missing"
		return l.report(f)
	}
	l.hasDocuments = true
	return l.compare(ctx, body, f)
}

// compare compares latest with the document that it copies.
func (l *locationCheck) compare(ctx context.Context, body []byte, f Finding) error {
	doc, err := l.vault.objects.parsePlain(body, l.loc, "")
	switch {
	case fault.Is(err, fault.Unsupported):
		l.countUnclear()
		f.Repairable = false
		return l.reportError(err, f)
	case err != nil:
		f.What = fault.MessageOf(err)
		return l.report(f)
	}
	f.Snapshot = doc.Data.SnapshotID
	l.recordArchive(doc.Data.Archive)
	key, err := l.loc.DocumentKey(f.Snapshot)
	if err != nil {
		return err
	}
	history, err := readWhole(ctx, l.vault.store, key)
	switch {
	case err != nil:
		f.Key, f.Repairable = key.path, false
		return l.reportUnreadable(ctx, err, f, l.report)
	case history == nil:
		f.What, f.Repairable = "its snapshot is not in the history", true
	case bytes.Equal(history, body) && !l.broken[f.Snapshot]:
		return nil
	case bytes.Equal(history, body):
		f.What = "it names a snapshot that cannot be restored"
	default:
		f.What, f.Repairable = "it differs from its snapshot in the history", true
	}
	return l.report(f)
}
