package session

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // creates the databases of a profile

	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// databaseOf runs statements in a new SQLite file and returns its bytes.
func databaseOf(t *testing.T, statements string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const jarOf = `CREATE TABLE cookies (host_key, top_frame_site_key DEFAULT '', has_cross_site_ancestor DEFAULT 0, name DEFAULT 'n', value DEFAULT 'v', encrypted_value DEFAULT x'',
	path DEFAULT '/', expires_utc DEFAULT 0, is_persistent DEFAULT 0, is_secure DEFAULT 0, is_httponly DEFAULT 0, priority DEFAULT 1, samesite DEFAULT -1, source_scheme DEFAULT 2, source_port DEFAULT 443);`

// A profile that was not read over CDP is counted once. What the document took from its
// files has no second line. Cookies that only a keyring decrypts are part of their line.
// Tabs that only Chrome can read are not counted as none.
func TestImportDesktopReport(t *testing.T) {
	const prefs = `{"profile":{"exit_type":"Normal"}}`
	for name, test := range map[string]struct {
		rows    string
		dropped int
	}{
		"readable":    {"INSERT INTO cookies (host_key) VALUES ('.a.example'), ('a.example'), ('b.example')", 0},
		"a keyring's": {"INSERT INTO cookies (host_key, encrypted_value) VALUES ('.a.example', x'763131'), ('a.example', x''), ('b.example', x'763131')", 2},
	} {
		r := newRig(t, nil)
		a := r.importFile(alice, importer.Request{Format: library.FormatDatadir}, tarOf(t, "Default/Preferences", prefs, "Default/Sessions/Session_1", "SNSS", "Default/Cookies", databaseOf(t, jarOf+test.rows)))
		seen, saved, dropped := map[string]bool{}, 0, 0
		for _, line := range a.Snapshot.Components {
			at := line.Name + " " + line.Origin
			if seen[at] {
				t.Errorf("%s: counted twice: %+v", name, line)
			}
			seen[at] = true
			switch line.Name {
			case state.ComponentCookies:
				saved, dropped = saved+line.Saved, dropped+line.Dropped
			case state.ComponentTabs:
				if line.Reason.Code != report.NotCounted {
					t.Errorf("%s: %+v", name, line)
				}
			}
		}
		if saved != 3 || dropped != test.dropped {
			t.Errorf("%s: %d cookies saved and %d dropped in %+v", name, saved, dropped, a.Snapshot.Components)
		}
	}
}

// A file of very many sites gets a short report with exact sums, at the import and at the
// restore. A warning says first that most of it was lost.
func TestReportsOfManySites(t *testing.T) {
	r := newRig(t, nil)
	var file strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&file, "s%d.example\tFALSE\t/\tFALSE\t0\tsid\tv\n", i)
		fmt.Fprintf(&file, "s%d.example\tFALSE\t/\tFALSE\t0\t__Host-sid\tv\n", i)
		fmt.Fprintf(&file, "s%d.example\tFALSE\t/\tFALSE\t0\t__Secure-sid\tv\n", i)
	}
	a := r.importFile(alice, importer.Request{Format: library.FormatNetscape}, file.String())
	saved, dropped := 0, 0
	for _, line := range a.Snapshot.Components {
		saved, dropped = saved+line.Saved, dropped+line.Dropped
	}
	if saved != 9000 || dropped != 6000 {
		t.Errorf("%d saved, %d dropped", saved, dropped)
	}
	if !strings.Contains(strings.Join(a.Snapshot.Warnings, "\n"), "cookies: 6000 of 9000 were lost") {
		t.Errorf("%q", a.Snapshot.Warnings)
	}
	if raw, err := json.Marshal(a); err != nil || len(raw) > 64<<10 {
		t.Errorf("an answer of %d bytes, %v", len(raw), err)
	}
	out, err := r.library.State(t.Context(), keeper, a.Snapshot.ID, library.Export{Format: library.FormatNetscape})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range out.NotExported {
		dropped -= n.Count
	}
	if dropped != 0 {
		t.Errorf("an export reports %d too few lost cookies: %+v", dropped, out.NotExported)
	}
}
