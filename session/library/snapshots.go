package library

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// SnapshotRecords are the records of snapshots that are removed; see
// [profiles.SnapshotStore] and [profiles.RetentionStore].
type SnapshotRecords interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)
}

// Vault holds the bytes of snapshots; see [snapshot.Vault].
type Vault interface {
	Open(ctx context.Context, loc snapshot.Location, id string) (snapshot.Snapshot, error)
	Stored(ctx context.Context, s snapshot.Snapshot) error
	Peek(ctx context.Context, s snapshot.Snapshot, names ...string) (files map[string][]byte, err error)
	Delete(ctx context.Context, loc snapshot.Location, id string, inUse snapshot.InUse) error
}

// Parked are the frozen Chromes that are kept with memory snapshots.
type Parked interface {
	HasParked(snapshotID string) bool
	DropParked(ctx context.Context, snapshotID string) error
}

// Snapshots are the stored snapshots: it opens them, keeps them while they are
// read, and removes them. Its methods are safe for concurrent use.
type Snapshots struct {
	records SnapshotRecords
	vault   Vault
	parked  Parked
	log     *slog.Logger
	readers *readers
}

// NewSnapshots makes the Snapshots of a catalogue and a vault. There must be one for
// both: it alone knows who reads.
func NewSnapshots(records SnapshotRecords, vault Vault, parked Parked, log *slog.Logger) *Snapshots {
	return &Snapshots{records: records, vault: vault, parked: parked, log: log, readers: newReaders()}
}

// Hold keeps a snapshot from being removed until release is called, which may be
// called twice. what says how it is read ("restored"), for who wants to remove it. A
// snapshot that was removed since it was looked up is snapshot_not_found.
func (s *Snapshots) Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error) {
	release, err = s.readers.hold(ctx, row.ID, what)
	if err != nil {
		return nil, err
	}
	if _, err := s.records.Snapshot(ctx, row.ID); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Document reads a snapshot's state document from its archive, which it holds
// meanwhile; what is that of [Snapshots.Hold].
func (s *Snapshots) Document(ctx context.Context, row profiles.Snapshot, what string) (state.Document, error) {
	release, err := s.Hold(ctx, row, what)
	if err != nil {
		return state.Document{}, err
	}
	defer release()
	_, raw, err := s.peek(ctx, row)
	if err != nil {
		return state.Document{}, err
	}
	return ParseDocument(row.ID, raw)
}

// peek opens a snapshot and reads the bytes of its state document, nil where the
// archive has none. The whole archive is verified on the way.
func (s *Snapshots) peek(ctx context.Context, row profiles.Snapshot) (snapshot.Snapshot, []byte, error) {
	saved, err := s.open(ctx, row)
	if err != nil {
		return saved, nil, err
	}
	files, err := s.vault.Peek(ctx, saved, state.FileName)
	return saved, files[state.FileName], err
}

// open opens a snapshot's document in the store.
func (s *Snapshots) open(ctx context.Context, row profiles.Snapshot) (snapshot.Snapshot, error) {
	return s.vault.Open(ctx, LocationOf(row.UserID, row.SessionID), row.ID)
}

// stored returns an error where a snapshot's document does not open, or its archive
// is not there in the length that was saved. It does not read the archive, as a
// verification does.
func (s *Snapshots) stored(ctx context.Context, row profiles.Snapshot) error {
	const op = "library.stored"
	saved, err := s.open(ctx, row)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return fault.Wrap(err, fault.SnapshotNotFound, op, "snapshot "+row.ID+" is gone from the store: its document is missing")
	case err != nil:
		return err
	case saved.Archive.ID != row.ArchiveID:
		return fault.New(fault.ArchiveDamaged, op, "snapshot %s: its document and the catalogue name different archives", row.ID)
	}
	return s.vault.Stored(ctx, saved)
}

// Retire removes a snapshot that nobody asked to remove. One that is a default, that
// a session needs which has not ended, or that is being read is snapshot_in_use.
// freed counts the bytes of an archive that no other snapshot names.
func (s *Snapshots) Retire(ctx context.Context, row profiles.Snapshot) (freed int64, err error) {
	return s.remove(ctx, row, s.records.RetireSnapshot)
}

// Delete removes a snapshot at somebody's request. One that is a default, or that is
// being read, is snapshot_in_use.
func (s *Snapshots) Delete(ctx context.Context, row profiles.Snapshot) error {
	_, err := s.remove(ctx, row, s.records.DeleteSnapshot)
	return err
}

// Held reports whether a snapshot is being read.
func (s *Snapshots) Held(id string) bool { return s.readers.reads(id) }

// remove removes a snapshot's record by forget, then its parked Chrome and its
// bytes. The record goes first: a snapshot that has one is whole.
func (s *Snapshots) remove(ctx context.Context, row profiles.Snapshot, forget func(context.Context, string) (lastUse bool, err error)) (freed int64, err error) {
	done, err := s.readers.remove(ctx, row.ID)
	if err != nil {
		return 0, err
	}
	defer done()
	lastUse, err := forget(ctx, row.ID)
	if err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.parked.DropParked(ctx, row.ID); err != nil {
		s.log.Error("a parked Chrome could not be ended", "snapshot", row.ID, "error", err)
	}
	if err := s.vault.Delete(ctx, LocationOf(row.UserID, row.SessionID), row.ID, s.records.ArchiveInUse); err != nil {
		s.log.Error("a deleted snapshot's bytes could not be removed", "snapshot", row.ID, "error", err)
		return 0, nil
	}
	if lastUse {
		freed = row.SizeBytes
	}
	return freed, nil
}

// ParseDocument reads a snapshot's state document; nil where its archive has none.
// What cannot be read is archive_damaged, another version unsupported.
func ParseDocument(id string, raw []byte) (doc state.Document, err error) {
	const op = "library.document"
	if raw == nil {
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: its archive has no %s", id, state.FileName)
	}
	err = json.Unmarshal(raw, &doc)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: %s: %s is of a wrong type", id, state.FileName, mistyped.Field)
	case err != nil:
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: %s is not JSON", id, state.FileName)
	}
	if doc.SchemaVersion != state.SchemaVersion {
		return doc, fault.New(fault.Unsupported, op, "snapshot %s: its state document has version %q; this daemon knows %q",
			id, doc.SchemaVersion, state.SchemaVersion)
	}
	return doc, nil
}
