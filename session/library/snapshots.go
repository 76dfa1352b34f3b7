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

// SnapshotRecords reads and removes the records of snapshots; see
// [profiles.SnapshotStore] and [profiles.RetentionStore].
type SnapshotRecords interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)
}

// Vault reads and removes the bytes of snapshots; see [snapshot.Vault].
type Vault interface {
	Open(ctx context.Context, loc snapshot.Location, id string) (snapshot.Snapshot, error)
	CheckStored(ctx context.Context, s snapshot.Snapshot) error
	Peek(ctx context.Context, s snapshot.Snapshot, names ...string) (files map[string][]byte, err error)
	Delete(ctx context.Context, loc snapshot.Location, id string, inUse snapshot.InUse) error
}

// Parked manages the frozen Chromes of memory snapshots.
type Parked interface {
	HasParked(snapshotID string) bool
	DropParked(ctx context.Context, snapshotID string) error
}

// Snapshots manages the stored snapshots: it opens them, holds them while they are read,
// and removes them. Its methods are safe for concurrent use.
type Snapshots struct {
	records SnapshotRecords
	vault   Vault
	parked  Parked
	log     *slog.Logger
	readers *readers
	holds   Holds // nil: no other node removes snapshots
}

// Holds prevents that other nodes remove a snapshot; see claims.Claims.
type Holds interface {
	Hold(ctx context.Context, snapshotID, what string) (release func(), err error)
}

// NewSnapshots makes the Snapshots of a catalogue and a vault. A daemon must have only
// one, because it alone knows which snapshots are being read.
func NewSnapshots(records SnapshotRecords, vault Vault, parked Parked, log *slog.Logger) *Snapshots {
	return &Snapshots{records: records, vault: vault, parked: parked, log: log, readers: newReaders()}
}

// UseHolds makes Hold also prevent removals by other nodes. It is called before anything else.
func (s *Snapshots) UseHolds(h Holds) { s.holds = h }

// Hold prevents the removal of a snapshot until release is called, which may be called
// twice. what names the use ("restored") for the error of a removal. If the snapshot was
// removed since it was looked up, the error is snapshot_not_found.
func (s *Snapshots) Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error) {
	leave, err := s.readers.hold(ctx, row.ID, what)
	if err != nil {
		return nil, err
	}
	if s.holds != nil {
		everywhere, err := s.holds.Hold(ctx, row.ID, what)
		if err != nil {
			leave()
			return nil, err
		}
		return func() { everywhere(); leave() }, nil
	}
	if _, err := s.records.Snapshot(ctx, row.ID); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Document reads a snapshot's state document from its archive and holds the snapshot
// meanwhile. what is as in [Snapshots.Hold].
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

// peek opens a snapshot and reads the bytes of its state document; nil if the archive has
// none. It verifies the whole archive.
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

// stored returns an error if a snapshot's document cannot be opened, or if its archive is
// missing or has another length. It does not read the archive, unlike a verification.
func (s *Snapshots) stored(ctx context.Context, row profiles.Snapshot) error {
	const op = "library.stored"
	saved, err := s.open(ctx, row)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return fault.Wrap(err, fault.SnapshotNotFound, op, "snapshot "+row.ID+": its document is missing from the store")
	case err != nil:
		return err
	case saved.Archive.ID != row.ArchiveID:
		return fault.New(fault.ArchiveDamaged, op, "snapshot %s: its document and the catalogue name different archives", row.ID)
	}
	return s.vault.CheckStored(ctx, saved)
}

// Retire removes a snapshot for a policy. If it is a default, is being read, or is needed
// by a session that has not ended, the error is snapshot_in_use. freed is the size in
// bytes of its archive if no other snapshot names that, else 0.
func (s *Snapshots) Retire(ctx context.Context, row profiles.Snapshot) (freed int64, err error) {
	return s.remove(ctx, row, s.records.RetireSnapshot)
}

// Delete removes a snapshot for a caller. If it is a default or is being read, the error
// is snapshot_in_use.
func (s *Snapshots) Delete(ctx context.Context, row profiles.Snapshot) error {
	_, err := s.remove(ctx, row, s.records.DeleteSnapshot)
	return err
}

// Held reports whether a snapshot is being read.
func (s *Snapshots) Held(id string) bool { return s.readers.reads(id) }

// remove removes a snapshot's record with forget, then its parked Chrome and its bytes.
// The record is removed first, so that every record has a complete snapshot.
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
		s.log.Error("a parked Chrome could not be ended; it keeps its memory until the daemon restarts", "snapshot", row.ID, "error", err)
	}
	if err := s.vault.Delete(ctx, LocationOf(row.UserID, row.SessionID), row.ID, s.records.ArchiveInUse); err != nil {
		s.log.Error("the files of a deleted snapshot could not be removed from the store; stop the daemon and run `stasis store check --remove-orphans`", "snapshot", row.ID, "error", err)
		return 0, nil
	}
	if lastUse {
		freed = row.SizeBytes
	}
	return freed, nil
}

// ParseDocument parses a snapshot's state document; raw is nil if its archive has none. A
// document that is missing or cannot be parsed is archive_damaged; another version is
// unsupported.
func ParseDocument(id string, raw []byte) (doc state.Document, err error) {
	const op = "library.document"
	if raw == nil {
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: its archive has no %s", id, state.FileName)
	}
	err = json.Unmarshal(raw, &doc)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: %s: %s has the wrong type", id, state.FileName, mistyped.Field)
	case err != nil:
		return doc, fault.New(fault.ArchiveDamaged, op, "snapshot %s: %s is not JSON", id, state.FileName)
	}
	if doc.SchemaVersion != state.SchemaVersion {
		return doc, fault.New(fault.Unsupported, op, "snapshot %s: its state document has version %q; this daemon reads %q",
			id, doc.SchemaVersion, state.SchemaVersion)
	}
	return doc, nil
}
