package sqldb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// fillAll writes at least one row into every table, among them what a database may find
// hard to store.
func fillAll(t *testing.T, db *sqldb.DB) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	user := "Ådå \x00 \xff"
	session := profiles.Session{ID: "s-1", UserID: user, Goal: "a\x00b\uffffc\xfe", Status: profiles.StatusReady, CreatedAt: noon, Discard: true, FromDefault: true,
		Labels: map[string]string{"k": "\x00"}, Notices: []profiles.Notice{{ID: "d-1", URL: "u", Event: "e", Body: []byte{0, 255}, At: noon, Operator: true}}}
	must(db.Sessions.CreateSession(ctx, session))
	must(db.Sessions.CreateSession(ctx, profiles.Session{ID: "s-2", UserID: "bob", CreatedAt: noon}))
	must(db.Keys.CreateKey(ctx, profiles.Key{ID: "k", Name: "n", UserID: user, AllUsers: true, Rights: []string{"use"}, Hash: [32]byte{1}, CreatedAt: noon}))
	_, err := db.Snapshots.Commit(ctx, profiles.Commit{Move: &profiles.Move{}, Snapshot: profiles.Snapshot{ID: "snap", SessionID: "s-1", UserID: user, CreatedAt: noon,
		Rescue: true, Report: []byte("{}"), Extensions: []profiles.PinnedExtension{{ID: "x", SHA256: "00"}}}})
	must(err)
	_, _, err = db.Answers.ClaimAnswer(ctx, profiles.Answer{Scope: "s", Key: "k", CreatedAt: noon})
	must(err)
	packed := bytes.Repeat([]byte{0, 255}, 5<<20) // more than two batches
	_, _, _, err = db.Extensions.PutExtension(ctx, profiles.Extension{ID: "x", UserID: user, SHA256: "00", CreatedAt: noon},
		io.NewSectionReader(bytes.NewReader(packed), 0, int64(len(packed))))
	must(err)
	_, err = db.Runs.BeginRun(ctx, profiles.Run{ID: "r", SessionID: "s-1", StartedAt: noon})
	must(err)
	var events []profiles.Event
	for range 450 { // more than two batches
		events = append(events, profiles.Event{Type: "t", At: noon, Data: []byte(`{"a":1}`), Sealed: []byte{0, 1}})
	}
	_, err = db.Runs.AddEvents(ctx, "r", events, profiles.EventBounds{})
	must(err)
	_, err = db.Messages.AddMessage(ctx, profiles.Message{SessionID: "s-1", Type: "USER", Content: "hi", At: noon}, profiles.ExecutionRunning)
	must(err)
	putNote(t, db, user)
	entry := profiles.AuditEntry{At: noon, By: "key", KeyUser: user, Detail: "d\x00é", Outcome: profiles.AuditOK, Count: 1}
	entry.Follow(profiles.AuditEntry{})
	must(db.Audit.AddAudit(ctx, []profiles.AuditEntry{entry}, 0))
	_, err = db.Receivers.SetWebhookSecret(ctx, profiles.WebhookSecret{UserID: user, URL: "https://a.example/", Sealed: []byte{0, 255}, CreatedAt: noon}, time.Time{})
	must(err)
	_, err = db.Claims.ReserveArchive(ctx, "a", "snap")
	must(err)
	must(db.Claims.HoldSnapshot(ctx, "h", "snap", "restored"))
	_, err = db.Claims.ClaimSession(ctx, "s-1", "k")
	must(err)
	_, err = db.Claims.EnterCheck(ctx, profiles.CheckClaim{UserID: user})
	must(err)
	_, err = db.Claims.AddTicket(ctx, [32]byte{0, 255}, "k", noon.Add(time.Minute), noon, 1)
	must(err)
	// Only nodes write these, to PostgreSQL.
	must(sqldb.Exec(ctx, db, "INSERT INTO nodes (node_id, number, url, facts, status, draining, started_at, leased_until) VALUES ('n', 0, 'u', ?, ?, ?, 1, 0)", []byte("{}"), []byte("{}"), false))
	must(sqldb.Exec(ctx, db, "INSERT INTO waiting_creates (waiter_id, node_id, number, user_id, key_id, engine, chrome, restores, most_of_user, most_of_key, since, paused_until, turn) "+
		"VALUES ('w', 'n', 1, ?, 'k', 'shell', '', ?, -1, 3, 1, 0, 2)", []byte(user), true))
	must(sqldb.Exec(ctx, db, "INSERT INTO left_sessions (node_id, run_dir, session_id, ended_at, restart) VALUES ('n', 'd', 's-1', 1, ?)", false))
}

func putNote(t *testing.T, db *sqldb.DB, user string) {
	t.Helper()
	_, err := db.Notes.PutNote(t.Context(), profiles.Note{UserID: user, SessionID: "s-1", UpdatedAt: noon},
		func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("{}"), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// A catalogue moves from SQLite to PostgreSQL and back with every row, and can be used at
// each place.
func TestTransfer(t *testing.T) {
	ctx := t.Context()
	first := open(t, filepath.Join(t.TempDir(), "first.db"))
	fillAll(t, first)
	remote := open(t, server.Database(t))
	there, err := remote.Transfer(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range there {
		if table.Rows == 0 {
			t.Errorf("table %s was copied without rows: the test is missing some", table.Table)
		}
	}
	second := open(t, filepath.Join(t.TempDir(), "second.db"))
	back, err := second.Transfer(ctx, remote)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(there, back); diff != "" {
		t.Error(diff)
	}
	for _, db := range []*sqldb.DB{remote, second} {
		was, err := first.Sessions.Session(ctx, "s-1")
		if err != nil {
			t.Fatal(err)
		}
		is, err := db.Sessions.Session(ctx, "s-1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Error(diff)
		}
		putNote(t, db, is.UserID) // its sequence is a new one
	}
	if _, err := remote.Transfer(ctx, first); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into one that has rows: %v", err)
	}
}

// A row that is changed on the way is noticed, and then nothing is written.
func TestTransferVerifies(t *testing.T) {
	ctx := t.Context()
	first := open(t, filepath.Join(t.TempDir(), "first.db"))
	fillAll(t, first)
	path := filepath.Join(t.TempDir(), "second.db")
	second := open(t, path)
	raw(t, path, "CREATE TRIGGER spoil AFTER INSERT ON messages BEGIN UPDATE messages SET content = 'ho' WHERE message_id = NEW.message_id; END")
	if _, err := second.Transfer(ctx, first); !fault.Is(err, fault.StoreFailed) || !strings.Contains(fault.MessageOf(err), "messages") {
		t.Errorf("got %v", err)
	}
	if all, _, err := second.Sessions.Sessions(ctx, profiles.SessionFilter{}); err != nil || len(all) > 0 {
		t.Errorf("%d sessions were written: %v", len(all), err)
	}
}

// Both schemas have the same tables with the same columns, and a transfer knows all of them.
// A migration that is added to one folder only fails here.
func TestSchemas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stasis.db")
	open(t, path)
	url := server.Database(t)
	open(t, url)
	list := func(driver, source, query string) (columns []string) {
		t.Helper()
		db := rawOpen(t, driver, source)
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var table, column string
			var null bool
			if err := rows.Scan(&table, &column, &null); err != nil {
				t.Fatal(err)
			}
			if null {
				column += " (nullable)"
			}
			columns = append(columns, table+"."+column)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(columns)
		return columns
	}
	lite := list("sqlite", path, `SELECT m.name, c.name, NOT c."notnull" FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'sqlite%'`)
	pg := list("pgx", url, `SELECT table_name, column_name, is_nullable = 'YES' FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'goose%'`)
	if diff := cmp.Diff(lite, pg); diff != "" {
		t.Errorf("-SQLite +PostgreSQL:\n%s", diff)
	}
	var names []string
	for _, c := range lite {
		name, _, _ := strings.Cut(c, ".")
		names = append(names, name)
	}
	known := slices.Sorted(slices.Values(sqldb.Tables()))
	if diff := cmp.Diff(slices.Compact(names), known); diff != "" {
		t.Errorf("-tables +those that a transfer copies:\n%s", diff)
	}
	versions := func(driver, source string) (newest int64) {
		if err := rawOpen(t, driver, source).QueryRowContext(t.Context(), "SELECT MAX(version_id) FROM goose_db_version").Scan(&newest); err != nil {
			t.Fatal(err)
		}
		return newest
	}
	if lite, pg := versions("sqlite", path), versions("pgx", url); lite != pg {
		t.Errorf("the newest migration is %d for SQLite and %d for PostgreSQL", lite, pg)
	}
}

// A backup of a PostgreSQL catalogue is an SQLite file.
func TestCopyRemote(t *testing.T) {
	remote := open(t, server.Database(t))
	fillAll(t, remote)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := remote.CopyTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	is, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = is.Close() }()
	if d, err := is.Defaults.Default(t.Context(), "Ådå \x00 \xff"); err != nil || d.SnapshotID != "snap" {
		t.Errorf("the copy: %+v, %v", d, err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the copy has a file %s: %v", suffix, err)
		}
	}
}
