package snapshot

import (
	"bytes"
	"context"

	"github.com/stasisd/stasis/fault"
)

// Rewrapping says how what a store holds is to be sealed anew: to the vault's
// recipients, and to those others that it is sealed to already.
type Rewrapping struct {
	// Retire are recipients that nothing stays sealed to ("age1…").
	Retire []string
	// Progress is told how many of all archives have been looked at; nil: nobody.
	Progress func(done, total int)
}

// Rewrapped tells what a rewrapping came to.
type Rewrapped struct {
	Archives  int // whose header was written anew
	Opened    int // archives that opened, or are sealed as they should be already
	Documents int // that were written anew, latest ones included
	Left      []LeftSealed
}

// LeftSealed is an object that stays as it is, and why: it is damaged, or sealed
// to somebody whose identity is not here.
type LeftSealed struct {
	Key string
	Err error
}

// Rewrap writes the headers of every archive, and of the sealed part of every
// document, anew. No payload is encrypted again and nothing gets another name: a
// payload is copied, and must be the one that its document binds before it takes
// the old object's place, in one step. So everything opens at any time, before,
// during and after, with identities for both; and what is done is passed over when
// Rewrap is called again. Errors are the store's; objects that cannot be opened are
// in Left.
func (v *Vault) Rewrap(ctx context.Context, o Rewrapping) (Rewrapped, error) {
	r := rewrapping{vault: v, Rewrapping: o, looked: map[string]bool{}}
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
			continue // an agent's own, where nothing is sealed
		}
		if err := r.location(ctx, loc); err != nil {
			return r.out, err
		}
	}
	// Archives that no document names may still be wanted: by one that is put back.
	for id, err := range names(ctx, v.store, ArchiveFolder()) {
		if err != nil {
			return r.out, err
		}
		if key, err := ArchiveKey(id); err == nil && !r.looked[id] {
			_, err := r.archive(ctx, key, id, nil)
			if err := r.left(key, err); err != nil {
				return r.out, err
			}
		}
	}
	return r.out, nil
}

// rewrapping is one run of Rewrap.
type rewrapping struct {
	vault *Vault
	Rewrapping
	out    Rewrapped
	total  int             // archives
	looked map[string]bool // archive ID → it was looked at
}

// left notes an object that stays as it is; other errors are given back.
func (r *rewrapping) left(key Key, err error) error {
	switch fault.CodeOf(err) {
	case fault.ArchiveDamaged, fault.IdentityMissing, fault.Unsupported:
		r.out.Left = append(r.out.Left, LeftSealed{key.String(), err})
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
		id, ok := documentID(name)
		if !ok {
			continue
		}
		key, err := loc.DocumentKey(id)
		if err != nil {
			return err
		}
		if err := r.left(key, r.document(ctx, key, loc, id)); err != nil {
			return err
		}
	}
	key, err := loc.LatestKey()
	if err != nil {
		return err
	}
	return r.left(key, r.latest(ctx, key, loc))
}

// document rewraps a document's archive, then its own sealed part.
func (r *rewrapping) document(ctx context.Context, key Key, loc Location, id string) error {
	body, err := r.vault.objects.readOld(ctx, key)
	if err != nil || body == nil {
		return err
	}
	doc, err := r.vault.objects.bound(body, loc, id)
	if err != nil {
		return err
	}
	s := doc.snapshot()
	archive, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return err
	}
	size, err := r.archive(ctx, archive, s.Archive.ID, &s)
	if err := r.left(archive, err); err != nil {
		return err
	}
	anew, err := doc.rewrapped(r.vault.keys, r.Retire, size)
	if err != nil || anew == nil {
		return err
	}
	return r.swap(ctx, key, loc, body, anew)
}

// latest makes a location's latest the copy of its document again; one whose
// document is missing is rewrapped by itself.
func (r *rewrapping) latest(ctx context.Context, key Key, loc Location) error {
	body, err := r.vault.objects.readOld(ctx, key)
	if err != nil || body == nil {
		return err
	}
	doc, err := r.vault.objects.bound(body, loc, "")
	if err != nil {
		return err
	}
	history, err := loc.DocumentKey(doc.Data.SnapshotID)
	if err != nil {
		return err
	}
	anew, err := r.vault.objects.readOld(ctx, history)
	if err == nil && anew == nil {
		anew, err = doc.rewrapped(r.vault.keys, r.Retire, 0)
	}
	if err != nil || anew == nil || bytes.Equal(anew, body) {
		return err
	}
	return r.swap(ctx, key, loc, body, anew)
}

// swap puts a document in the place of the one that was read. Who wrote it
// meanwhile is another process that shares the store: it is looked at again when
// Rewrap is called again.
func (r *rewrapping) swap(ctx context.Context, key Key, loc Location, old, anew []byte) error {
	unlock, err := r.vault.locks.lock(ctx, loc.folder())
	if err != nil {
		return err
	}
	defer unlock()
	swapped, err := r.vault.store.Swap(ctx, key, old, anew)
	if err == nil && !swapped {
		err = fault.New(fault.StoreFailed, "snapshot.rewrap", "another process writes to the store; run it again")
	}
	if err == nil {
		r.out.Documents++
	}
	return err
}

// archive rewraps an archive that a snapshot binds (nil: none does) and returns its
// stored size.
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
