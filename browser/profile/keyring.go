package profile

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
)

// sealedQueries count, by origin, the rows whose secret only another machine's keyring
// can decrypt: Chrome on Linux marks them "v11". Rows written without a keyring ("v10")
// use a fixed key and can be decrypted anywhere
// (components/os_crypt/sync/os_crypt_linux.cc).
var sealedQueries = []struct{ file, table, query string }{
	{"Cookies", "cookies", "SELECT ltrim(host_key, '.'), count(*) FROM cookies WHERE substr(encrypted_value, 1, 3) = x'763131' GROUP BY 1"},
	{"Login Data", "logins", "SELECT signon_realm, count(*) FROM logins WHERE substr(password_value, 1, 3) = x'763131' GROUP BY 1"},
}

// Sealed is the number of an origin's secrets that only a keyring can decrypt.
type Sealed struct {
	File   string // "Cookies" or "Login Data"
	Origin string
	Count  int
}

// sealedDeadline bounds the reading, because the files come from an upload.
const sealedDeadline = 10 * time.Second

// SealedByKeyring lists the secrets of a profile that no Chrome here can decrypt. A
// database that cannot be read counts as empty: Chrome creates it again. One with more
// than maxOrigins origins is not a person's profile, and counts as empty too.
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

// maxOrigins bounds the origins returned for one database, and maxOrigin the bytes of
// each.
const (
	maxOrigins = 10_000
	maxOrigin  = 4096
)

func sealedIn(ctx context.Context, db *sql.DB, file, table, query string) (found []Sealed) {
	var kind string
	// A view of that name could contain anything.
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
