package profile

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
)

// sealedQueries count, by origin, the rows whose secret only the keyring of
// another machine opens: Chrome on Linux marks them "v11". Those that it
// wrote without a keyring ("v10") have a fixed key and open anywhere
// (components/os_crypt/sync/os_crypt_linux.cc).
var sealedQueries = []struct{ file, table, query string }{
	{"Cookies", "cookies", "SELECT ltrim(host_key, '.'), count(*) FROM cookies WHERE substr(encrypted_value, 1, 3) = x'763131' GROUP BY 1"},
	{"Login Data", "logins", "SELECT signon_realm, count(*) FROM logins WHERE substr(password_value, 1, 3) = x'763131' GROUP BY 1"},
}

// Sealed is how many secrets of one origin only a keyring opens.
type Sealed struct {
	File   string // "Cookies" or "Login Data"
	Origin string
	Count  int
}

// sealedDeadline bounds the reading, for the files are somebody's upload.
const sealedDeadline = 10 * time.Second

// SealedByKeyring lists what of a profile no Chrome here can read. A database
// that cannot be read tells nothing: Chrome makes it anew. One of more origins
// than maxOrigins is no person's, and tells nothing either.
func SealedByKeyring(ctx context.Context, userDataDir string) []Sealed {
	ctx, cancel := context.WithTimeout(ctx, sealedDeadline)
	defer cancel()
	var all []Sealed
	for _, q := range sealedQueries {
		file := filepath.Join(userDataDir, Default, q.file)
		db, err := sqlite.Open(ctx, file, false)
		if err != nil {
			continue
		}
		all = append(all, sealedIn(ctx, db, q.file, q.table, q.query)...)
		_ = db.Close() // only read from
	}
	return all
}

// maxOrigins bounds the origins that are told of one database, and maxOrigin the
// bytes of each.
const (
	maxOrigins = 10_000
	maxOrigin  = 4096
)

func sealedIn(ctx context.Context, db *sql.DB, file, table, query string) (found []Sealed) {
	var kind string
	// A view in the table's place could be anything.
	if err := db.QueryRowContext(ctx, "SELECT type FROM sqlite_master WHERE name = ?", table).Scan(&kind); err != nil || kind != "table" {
		return nil
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		s := Sealed{File: file}
		if rows.Scan(&s.Origin, &s.Count) != nil || len(found) == maxOrigins || len(s.Origin) > maxOrigin {
			return nil
		}
		found = append(found, s)
	}
	if rows.Err() != nil {
		return nil
	}
	return found
}
