package filter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
	"github.com/stasisd/stasis/state"
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// sqliteDeadline bounds the filtering of one database.
const sqliteDeadline = 10 * time.Second

// These are reasons for removing a whole database.
var (
	errUnknownFormat = errors.New("its format is unknown")
	errTooMany       = fmt.Errorf("it has more than %d rows to leave out", leveldb.MaxEntries)
)

// table is a table of a database, with the columns that identify a row's origin.
type table struct {
	file, name, columns string
	wanted              func(s state.Selection, first, second string) bool
}

// tables lists the tables of Chromium 156 that hold sites' state.
var tables = []table{
	{"Cookies", "cookies", "host_key, top_frame_site_key", func(s state.Selection, host, site string) bool {
		c := state.Cookie{Domain: host}
		if site != "" {
			c.Partition = &state.PartitionKey{TopLevelSite: site}
		}
		return s.HasCookie(c)
	}},
	{"Login Data", "logins", "origin_url, signon_realm", func(s state.Selection, origin, _ string) bool { return s.HasOrigin(origin) }},
	{"WebStorage/QuotaManager", "buckets", "storage_key, ''", func(s state.Selection, key, _ string) bool { return s.HasKey(key) }},
}

// databases keeps the wanted rows. It removes a database in an unknown format, or with
// more than the limits allow.
func (s *run) databases(ctx context.Context) error {
	for _, t := range tables {
		if !s.exists(t.file) {
			continue
		}
		err := s.rows(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			continue
		}
		s.reportRemoved(t.file, reason(err))
		for _, beside := range []string{"", "-journal", "-wal", "-shm"} {
			if err := s.root.RemoveAll(t.file + beside); err != nil {
				return err
			}
		}
	}
	return nil
}

// reason says why a database is removed, without any of its content.
func reason(err error) string {
	switch {
	case errors.Is(err, errUnknownFormat), errors.Is(err, errTooMany), errors.Is(err, sqlite.ErrNoFile):
		return err.Error()
	case sqlite.TooLarge(err) != nil:
		return sqlite.TooLarge(err).Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	default:
		return "it is damaged"
	}
}

// rows removes the unwanted rows of a table, and all rows of the database's other tables
// except its version: those contain origins too (statistics, notes to passwords, quotas).
// Then it rewrites the file. It trusts no trigger, view or function of the file.
func (s *run) rows(ctx context.Context, t table) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sqliteDeadline)
	defer cancel()
	if _, err := s.root.Lstat(t.file); err != nil { // a link may lead out of the profile
		return sqlite.ErrNoFile
	}
	db, err := sqlite.Open(ctx, filepath.Join(s.dir, filepath.FromSlash(t.file)), true)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	var others int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' OR name = ? AND type <> 'table'", t.name).Scan(&others); err != nil {
		return err
	}
	if others > 0 {
		return errUnknownFormat
	}
	if err := s.deleteUnwanted(ctx, db, t); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM")
	return err
}

// deleteUnwanted removes all rows except the wanted ones of the table from the database.
func (s *run) deleteUnwanted(ctx context.Context, db *sql.DB, t table) error {
	unwanted, err := s.unwanted(ctx, db, t)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // one write to disk, not one for each row
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	for _, id := range unwanted {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.name+" WHERE rowid = ?", id); err != nil {
			return err
		}
	}
	if err := emptyOthers(ctx, tx, t.name); err != nil {
		return err
	}
	return tx.Commit()
}

// emptyOthers removes the contents of the other tables.
func emptyOthers(ctx context.Context, db *sql.Tx, but string) error {
	rows, err := db.QueryContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN (?, 'meta') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`, but)
	if err != nil {
		return err
	}
	defer rows.Close()
	var others []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		others = append(others, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, name := range others {
		if _, err := db.ExecContext(ctx, `DELETE FROM "`+strings.ReplaceAll(name, `"`, `""`)+`"`); err != nil {
			return err
		}
	}
	return nil
}

func (s *run) unwanted(ctx context.Context, db *sql.DB, t table) (ids []int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT rowid, "+t.columns+" FROM "+t.name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var first, second string
		if err := rows.Scan(&id, &first, &second); err != nil {
			return nil, err
		}
		if !t.wanted(s.selection, first, second) {
			if len(ids) == leveldb.MaxEntries {
				return nil, errTooMany
			}
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}
