package snapshot

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// archive checks the archive of a snapshot. intact reports that nothing wrong was found.
func (l *locationCheck) archive(ctx context.Context, s Snapshot, f Finding) (intact bool, err error) {
	key, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return false, err
	}
	st, err := l.vault.store.Stat(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		f.Kind, f.What = ArchiveMissing, "its archive is missing"
		return false, l.report(f)
	}
	if err != nil {
		return false, l.reportUnreadable(ctx, err, f, l.report)
	}
	if st.Size != s.Archive.StoredSize {
		fits, err := l.vault.files.fits(ctx, key, st.Size, s.Archive)
		if err != nil {
			return false, l.reportUnreadable(ctx, err, f, l.report)
		}
		if !fits {
			f.Kind, f.What = ArchiveDamaged, "its archive does not have the size that was saved"
			return false, l.report(f)
		}
	}
	if !l.o.ReadData {
		return true, nil
	}
	return l.read(ctx, key, s, f)
}

// CheckStored returns archive_damaged if a snapshot's archive is missing or does not have
// the size that was saved. It reads at most the header.
func (v *Vault) CheckStored(ctx context.Context, s Snapshot) error {
	key, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return err
	}
	st, err := v.store.Stat(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return damaged(s.ID, "its archive is missing", err)
	}
	if err != nil || st.Size == s.Archive.StoredSize {
		return err
	}
	fits, err := v.files.fits(ctx, key, st.Size, s.Archive)
	if err == nil && !fits {
		err = damaged(s.ID, "its archive does not have the size that was saved", nil)
	}
	return err
}

// read reads an archive down to the tar, once for all snapshots that share it.
func (l *locationCheck) read(ctx context.Context, key Key, s Snapshot, f Finding) (intact bool, err error) {
	d, payload := digestOf(s.Archive.ID), digestOf(s.Archive.PayloadSHA256)
	if l.named[d] == payload {
		return true, nil
	}
	err = l.vault.Verify(ctx, s)
	switch {
	case err == nil:
		l.named[d] = payload
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case fault.Is(err, fault.IdentityMissing):
		return l.readSealed(ctx, key, s, f)
	case fault.Is(err, fault.ArchiveDamaged):
		return false, l.reportError(err, f)
	}
	return false, l.reportUnreadable(ctx, err, f, l.report)
}

// readSealed compares the sealed bytes, which needs no identity.
func (l *locationCheck) readSealed(ctx context.Context, key Key, s Snapshot, f Finding) (intact bool, err error) {
	sum, err := l.vault.files.payload(ctx, key)
	var known *fault.Error
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &known):
		return false, l.reportUnreadable(ctx, err, f, l.report)
	case err != nil || sum.hex() != s.Archive.PayloadSHA256:
		f.Kind, f.What = ArchiveDamaged, "its sealed payload is not the one that was saved"
		return false, l.report(f)
	}
	f.Kind, f.What = IdentityMissing, "no identity here opens its archive; its sealed bytes are those that were saved"
	return true, l.report(f)
}
