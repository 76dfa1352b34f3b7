package snapshot

import (
	"bytes"
	"context"

	"github.com/stasisd/stasis/fault"
)

// RewrapOptions holds the options of [Vault.Rewrap]. New headers are sealed to the vault's
// recipients and to those of the old header.
type RewrapOptions struct {
	// Retire lists recipients ("age1…") that new headers leave out.
	Retire []string
	// Progress is called with the number of archives done and in total. It may be nil.
	Progress func(done, total int)
}

// RewrapResult is the result of [Vault.Rewrap].
type RewrapResult struct {
	Archives  int // with a new header
	Opened    int // archives that opened, or needed no new header
	Documents int // with a new header, latest ones included
	Skipped   []SkippedObject
}

// SkippedObject is an object that Rewrap left unchanged, and the reason: the object is
// damaged, or no identity here opens it.
type SkippedObject struct {
	Key string
	Err error
}

// Rewrap writes a new header for every archive and for the sealed part of every document.
// It encrypts no payload again and renames nothing. It copies each payload, checks that
// it is the one that its document binds, and then replaces the old object in one step. So
// before, during and after, identities for old and new recipients together open
// everything. A repeated call skips what is done. Errors are the store's; objects that
// cannot be opened are in Skipped.
func (v *Vault) Rewrap(ctx context.Context, o RewrapOptions) (RewrapResult, error) {
	r := rewrapping{vault: v, RewrapOptions: o, looked: map[string]bool{}}
	for _, err := range names(ctx, v.store, ArchiveFolder()) {
		if err != nil {
			return r.out, err
		}
		r.total++
	}
	locations, err := Locations(ctx, v.store)
	if err != nil {
		return r.out, err
	}
	for _, loc := range locations {
		if !reserved(loc.ScopeID) {
			continue // an agent's document; nothing in it is sealed
		}
		if err := r.location(ctx, loc); err != nil {
			return r.out, err
		}
	}
	// An archive that no document names may still be needed, if its document is put back.
	for id, err := range names(ctx, v.store, ArchiveFolder()) {
		if err != nil {
			return r.out, err
		}
		if key, err := ArchiveKey(id); err == nil && !r.looked[id] {
			_, err := r.archive(ctx, key, id, nil)
			if err := r.skip(key, err); err != nil {
				return r.out, err
			}
		}
	}
	return r.out, nil
}

// rewrapping is one run of [Vault.Rewrap].
type rewrapping struct {
	vault *Vault
	RewrapOptions
	out    RewrapResult
	total  int             // archives
	looked map[string]bool // archive IDs already processed
}

// skip records an object that Rewrap leaves unchanged. It returns all other errors.
func (r *rewrapping) skip(key Key, err error) error {
	switch fault.CodeOf(err) {
	case fault.ArchiveDamaged, fault.IdentityMissing, fault.Unsupported:
		r.out.Skipped = append(r.out.Skipped, SkippedObject{key.String(), err})
		return nil
	}
	return err
}

func (r *rewrapping) location(ctx context.Context, loc Location) error {
	folder, err := loc.HistoryFolder()
	if err != nil {
		return err
	}
	for name, err := range names(ctx, r.vault.store, folder) {
		if err != nil {
			return err
		}
		id, ok := loc.documentID(name)
		if !ok {
			continue
		}
		key, err := loc.DocumentKey(id)
		if err != nil {
			return err
		}
		if err := r.skip(key, r.document(ctx, key, loc, id)); err != nil {
			return err
		}
	}
	key, err := loc.LatestKey()
	if err != nil {
		return err
	}
	return r.skip(key, r.latest(ctx, key, loc))
}

// document rewraps a document's archive, then the document's sealed part.
func (r *rewrapping) document(ctx context.Context, key Key, loc Location, id string) error {
	body, err := r.vault.objects.readOld(ctx, key)
	if err != nil || body == nil {
		return err
	}
	doc, err := r.vault.objects.parsePlain(body, loc, id)
	if err != nil {
		return err
	}
	s := doc.snapshot()
	archive, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return err
	}
	size, err := r.archive(ctx, archive, s.Archive.ID, &s)
	if err := r.skip(archive, err); err != nil {
		return err
	}
	rewritten, err := doc.rewrap(r.vault.keys, r.Retire, size)
	if err != nil || rewritten == nil {
		return err
	}
	return r.swap(ctx, key, loc, body, rewritten)
}

// latest makes a location's latest a copy of its document again. If the document is
// missing, it rewraps latest itself.
func (r *rewrapping) latest(ctx context.Context, key Key, loc Location) error {
	body, err := r.vault.objects.readOld(ctx, key)
	if err != nil || body == nil {
		return err
	}
	doc, err := r.vault.objects.parsePlain(body, loc, "")
	if err != nil {
		return err
	}
	history, err := loc.DocumentKey(doc.Data.SnapshotID)
	if err != nil {
		return err
	}
	rewritten, err := r.vault.objects.readOld(ctx, history)
	if err == nil && rewritten == nil {
		rewritten, err = doc.rewrap(r.vault.keys, r.Retire, 0)
	}
	if err != nil || rewritten == nil || bytes.Equal(rewritten, body) {
		return err
	}
	return r.swap(ctx, key, loc, body, rewritten)
}

// swap replaces a document that was read. If another process changed it meanwhile, the
// next call of Rewrap handles it.
func (r *rewrapping) swap(ctx context.Context, key Key, loc Location, old, rewritten []byte) error {
	unlock, err := r.vault.locks.lock(ctx, loc.folder())
	if err != nil {
		return err
	}
	defer unlock()
	swapped, err := r.vault.store.Swap(ctx, key, old, rewritten)
	if err == nil && !swapped {
		err = fault.New(fault.StoreFailed, "snapshot.rewrap", "another process changed a document while it was resealed; stop every daemon on this store, and run the rotation again")
	}
	if err == nil {
		r.out.Documents++
	}
	return err
}

// archive rewraps an archive and returns its stored size. s is the snapshot that binds
// the archive, or nil.
func (r *rewrapping) archive(ctx context.Context, key Key, id string, s *Snapshot) (size int64, err error) {
	unlock, err := r.vault.locks.lock(ctx, key.String())
	if err != nil {
		return 0, err
	}
	defer unlock()
	if !r.looked[id] && r.Progress != nil {
		defer func() { r.Progress(len(r.looked), r.total) }()
	}
	r.looked[id] = true
	written, size, err := r.vault.files.rewrapArchive(ctx, key, s, r.Retire)
	if written {
		r.out.Archives++
	}
	if err == nil {
		r.out.Opened++
	}
	return size, err
}
