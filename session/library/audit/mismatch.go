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

// newestTried is how many of the newest snapshots a start opens. mismatchDeadline is how
// long a start waits for a slow store.
const (
	newestTried      = 5
	mismatchDeadline = 10 * time.Second
)

// mismatch checks whether a catalogue, a store and keys belong together.
type mismatch struct {
	vault     *snapshot.Vault
	sessions  SessionRecords
	snapshots SnapshotRecords
	log       *slog.Logger
}

// LogMismatch logs if the catalogue, the store and the keys do not belong together, and
// what to do about it. Each of them alone looks right. Without this check the first sign
// would be a failed restore, perhaps after a week of saves with a wrong key. It returns
// no error, because a daemon can start and save new sessions all the same. It takes at
// most [mismatchDeadline].
func LogMismatch(ctx context.Context, vault *snapshot.Vault, sessions SessionRecords, snapshots SnapshotRecords, log *slog.Logger) {
	m := mismatch{vault: vault, sessions: sessions, snapshots: snapshots, log: log}
	ctx, cancel := context.WithTimeout(ctx, mismatchDeadline)
	defer cancel()
	rows, _, err := m.snapshots.Snapshots(ctx, profiles.SnapshotFilter{Limit: newestTried, OmitReports: true})
	switch {
	case err != nil:
	case len(rows) == 0:
		err = m.lostCatalogue(ctx)
	default:
		err = m.logUnopenable(ctx, rows)
	}
	if err != nil {
		m.log.Warn("the daemon could not check whether the catalogue, the store and the keys belong together", "error", err)
	}
}

// logUnopenable logs why none of the snapshots can be opened. If one can, the keys and the
// store are right.
func (m mismatch) logUnopenable(ctx context.Context, rows []profiles.Snapshot) error {
	codes := map[fault.Code]int{}
	var first error
	for _, row := range rows {
		_, err := m.vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
		code := fault.CodeOf(err)
		switch code {
		case fault.ArchiveDamaged, fault.IdentityMissing, fault.SnapshotNotFound:
		case "", fault.Unsupported: // that snapshot needs a newer version and proves nothing about the keys
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
		m.log.Error("none of the newest snapshots can be opened: the archive-key is probably not the one that they were written with, or the store belongs to another daemon",
			"tried", len(rows), "error", first,
			"do", "stop the daemon and restore DIR/archive-key (or the file of --archive-key-file) from a backup; snapshots saved with the current key cannot be opened with the right one")
	case all(fault.IdentityMissing):
		m.log.Error("no identity of this daemon can open the newest snapshots, so they cannot be restored", "tried", len(rows), "needed", fault.MessageOf(first),
			"do", "restore DIR/identity (or the source that --identity-file, --identity-command or STASIS_IDENTITY names) from a backup")
	case all(fault.SnapshotNotFound):
		m.log.Error("the store has none of the newest snapshots that the catalogue names: they were saved to another --store, or to mem://, which does not outlive the daemon",
			"tried", len(rows), "do", "stop the daemon and set --store to the previous store, or copy that store here with `stasis store copy`")
	default:
		m.log.Error("none of the newest snapshots can be opened", "tried", len(rows), "error", first, "do", "run `stasis store check`")
	}
	return nil
}

// lostCatalogue logs if the store has snapshots and the catalogue names none. It ignores
// snapshots of sessions in the catalogue: they are the remains of a save or a delete.
func (m mismatch) lostCatalogue(ctx context.Context) error {
	for loc, err := range m.vault.Environments(ctx) {
		if err != nil {
			return err
		}
		_, err := m.sessions.Session(ctx, loc.Session)
		if fault.Is(err, fault.SessionNotFound) {
			m.log.Warn("the catalogue names no snapshot, but the store has some: the catalogue was lost, or the store belongs to another daemon", "found", "session "+loc.Session,
				"do", "restore DIR/stasis.db (or the database of --database) from a backup; without a backup, import the archives of the store with `stasis snapshot import`")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
