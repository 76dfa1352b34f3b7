package snapshot

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// manifest checks manifest.json. Everything in it can be rebuilt from other objects.
func (l *locationCheck) manifest(ctx context.Context) error {
	key, err := l.loc.ManifestKey()
	if err != nil {
		return err
	}
	ours := l.loc.ScopeID == environments
	f := Finding{Kind: ManifestDamaged, Location: l.loc, Key: key.path, Repairable: ours && l.hasDocuments}
	body, err := readWhole(ctx, l.vault.store, key)
	switch {
	case err != nil:
		f.Repairable = false
		return l.reportUnreadable(ctx, err, f, l.report)
	case body == nil && ours && l.hasDocuments:
		f.Kind, f.What = ManifestMissing, "there are snapshots, but manifest.json is missing"
		return l.report(f)
	case body == nil:
		return nil
	}
	err = checkManifest(body)
	if fault.Is(err, fault.Unsupported) {
		l.countUnclear() // a later version may keep documents under other names
		f.Repairable = false
		return l.reportError(err, f)
	}
	if err != nil {
		f.What = fault.MessageOf(err)
		return l.report(f)
	}
	return nil
}
