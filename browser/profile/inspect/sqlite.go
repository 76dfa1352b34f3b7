package inspect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
	"github.com/stasisd/stasis/state"
)

// sqliteDeadline bounds the reading of one database.
const sqliteDeadline = 5 * time.Second

// errTooLarge is the error for a database with more rows or bytes than are kept in
// memory.
var errTooLarge = fmt.Errorf("it has more than %d rows or %d MiB", leveldb.MaxEntries, leveldb.MaxBytes>>20)

// budget bounds the rows of one database that are kept, as [leveldb.Read] does for
// entries.
type budget struct{ rows, bytes int }

// take counts a row of n bytes. It returns errTooLarge if there are too many.
func (b *budget) take(n int) error {
	b.rows, b.bytes = b.rows+1, b.bytes+n
	if b.rows > leveldb.MaxEntries || b.bytes > leveldb.MaxBytes {
		return errTooLarge
	}
	return nil
}

// query counts the rows of a table by origin.
type query struct {
	file, component, table string
	origin                 string // an SQL expression
	where                  string
}

// queries lists the tables of Chromium 156 that hold a user's state.
var queries = []query{
	{"History", state.ComponentVisited, "urls", "''", ""},
	{"Login Data", state.ComponentPasswords, "logins", "signon_realm", "WHERE blacklisted_by_user = 0"},
	{"Web Data", state.ComponentAutofill, "autofill", "''", ""},
	{"Web Data", state.ComponentAutofill, "addresses", "''", ""},
	{"Web Data", state.ComponentAutofill, "credit_cards", "''", ""},
	{"WebStorage/QuotaManager", state.ComponentStorageBuckets, "buckets", "storage_key", "WHERE name <> '_default'"},
}

// databases counts what is in SQLite databases.
func (s *survey) databases() {
	type tally struct {
		byOrigin          map[string]int
		damage, uncounted string
	}
	counted := map[string]*tally{}
	var order []string
	for _, q := range queries {
		if !s.exists(q.file) {
			continue
		}
		t := counted[q.component]
		if t == nil {
			t = &tally{byOrigin: map[string]int{}}
			counted[q.component], order = t, append(order, q.component)
		}
		damage, uncounted := s.sqlite(q.file, q.table, func(ctx context.Context, db *sql.DB) error {
			return each(ctx, db, q, func(origin string, n int) { t.byOrigin[origin] += n })
		})
		if t.damage == "" {
			t.damage = damage
		}
		if t.uncounted == "" {
			t.uncounted = uncounted
		}
	}
	for _, component := range order {
		t := counted[component]
		s.counts(component, t.byOrigin, t.damage, t.uncounted)
	}
}

// sqlite opens a database read-only, reads a table of it, and checks its pages. It does
// not read a view of the table's name, which could contain anything.
func (s *survey) sqlite(name, table string, read func(context.Context, *sql.DB) error) (damage, uncounted string) {
	ctx, cancel := context.WithTimeout(s.ctx, sqliteDeadline)
	defer cancel()
	info, err := s.root.Lstat(name)
	if err != nil { // a link may lead out of the profile
		return sqlite.ErrNoFile.Error(), ""
	}
	for _, beside := range []string{"-journal", "-wal"} {
		// Chrome undoes or completes an unfinished write when it opens the database.
		if b, err := s.read(name + beside); err == nil && len(b) > 0 && b[0] != 0 {
			return "", "Chrome was writing it"
		}
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return state.NotWritten, ""
	}
	const broken, unknownFormat = "the database is damaged", "its format is unknown"
	db, err := sqlite.Open(ctx, filepath.Join(s.dir, filepath.FromSlash(name)), false)
	switch {
	case ctx.Err() != nil:
		return "", "it took too long to read"
	case errors.Is(err, sqlite.ErrTooLarge):
		return "", err.Error()
	case errors.Is(err, sqlite.ErrNoFile):
		return err.Error(), ""
	case err != nil:
		return broken, ""
	}
	defer func() { _ = db.Close() }() // only read from
	var kind string
	err = db.QueryRowContext(ctx, "SELECT type FROM sqlite_master WHERE name = ?", table).Scan(&kind)
	if errors.Is(err, sql.ErrNoRows) || err == nil && kind != "table" {
		return "", unknownFormat
	}
	if err == nil {
		// Generated columns could create text of any length without stored data.
		var made int
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden > 1", table).Scan(&made)
		if err == nil && made > 0 {
			return "", unknownFormat
		}
	}
	if err == nil {
		err = read(ctx, db)
	}
	if errors.Is(err, errTooLarge) {
		return "", err.Error()
	}
	if large := sqlite.TooLarge(err); large != nil {
		return "", large.Error()
	}
	odd := err
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	switch {
	case ctx.Err() != nil:
		return "", "it took too long to read"
	case sqlite.TooLarge(err) != nil:
		return "", sqlite.TooLarge(err).Error()
	case err != nil || verdict != "ok":
		return broken, ""
	case odd != nil: // intact, and of another version of Chrome
		return "", unknownFormat
	}
	return "", ""
}

// each runs a query.
func each(ctx context.Context, db *sql.DB, q query, do func(origin string, n int)) error {
	rows, err := db.QueryContext(ctx, "SELECT "+q.origin+", count(*) FROM "+q.table+" "+q.where+" GROUP BY 1")
	if err != nil {
		return err
	}
	defer rows.Close()
	var kept budget
	for rows.Next() {
		var origin string
		var n int
		if err := rows.Scan(&origin, &n); err != nil {
			return err
		}
		if err := kept.take(len(origin)); err != nil {
			return err
		}
		do(origin, n)
	}
	return rows.Err()
}

// buckets returns the storage keys of the folders of WebStorage, by bucket ID.
func (s *survey) buckets() map[string]string {
	owner := map[string]string{}
	if !s.exists("WebStorage/QuotaManager") {
		return owner
	}
	// Damage of this database is reported with the buckets themselves.
	s.sqlite("WebStorage/QuotaManager", "buckets", func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT id, storage_key FROM buckets")
		if err != nil {
			return err
		}
		defer rows.Close()
		var kept budget
		for rows.Next() {
			var id int64
			var key string
			if err := rows.Scan(&id, &key); err != nil {
				return err
			}
			if err := kept.take(len(key)); err != nil {
				return err
			}
			if dir := strconv.FormatInt(id, 10); s.exists("WebStorage/" + dir) {
				owner[dir] = key
			}
		}
		return rows.Err()
	})
	return owner
}
