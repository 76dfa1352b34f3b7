package snapshot

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// locationCheck checks one location once.
type locationCheck struct {
	*checker
	loc          Location
	report       func(Finding) error
	newest       string          // newest snapshot that can be restored
	hasDocuments bool            // there is at least one document
	broken       map[string]bool // snapshots that cannot be restored
}

func newLocationCheck(c *checker, loc Location, report func(Finding) error) *locationCheck {
	l := &locationCheck{checker: c, loc: loc, broken: map[string]bool{}}
	l.report = func(f Finding) error {
		switch f.Kind {
		case DocumentDamaged, ArchiveMissing, ArchiveDamaged:
			l.broken[f.Snapshot] = true
		}
		return report(f)
	}
	return l
}

// location checks everything in a location's folder.
func (c *checker) location(ctx context.Context, loc Location, report func(Finding) error) error {
	l := newLocationCheck(c, loc, report)
	folder := Key{loc.folder()}
	for name, err := range names(ctx, c.vault.store, folder) {
		if err != nil {
			l.countUnclear()
			return c.reportUnreadable(ctx, err, Finding{Location: loc, Key: folder.path}, report)
		}
		switch name {
		case latestName, manifestName, historyName:
			continue
		}
		if err := l.reportUnknown(folder, name); err != nil {
			return err
		}
	}
	if err := l.history(ctx); err != nil {
		return err
	}
	if err := l.latest(ctx); err != nil {
		return err
	}
	return l.manifest(ctx)
}

// reportUnknown reports an object that no save creates. It needs no second look.
func (l *locationCheck) reportUnknown(folder Key, recordArchive string) error {
	if l.second {
		return nil
	}
	f := unknownObject(Key{folder.path + "/" + recordArchive})
	f.Location = l.loc
	return l.found(f)
}

// history checks every document.
func (l *locationCheck) history(ctx context.Context) error {
	folder, err := l.loc.HistoryFolder()
	if err != nil {
		return err
	}
	for name, err := range names(ctx, l.vault.store, folder) {
		if err != nil {
			l.countUnclear()
			return l.reportUnreadable(ctx, err, Finding{Location: l.loc, Key: folder.path}, l.report)
		}
		id, ok := l.loc.documentID(name)
		if !ok {
			if err := l.reportUnknown(folder, name); err != nil {
				return err
			}
			continue
		}
		if err := l.document(ctx, id); err != nil {
			return err
		}
		if l.o.Progress != nil {
			l.o.Progress(len(l.named))
		}
	}
	return nil
}

// document checks one document and its archive.
func (l *locationCheck) document(ctx context.Context, id string) error {
	key, err := l.loc.DocumentKey(id)
	if err != nil {
		return err
	}
	f := Finding{Location: l.loc, Snapshot: id, Key: key.path}
	body, err := readWhole(ctx, l.vault.store, key)
	if err == nil && body == nil {
		return nil // deleted since it was listed
	}
	l.hasDocuments = true
	l.count(func(out *CheckResult) {
		if l.loc.ScopeID == environments {
			out.Snapshots++
		} else {
			out.Others++
		}
	})
	if err != nil {
		l.countUnclear()
		return l.reportUnreadable(ctx, err, f, l.report)
	}
	if l.loc.ScopeID != environments {
		return l.reportError(checkAgentDocument(body, l.loc.Scope), f)
	}
	doc, err := l.vault.objects.parsePlain(body, l.loc, id)
	if err != nil {
		l.countUnclear()
		return l.reportError(err, f)
	}
	if len(l.vault.keys.identities) > 0 {
		if _, _, err := doc.unseal(l.vault.keys); err != nil {
			if err := l.reportError(err, f); err != nil {
				return err
			}
		}
	}
	s := doc.snapshot()
	if err := l.passOn(ctx, key, s); err != nil {
		return err
	}
	f.Archive, f.Key = s.Archive.ID, archives+"/"+s.Archive.ID
	intact, err := l.archive(ctx, s, f)
	if intact && !l.broken[id] {
		l.newest = id
	}
	return err
}

// countUnclear counts an unreadable object that may name an archive.
func (l *locationCheck) countUnclear() { l.count(func(out *CheckResult) { out.Unclear++ }) }

// count counts only during the first look.
func (l *locationCheck) count(add func(*CheckResult)) {
	if !l.second {
		add(&l.out)
	}
}

// recordArchive records that a document names the archive.
func (l *locationCheck) recordArchive(a Archive) {
	if d := digestOf(a.ID); !l.isNamed(d) {
		l.named[d] = digest{}
	}
}

// passOn records that the archive is named and passes the document to the Document
// callback.
func (l *locationCheck) passOn(ctx context.Context, key Key, s Snapshot) error {
	l.recordArchive(s.Archive)
	if l.second || l.o.Document == nil {
		return nil
	}
	st, err := l.vault.store.Stat(ctx, key)
	if err != nil && !fault.Is(err, fault.SnapshotNotFound) {
		return l.reportUnreadable(ctx, err, Finding{Location: l.loc, Snapshot: s.ID, Key: key.path}, l.report)
	}
	if err != nil {
		return nil
	}
	return l.o.Document(s, st.Modified)
}

// reportError turns the error of a document or an archive into a finding.
func (l *locationCheck) reportError(err error, f Finding) error {
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.Unsupported):
		f.Kind = VersionUnknown
	case fault.Is(err, fault.IdentityMissing):
		f.Kind = IdentityMissing
	case f.Archive != "":
		f.Kind = ArchiveDamaged
	default:
		f.Kind = DocumentDamaged
	}
	f.What = fault.MessageOf(err)
	return l.report(f)
}
