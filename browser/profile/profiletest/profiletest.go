// Package profiletest creates profiles for tests without Chrome: the databases and files
// in which Chrome keeps cookies, localStorage, sessionStorage and tabs.
package profiletest

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	_ "modernc.org/sqlite" // the driver

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

// guid is the length of a tab's GUID in sessionStorage, in characters.
const guid = 36

// Profile is a profile's folder (…/Default) in a test.
type Profile struct {
	T      testing.TB
	Folder string
}

// Cookies writes a cookie jar. All its cookies were changed at the given time.
func (p Profile) Cookies(changed time.Time, jar ...state.Cookie) {
	p.T.Helper()
	statements := `CREATE TABLE cookies (creation_utc, host_key, top_frame_site_key, has_cross_site_ancestor, name, value, encrypted_value, path,
		expires_utc, is_persistent, is_secure, is_httponly, priority, samesite, source_scheme, source_port, last_update_utc)`
	db := p.database("Cookies", statements)
	for _, c := range jar {
		at := changed.UnixMicro() + 11644473600*1e6 // microseconds since 1601
		if _, err := db.ExecContext(context.Background(), `INSERT INTO cookies VALUES (?, ?, '', 0, ?, ?, x'', ?, ?, 1, 0, 0, 1, 1, 0, 443, ?)`,
			at, c.Domain, c.Name, c.Value, c.Path, at+int64(1e12), at); err != nil {
			p.T.Fatal(err)
		}
	}
	p.must(db.Close())
}

// StrangeCookies writes a cookie jar in a format that no known Chrome has.
func (p Profile) StrangeCookies() {
	p.T.Helper()
	p.must(p.database("Cookies", `CREATE TABLE jar (cookie)`).Close())
}

func (p Profile) database(name, statements string) *sql.DB {
	p.T.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.Folder, name))
	if err == nil {
		_, err = db.ExecContext(context.Background(), statements)
	}
	p.must(err)
	return db
}

// LocalStorage writes areas with the given time.
func (p Profile) LocalStorage(at time.Time, areas ...state.Area) {
	p.T.Helper()
	p.inRoot(func(root *os.Root) error {
		_, _, err := localstorage.Write(context.Background(), root, areas, at)
		return err
	})
}

// SessionStorage writes the areas of tabs: one tab for each area.
func (p Profile) SessionStorage(areas ...state.Area) {
	p.T.Helper()
	entries := map[string][]byte{"version": []byte("1")}
	for i, area := range areas {
		number := strconv.Itoa(i)
		entries["namespace-"+strings.Repeat(number, guid)[:guid]+"-"+area.StorageKey] = []byte(number)
		for _, item := range area.Items {
			var value []byte
			for _, unit := range utf16.Encode([]rune(item.Value)) {
				value = binary.LittleEndian.AppendUint16(value, unit)
			}
			entries["map-"+number+"-"+item.Key] = value
		}
	}
	p.inRoot(func(root *os.Root) error {
		if err := root.RemoveAll(sessionstorage.Folder); err != nil {
			return err
		}
		return leveldb.Write(root, sessionstorage.Folder, entries)
	})
}

// Tabs writes a session file that contains the given addresses.
func (p Profile) Tabs(urls ...string) {
	p.T.Helper()
	folder := filepath.Join(p.Folder, "Sessions")
	p.must(errors.Join(os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "Session_1"), []byte("SNSS\x00"+strings.Join(urls, "\x00")+"\x00"), 0o600)))
}

// Damage breaks a database: its contents do not match its checksums, or are not a
// database.
func (p Profile) Damage(name string) {
	p.T.Helper()
	if name == "Cookies" {
		p.must(os.WriteFile(filepath.Join(p.Folder, name), []byte("no database"), 0o600))
		return
	}
	p.change(name, func(log []byte) []byte {
		log[len(log)/2] ^= 0xff
		return log
	})
}

// Truncate removes the end of a LevelDB's log, as if Chrome had ended during a write.
func (p Profile) Truncate(name string) {
	p.T.Helper()
	p.change(name, func(log []byte) []byte { return log[:len(log)-3] })
}

func (p Profile) change(name string, to func([]byte) []byte) {
	p.T.Helper()
	file := filepath.Join(p.Folder, name, "000002.log")
	log, err := os.ReadFile(file)
	p.must(err)
	p.must(os.WriteFile(file, to(log), 0o600))
}

// SetModTime sets the time of the last write of a file, or of everything in a folder.
func (p Profile) SetModTime(name string, at time.Time) {
	p.T.Helper()
	p.must(filepath.WalkDir(filepath.Join(p.Folder, name), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, at, at))
	}))
}

func (p Profile) inRoot(do func(*os.Root) error) {
	p.T.Helper()
	root, err := os.OpenRoot(p.Folder)
	p.must(err)
	p.must(errors.Join(do(root), root.Close()))
}

func (p Profile) must(err error) {
	p.T.Helper()
	if err != nil {
		p.T.Fatal(err)
	}
}
