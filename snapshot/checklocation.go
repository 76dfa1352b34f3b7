package snapshot

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// look checks one location once.
type look struct {
	*checker
	loc    Location
	tell   func(Finding) error
	newest string          // newest snapshot that can be restored
	some   bool            // there is at least one document
	broken map[string]bool // snapshots that cannot be restored
}

func newLook(c *checker, loc Location, tell func(Finding) error) *look {
	l := &look{checker: c, loc: loc, broken: map[string]bool{}}
	l.tell = func(f Finding) error {
		switch f.Kind {
		case DocumentDamaged, ArchiveMissing, ArchiveDamaged:
			l.broken[f.Snapshot] = true
		}
		return tell(f)
	}
	return l
}

// location checks everything in a location's folder.
func (c *checker) location(ctx context.Context, loc Location, tell func(Finding) error) error {
	l := newLook(c, loc, tell)
	folder := Key{loc.folder()}
	for name, err := range names(ctx, c.vault.store, folder) {
		if err != nil {
			l.unclear()
			return c.troubled(ctx, err, Finding{Location: loc, Key: folder.path}, tell)
		}
		switch name {
		case latestName, manifestName, historyName:
			continue
		}
		if err := l.stray(folder, name); err != nil {
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

// stray reports an object that no save creates. It needs no second look.
func (l *look) stray(folder Key, name string) error {
	if l.second {
		return nil
	}
	f := strayAt(Key{folder.path + "/" + name})
	f.Location = l.loc
	return l.found(f)
}

// history checks every document.
func (l *look) history(ctx context.Context) error {
	folder, err := l.loc.HistoryFolder()
	if err != nil {
		return err
	}
	for name, err := range names(ctx, l.vault.store, folder) {
		if err != nil {
			l.unclear()
			return l.troubled(ctx, err, Finding{Location: l.loc, Key: folder.path}, l.tell)
		}
		id, ok := documentID(name)
		if !ok {
			if err := l.stray(folder, name); err != nil {
				return err
			}
			continue
		}
		if err := l.document(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// document checks one document and its archive.
func (l *look) document(ctx context.Context, id string) error {
	key, err := l.loc.DocumentKey(id)
	if err != nil {
		return err
	}
	f := Finding{Location: l.loc, Snapshot: id, Key: key.path}
	body, err := readWhole(ctx, l.vault.store, key)
	if err == nil && body == nil {
		return nil // deleted since it was listed
	}
	l.some = true
	l.count(func(out *Checked) {
		if l.loc.ScopeID == environments {
			out.Snapshots++
		} else {
			out.Others++
		}
	})
	if err != nil {
		l.unclear()
		return l.troubled(ctx, err, f, l.tell)
	}
	if l.loc.ScopeID != environments {
		return l.judge(checkAgentDocument(body, l.loc.Scope), f)
	}
	doc, err := l.vault.objects.bound(body, l.loc, id)
	if err != nil {
		l.unclear()
		return l.judge(err, f)
	}
	if len(l.vault.keys.identities) > 0 {
		if _, _, err := doc.unseal(l.vault.keys); err != nil {
			if err := l.judge(err, f); err != nil {
				return err
			}
		}
	}
	s := doc.snapshot()
	if err := l.told(ctx, key, s); err != nil {
		return err
	}
	f.Archive, f.Key = s.Archive.ID, archives+"/"+s.Archive.ID
	whole, err := l.archive(ctx, s, f)
	if whole && !l.broken[id] {
		l.newest = id
	}
	return err
}

// unclear counts an unreadable object that may name an archive.
func (l *look) unclear() { l.count(func(out *Checked) { out.Unclear++ }) }

// count counts only during the first look.
func (l *look) count(add func(*Checked)) {
	if !l.second {
		add(&l.out)
	}
}

// name records that a document names the archive.
func (l *look) name(a Archive) {
	if d := digestOf(a.ID); !l.isNamed(d) {
		l.named[d] = digest{}
	}
}

// told records that the archive is named and passes the document to the Document
// callback.
func (l *look) told(ctx context.Context, key Key, s Snapshot) error {
	l.name(s.Archive)
	if l.second || l.o.Document == nil {
		return nil
	}
	st, err := l.vault.store.Stat(ctx, key)
	if err != nil && !fault.Is(err, fault.SnapshotNotFound) {
		return l.troubled(ctx, err, Finding{Location: l.loc, Snapshot: s.ID, Key: key.path}, l.tell)
	}
	if err != nil {
		return nil
	}
	return l.o.Document(s, st.Modified)
}

// judge turns the error of a document or an archive into a finding.
func (l *look) judge(err error, f Finding) error {
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
	return l.tell(f)
}
