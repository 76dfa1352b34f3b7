package importer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/confine"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// childUID is the user of the children of these tests.
const childUID = 310960

// The test binary is also the child, as the daemon's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Arg {
		os.Exit(confine.Main(os.Args[2:], map[string]confine.Work{importer.ChildWork: work}))
	}
	os.Exit(m.Run())
}

// takenOver begins an upload that takes its child over. The child puts the files of a profile
// into its folder, and one more if a name follows on the line, and answers with the rest.
const takenOver = "taken over:"

// work is the work of the children of these tests.
func work(ctx context.Context, request json.RawMessage, upload *os.File, folder string) (any, error) {
	all, err := io.ReadAll(upload)
	if err != nil {
		return nil, err
	}
	order, is := bytes.CutPrefix(all, []byte(takenOver))
	if !is {
		if _, err := upload.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		return importer.Work(profile.Disk{})(ctx, request, upload, folder)
	}
	more, answer, _ := bytes.Cut(order, []byte("\n"))
	for _, name := range []string{"Default/Preferences", "extensions/" + extension + "/manifest.json", string(more)} {
		if name == "" {
			continue
		}
		name = filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("{}"), 0o600)); err != nil {
			return nil, err
		}
	}
	if code, failed := bytes.CutPrefix(answer, []byte("fail ")); failed {
		return nil, fault.New(fault.Code(code), "test", "x")
	}
	return json.RawMessage(answer), nil
}

// extension is an ID of an extension.
const extension = "abcdefghijklmnopabcdefghijklmnop"

// An answer that only a child can give which its upload has taken over is refused. Nothing
// takes much memory, and nothing remains that later code relies on.
func TestChildTakenOver(t *testing.T) {
	document := func(fields string) string {
		return `{"Document":{"schema_version":"1","datadir":"clean"` + fields + `},"Import":{}}`
	}
	many := strings.Repeat("{},", 1<<19) + "{}"
	for name, test := range map[string]struct{ file, answer, says string }{
		"no document":               {"", `[]`, "is not JSON"},
		"many cookies":              {"", document(`,"cookies":[` + many + `]`), "500000 objects"},
		"many lines":                {"", `{"Document":{},"Import":{"Lines":[` + many + `]}}`, "500000 objects"},
		"many strings":              {"", document(`,"from_disk":[` + strings.Repeat(`"",`, 8<<20) + `""]`), "5000000 elements"},
		"another version of it":     {"", `{"Document":{"schema_version":"9"},"Import":{}}`, "schema_version"},
		"settings of another":       {"carried/x", document(""), "other files"},
		"a path as an extension":    {"", document(`,"extensions":[{"id":"../x"}]`), "extensions"},
		"an extension without hash": {"", document(`,"extensions":[{"id":"` + extension + `","sha256":"x"}]`), "extensions"},
		"a finding of no survey":    {"", document(`,"from_disk":["tabs"]`), "from_disk"},
		"an unknown key":            {"", document(`,"unwritten":["x"]`), "unwritten"},
		"an unknown tab":            {"", document(`,"unstored":[{"storage_key":"x"}]`), "unstored"},
		"a negative count":          {"", document(`,"missed":[{"in_profile":-1}]`), "missed"},
		"a negative holding":        {"", document(`,"inventory":[{"items":-1}]`), "inventory"},
		"a negative line":           {"", `{"Document":{"schema_version":"1","datadir":"clean"},"Import":{"Lines":[{"saved":-1}]}}`, "negative"},
	} {
		if _, _, err := read(t, library.FormatDatadir, []byte(takenOver+test.file+"\n"+test.answer)); (!fault.Is(err, fault.InvalidImport) && !fault.Is(err, fault.Unsupported)) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := read(t, library.FormatDatadir, []byte(takenOver+"\nfail unauthorized")); !fault.Is(err, fault.Internal) {
		t.Errorf("an error of another part: %v", err)
	}
	// A survey of files that no Chrome closed finds nothing of these.
	found, _, err := read(t, library.FormatDatadir, []byte(takenOver+"\n"+`{"Document":{"schema_version":"1","datadir":"live","from_disk":["cookies"],"unwritten":["x"],
		"unstored":[{}],"missed":[{"in_profile":1}]},"Import":{"Warnings":["`+strings.Repeat("w", 9000)+`"]}}`))
	doc := found.Document
	if err != nil || doc.FromDisk != nil || doc.Unwritten != nil || doc.Unstored != nil || doc.Missed[0].InProfile != nil || len(found.Import.Warnings[0]) > 2000 {
		t.Errorf("%+v %v", found, err)
	}
}

// read has a child read an upload. It returns the folder with the files too.
func read(t *testing.T, format library.Format, upload []byte) (importer.Found, string, error) {
	t.Helper()
	c, err := confine.New(t.Context(), childUID, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("", "importer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	dir := &browser.Dir{Path: top, UID: childUID}
	if err := errors.Join(os.Chmod(top, 0o711), os.Mkdir(dir.Profile(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir.Profile(), childUID, childUID); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(filepath.Join(top, "upload"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the child has its own descriptor
	if _, err := file.Write(upload); err != nil {
		t.Fatal(err)
	}
	limits := snapshot.Limits{Entries: 1000, Bytes: 1 << 30, Names: 1 << 20}
	found, err := importer.Child{Confiner: c}.Read(t.Context(), importer.ReadRequest{Format: format, Limits: limits, Unpack: limits, Now: time.Unix(1, 0)}, file, dir)
	return found, dir.Profile(), err
}

// packed makes a tar of names and contents.
func packed(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[i+1]))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// jar returns a cookie database with n cookies.
func jar(t *testing.T, n int) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE cookies (host_key, top_frame_site_key, has_cross_site_ancestor, name, value, encrypted_value, path,
		expires_utc, is_persistent, is_secure, is_httponly, priority, samesite, source_scheme, source_port);
		WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO cookies SELECT 'a.example', '', 0, 'n' || n, 'v', '', '/', 0, 0, 0, 0, 0, 0, 0, 0 FROM i`, n); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A child reads a profile: its cookies are in the document, its files in the folder, without
// what Stasis writes for its own use.
func TestChildReadsProfile(t *testing.T) {
	prefs := `{"profile":{"exit_type":"Normal"},"policy":{"url_blocklist":["file://*"]}}`
	found, folder, err := read(t, library.FormatDatadir, packed(t, "Default/Preferences", prefs, "Default/Cookies", string(jar(t, 500))))
	if err != nil {
		t.Fatal(err)
	}
	if found.Document.Datadir != state.DatadirClean || len(found.Document.Cookies) != 500 {
		t.Errorf("%s, %d cookies", found.Document.Datadir, len(found.Document.Cookies))
	}
	raw, err := os.ReadFile(filepath.Join(folder, "Default", "Preferences"))
	var left map[string]any
	if err != nil || json.Unmarshal(raw, &left) != nil || left["policy"] != nil || left["profile"] == nil {
		t.Errorf("preferences: %s %v", raw, err)
	}
}

// A child reads databases that were made to break their readers, and answers: the profile is
// imported with the damage in its report, or refused.
func TestChildReadsDamage(t *testing.T) {
	whole := jar(t, 500)
	for at := 0; at < len(whole); at += len(whole)/12 + 1 {
		damaged := bytes.Clone(whole)
		for i := range min(64, len(damaged)-at) {
			damaged[at+i] ^= 0xff
		}
		_, _, err := read(t, library.FormatDatadir, packed(t, "Default/Preferences", "{}", "Default/Cookies", string(damaged),
			"Default/Local Storage/leveldb/CURRENT", "MANIFEST-000001\n", "Default/Local Storage/leveldb/MANIFEST-000001", string(damaged[:at])))
		if err != nil {
			t.Errorf("damage at %d: %v", at, err)
		}
	}
}

// What has not its format is refused with the reason, as without a child.
func TestChildRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		format library.Format
		upload []byte
		says   string
	}{
		"no archive":  {library.FormatDatadir, []byte("x"), "must be a zip"},
		"a path out":  {library.FormatDatadir, packed(t, "Default/Preferences", "{}", "Default/../../x", "y"), "name"},
		"no JSON":     {library.FormatPlaywright, []byte("{"), ""},
		"no document": {library.FormatStasis, packed(t, "Default/Preferences", "{}"), "has no state.json"},
	} {
		_, folder, err := read(t, test.format, test.upload)
		if !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(folder)
		if err != nil || test.format == library.FormatDatadir && len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}
