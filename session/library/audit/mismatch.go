package audit

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
)

// tried is how many of the newest snapshots a start opens the documents of, and
// mismatchDeadline for how long a start may wait for a slow store to give them.
const (
	tried            = 5
	mismatchDeadline = 10 * time.Second
)

// mismatch looks whether a catalogue, a store and keys belong to one daemon.
type mismatch struct {
	vault     *snapshot.Vault
	sessions  SessionRecords
	snapshots SnapshotRecords
	log       *slog.Logger
}

// LogMismatch logs where catalogue, store and keys do not belong together, and what to do
// about it. Each alone looks right, so else the first sign would be a restore that fails,
// after a week of saves with a wrong key perhaps. It returns no error: a start goes on,
// because new sessions can be saved. It takes [mismatchDeadline] at most.
func LogMismatch(ctx context.Context, vault *snapshot.Vault, sessions SessionRecords, snapshots SnapshotRecords, log *slog.Logger) {
	m := mismatch{vault: vault, sessions: sessions, snapshots: snapshots, log: log}
	ctx, cancel := context.WithTimeout(ctx, mismatchDeadline)
	defer cancel()
	rows, _, err := m.snapshots.Snapshots(ctx, profiles.SnapshotFilter{Limit: tried, Bare: true})
	switch {
	case err != nil:
	case len(rows) == 0:
		err = m.lostCatalogue(ctx)
	default:
		err = m.unopened(ctx, rows)
	}
	if err != nil {
		m.log.Warn("whether the catalogue, the store and the keys belong together could not be looked at", "error", err)
	}
}

// unopened logs why none of the snapshots opens; one that does is enough to
// say that keys and store are right.
func (m mismatch) unopened(ctx context.Context, rows []profiles.Snapshot) error {
	codes := map[fault.Code]int{}
	var first error
	for _, row := range rows {
		_, err := m.vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
		code := fault.CodeOf(err)
		switch code {
		case fault.ArchiveDamaged, fault.IdentityMissing, fault.SnapshotNotFound:
		case "", fault.Unsupported: // that one needs a newer version, and says nothing of keys
			return nil
		default:
			return err
		}
		if codes[code]++; first == nil {
			first = err
		}
	}
	all := func(code fault.Code) bool { return codes[code] == len(rows) }
	switch {
	case all(fault.ArchiveDamaged):
		m.log.Error("none of the newest snapshots opens: the archive-key is probably not the one that they were written with, or the store is another daemon's",
			"tried", len(rows), "error", first,
			"do", "stop the daemon and put DIR/archive-key (or what --archive-key-file names) back from a backup: with the right one, what is saved with this one does not open")
	case all(fault.IdentityMissing):
		m.log.Error("no identity here opens the newest snapshots: they cannot be restored", "tried", len(rows), "needed", fault.MessageOf(first),
			"do", "put DIR/identity (or what --identity-file, --identity-command or STASIS_IDENTITY gives) back from a backup")
	case all(fault.SnapshotNotFound):
		m.log.Error("the store has none of the newest snapshots that the catalogue names: they were saved to another --store, or to mem://, which keeps none",
			"tried", len(rows), "do", "stop the daemon and give it the --store that it had, or copy that one here with `stasis store copy`")
	default:
		m.log.Error("none of the newest snapshots opens", "tried", len(rows), "error", first, "do", "look with `stasis store check`")
	}
	return nil
}

// lostCatalogue logs that the store has snapshots of which an empty catalogue
// knows nothing. One of a session that it knows was left by a save or a delete.
func (m mismatch) lostCatalogue(ctx context.Context) error {
	for loc, err := range m.vault.Environments(ctx) {
		if err != nil {
			return err
		}
		_, err := m.sessions.Session(ctx, loc.Session)
		if fault.Is(err, fault.SessionNotFound) {
			m.log.Warn("the catalogue names no snapshot, and the store has some: a catalogue was lost, or the store is another daemon's", "found", "session "+loc.Session,
				"do", "put DIR/stasis.db (or what --database names) back from a backup; without one, `stasis snapshot import` takes the archives of the store")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
