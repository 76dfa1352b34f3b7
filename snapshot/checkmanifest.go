package snapshot

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// manifest checks manifest.json. Everything in it can be rebuilt from other objects.
func (l *look) manifest(ctx context.Context) error {
	key, err := l.loc.ManifestKey()
	if err != nil {
		return err
	}
	ours := l.loc.ScopeID == environments
	f := Finding{Kind: ManifestDamaged, Location: l.loc, Key: key.path, Repairable: ours && l.some}
	body, err := readWhole(ctx, l.vault.store, key)
	switch {
	case err != nil:
		f.Repairable = false
		return l.troubled(ctx, err, f, l.tell)
	case body == nil && ours && l.some:
		f.Kind, f.What = ManifestMissing, "there are snapshots but no manifest"
		return l.tell(f)
	case body == nil:
		return nil
	}
	err = checkManifest(body)
	if fault.Is(err, fault.Unsupported) {
		l.unclear() // a later version may keep documents under other names
		f.Repairable = false
		return l.judge(err, f)
	}
	if err != nil {
		f.What = fault.MessageOf(err)
		return l.tell(f)
	}
	return nil
}
