package session

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Storage returns one item of localStorage for each origin, and no cookie.
func (c *fakeChrome) Storage(_ context.Context, origins []string) (browser.Storage, error) {
	found := browser.Storage{Cookies: []state.Cookie{}}
	for _, origin := range origins {
		found.Local = append(found.Local, state.Area{StorageKey: origin + "/", Items: []state.Item{{Key: "read", Value: "v"}}})
		found.IndexedDB = append(found.IndexedDB, state.Databases{Origin: origin, Databases: []state.Database{{Name: "d", Version: 1, Stores: []state.Store{}}}})
	}
	return found, c.b.step("storage", c)
}

// keeper may also read secrets.
var keeper = access.Caller{KeyID: "key-k", UserID: "alice", Rights: []access.Right{access.RightUse, access.RightSecrets}}

const storageStateFile = `{"cookies":[{"name":"sid","value":"s3cret","domain":"a.example","path":"/","expires":-1,"httpOnly":true,"secure":true,"sameSite":"Lax"}],
	"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":"v"}],"opfs":[{"path":"f","type":"directory"}]}]}`

// tarOf makes a tar of names and contents, in this order.
func tarOf(t *testing.T, files ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[i+1]))}
		if link, ok := strings.CutPrefix(files[i+1], "-> "); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, link, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, files[i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (r *rig) importFile(c access.Caller, x importer.Request, body string) importer.Answer {
	r.t.Helper()
	a, err := r.Import(r.t.Context(), c, x, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// The report of an import warns of parts that the file lacks, and of misspelt ones.
func TestImportWarnings(t *testing.T) {
	r := newRig(t, nil)
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"everything":     {storageStateFile, nil},
		"no cookies":     {`{"cokies":[],"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":"v"}]}]}`, []string{`unknown field: the format has no field "$.cokies": did you mean cookies?`, "the file has no cookies"}},
		"no storage":     {`{"cookies":[{"name":"n","value":"v","domain":"a.example","path":"/"}]}`, []string{"the file has no localStorage and no IndexedDB"}},
		"a cookie's own": {`{"cookies":[{"name":"n","value":"v","domain":"a.example","path":"/","samesite":"Lax"}],"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":"v"}]}]}`, []string{`unknown field: the format has no field "$.cookies[].samesite": did you mean sameSite?`}},
	} {
		a := r.importFile(alice, importer.Request{Format: library.FormatPlaywright}, test.body)
		if diff := cmp.Diff(test.want, a.Snapshot.Warnings, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An import is the snapshot of a separate, ended session. It can become the default, and it
// restores without a profile. Its report lists what was left out.
func TestImportState(t *testing.T) {
	r := newRig(t, nil)
	a := r.importFile(alice, importer.Request{Format: library.FormatPlaywright, Label: "from a test", SaveAsDefault: true}, storageStateFile)
	if a.Default == nil || !a.Default.Moved || a.Default.Version != 1 || a.Snapshot.Datadir != "none" || a.Snapshot.Label != "from a test" {
		t.Errorf("%+v %+v", a.Snapshot, a.Default)
	}
	want := []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 1},
		{Name: "local_storage", Origin: "https://a.example/", Saved: 1},
		{Name: "tabs"},
		{Name: "opfs", Origin: "https://a.example", Saved: 1, Dropped: 1, Reason: report.NoPlace.Reason()},
	}
	if diff := cmp.Diff(want, a.Snapshot.Components, cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	info, err := r.Get(t.Context(), alice, a.Snapshot.SessionID)
	if err != nil || info.Status != profiles.StatusCompleted || info.Reason.Code != profiles.ReasonImported || info.UserID != "alice" {
		t.Errorf("session of the import: %+v, %v", info, err)
	}
	r.wantSnapshots(a.Snapshot.ID)
	s := r.create(alice, func(c *request.Create) { c.FromDefaultOf = "alice" })
	doc := r.browsers.last().restored
	if s.Restored.Datadir != state.DatadirNone || len(doc.Cookies) != 1 || doc.Cookies[0].Value != "s3cret" || !doc.Complete {
		t.Errorf("restored: %+v of %+v", s.Restored, doc)
	}
	if r.dirs() != 1 {
		t.Errorf("%d run directories", r.dirs())
	}
	again := r.importFile(alice, importer.Request{Format: library.FormatNetscape, SaveAsDefault: true, Conflict: save.Overwrite}, "a.example\tFALSE\t/\tFALSE\t0\tn\tv\n")
	if again.Default == nil || !again.Default.Moved || again.Default.Version != 2 {
		t.Errorf("second import: %+v", again.Default)
	}
}

// A desktop profile is found below any folders. Locks, caches and other folders are left
// out, and the report names them.
func TestImportDesktop(t *testing.T) {
	const prefs = `{"profile":{"exit_type":"Normal"},"extensions":{"last_chrome_version":"139.0.1.2"}}`
	for name, test := range map[string]struct {
		files   []string
		x       importer.Request
		datadir string
		chrome  string
		lines   int
	}{
		"whole folder": {[]string{"chromium/Last Version", "138.0.7204.1\n", "chromium/SingletonLock", "-> host-1", "chromium/Local State", "{}",
			"chromium/NativeMessagingHosts/x.json", "{}", "chromium/Default/Preferences", prefs, "chromium/Default/Cache/f", "x",
			"chromium/Default/Bookmarks", "{}", "chromium/Profile 1/Preferences", prefs}, importer.Request{}, "clean", "138.0.7204.1", 4},
		"no top folder":   {[]string{"./Default/Preferences", prefs, "./Default/Bookmarks", "{}"}, importer.Request{}, "clean", "139.0.1.2", 0},
		"profile alone":   {[]string{"Preferences", prefs, "Bookmarks", "{}"}, importer.Request{}, "clean", "139.0.1.2", 0},
		"another profile": {[]string{"c/Default/Preferences", "{", "c/Profile 1/Preferences", "{}", "c/Profile 1/Bookmarks", "{}"}, importer.Request{Profile: "Profile 1"}, "crash", "", 1},
		"its folder":      {[]string{"Profile 1/Preferences", prefs, "Profile 1/Bookmarks", "{}"}, importer.Request{}, "clean", "139.0.1.2", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			test.x.Format = library.FormatDatadir
			a := r.importFile(alice, test.x, tarOf(t, test.files...))
			if a.Snapshot.Datadir != test.datadir || a.Snapshot.Chrome != test.chrome {
				t.Errorf("%+v", a.Snapshot)
			}
			var dropped []state.Component
			for _, line := range a.Snapshot.Components {
				if line.Dropped > 0 {
					dropped = append(dropped, line)
				}
			}
			if len(dropped) != test.lines {
				t.Errorf("left out: %+v", dropped)
			}
			row, err := r.deps.Catalogue.Snapshot(t.Context(), a.Snapshot.ID)
			if err != nil {
				t.Fatal(err)
			}
			saved, err := r.deps.Vault.Open(t.Context(), library.LocationOf(row.UserID, row.SessionID), row.ID)
			if err != nil {
				t.Fatal(err)
			}
			files, err := r.deps.Vault.Peek(t.Context(), saved, "Default/Preferences", "Default/Bookmarks", state.FileName)
			if err != nil || len(files) != 3 || saved.Archive.Entries != 3 {
				t.Errorf("stored: %q of %d, %v", files, saved.Archive.Entries, err)
			}
		})
	}
}

// Nothing is stored of what cannot be imported, and the error says what is wrong.
func TestImportRefused(t *testing.T) {
	r := newRig(t, nil)
	ours := func(doc string, more ...string) string { return tarOf(t, append(more, state.FileName, doc)...) }
	for name, test := range map[string]struct {
		c    access.Caller
		x    importer.Request
		body string
		code fault.Code
		says string
	}{
		"wrong types":       {alice, importer.Request{Format: library.FormatPlaywright}, `{"cookies":[{"name":1}]}`, fault.InvalidImport, "$.cookies[0].name: must be a string"},
		"a broken line":     {alice, importer.Request{Format: library.FormatNetscape}, "# x\nbroken\n", fault.InvalidImport, "line 2: must have 7 tab-separated fields"},
		"no archive":        {alice, importer.Request{Format: library.FormatDatadir}, "hello", fault.InvalidImport, "the file is not an archive"},
		"no profile":        {alice, importer.Request{Format: library.FormatDatadir}, tarOf(t, "a/b", "c"), fault.InvalidImport, `no profile "Default" in the archive: no folder`},
		"nothing":           {alice, importer.Request{Format: library.FormatNetscape}, "\n", fault.InvalidImport, "the body is empty"},
		"an empty list":     {alice, importer.Request{Format: library.FormatPuppeteer}, "[]", fault.InvalidImport, "the file has no cookies; nothing would be imported"},
		"a misspelt part":   {alice, importer.Request{Format: library.FormatPlaywright}, `{"cokies":[{"name":"a"}],"origins":[]}`, fault.InvalidImport, `that can be imported: the format has no field "$.cokies"`},
		"a default without": {alice, importer.Request{Format: library.FormatPlaywright, SaveAsDefault: true}, strings.Replace(storageStateFile, `"cookies"`, `"cokies"`, 1), fault.InvalidImport, `save_as_default: the format has no field "$.cokies": did you mean cookies?`},
		"only bad cookies":  {alice, importer.Request{Format: library.FormatNetscape}, "a.example\tFALSE\t/\tFALSE\t0\t__Host-n\tv\n", fault.InvalidImport, "no cookies that can be imported: "},
		"another profile":   {alice, importer.Request{Format: library.FormatDatadir, Profile: "Profile 9"}, tarOf(t, "Default/Preferences", "{}"), fault.InvalidImport, "it has Default"},
		"bad preferences":   {alice, importer.Request{Format: library.FormatDatadir}, tarOf(t, "Default/Preferences", "[]"), fault.InvalidImport, "preferences are not JSON"},
		"path traversal":    {alice, importer.Request{Format: library.FormatDatadir}, tarOf(t, "Default/Preferences", "{}", "../evil", "x"), fault.InvalidImport, "clean relative path"},
		"a link":            {alice, importer.Request{Format: library.FormatDatadir}, tarOf(t, "Default/Preferences", "{}", "Default/Bookmarks", "-> /etc/passwd"), fault.InvalidImport, "neither a file nor a folder"},
		"no document":       {alice, importer.Request{Format: library.FormatStasis}, tarOf(t, "Default/Preferences", "{}"), fault.InvalidImport, "has no state.json"},
		"no JSON":           {alice, importer.Request{Format: library.FormatStasis}, ours("{"), fault.InvalidImport, "state.json: is not JSON"},
		"mistyped":          {alice, importer.Request{Format: library.FormatStasis}, ours(`{"cookies":[{"name":7}]}`), fault.InvalidImport, "state.json: cookies"},
		"another version":   {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"9"}`), fault.Unsupported, "schema_version"},
		"a flag's text":     {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"proxy":{"server":"http://1.2.3.4:1 --x,;http=foo"}}}`), fault.InvalidImport, "overrides.proxy.server"},
		"traversal in TZ":   {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"timezone":"../../../etc/passwd"}}`), fault.InvalidImport, "overrides.timezone"},
		"a huge viewport":   {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"viewport":{"width":1000000000,"height":-4}}}`), fault.InvalidImport, "overrides.viewport.width"},
		"a locale's path":   {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"locale":"../../x"}}`), fault.InvalidImport, "overrides.locale"},
		"Host":              {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"extra_headers":{"Host":"x"}}}`), fault.InvalidImport, "overrides.extra_headers.Host"},
		"no decision":       {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","overrides":{"permission_policy":{"default_decision":"ask"}}}`), fault.InvalidImport, "overrides.permission_policy"},
		"no version":        {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","chrome":{"version":"1.2 --x"}}`), fault.InvalidImport, "chrome.version"},
		"no engine":         {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none","chrome":{"engine":"gecko"}}`), fault.InvalidImport, "chrome.engine"},
		"another kind":      {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"x"}`), fault.InvalidImport, "datadir: must be"},
		"no files":          {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"clean"}`), fault.InvalidImport, "does not match the files in the archive"},
		"files after all":   {alice, importer.Request{Format: library.FormatStasis}, ours(`{"schema_version":"1","datadir":"none"}`, "Default/Preferences", "{}"), fault.InvalidImport, "does not match the files in the archive"},
		"somebody else's":   {alice, importer.Request{Format: library.FormatNetscape, UserID: "bob"}, "", fault.Forbidden, ""},
		"without the right": {access.Caller{KeyID: "key-n", UserID: "alice"}, importer.Request{Format: library.FormatNetscape}, "", fault.Forbidden, `"use"`},
	} {
		_, err := r.Import(t.Context(), test.c, test.x, strings.NewReader(test.body))
		if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.catalogue.fails(errBroken, "Commit")
	if _, err := r.Import(t.Context(), alice, importer.Request{Format: library.FormatPlaywright}, strings.NewReader(storageStateFile)); err == nil {
		t.Error("the import succeeded without a commit")
	}
	r.wantSnapshots()
	if r.dirs() != 0 {
		t.Errorf("%d run directories", r.dirs())
	}
	if list, _, err := r.List(t.Context(), alice, request.List{Limit: 10}); err != nil || len(list) > 0 {
		t.Errorf("sessions: %+v, %v", list, err)
	}
}

// An export needs the right to secrets and is complete. An exported archive is imported
// unchanged.
func TestExport(t *testing.T) {
	r := newRig(t, nil)
	a := r.importFile(alice, importer.Request{Format: library.FormatPlaywright, SaveAsDefault: true}, storageStateFile)
	id := a.Snapshot.ID
	_, err := r.library.State(t.Context(), alice, id, library.Export{Format: library.FormatPlaywright})
	wantCode(t, err, fault.Forbidden)
	_, err = r.library.Archive(t.Context(), alice, id)
	wantCode(t, err, fault.Forbidden)
	stranger := access.Caller{KeyID: "key-s", UserID: "bob", Rights: keeper.Rights}
	_, err = r.library.State(t.Context(), stranger, id, library.Export{Format: library.FormatPlaywright})
	wantCode(t, err, fault.SnapshotNotFound)
	_, err = r.library.DefaultState(t.Context(), stranger, "alice", library.Export{Format: library.FormatPlaywright})
	wantCode(t, err, fault.UserNotFound)

	out, err := r.library.DefaultState(t.Context(), keeper, "alice", library.Export{Format: library.FormatNetscape})
	if err != nil || !strings.Contains(string(out.Body), "#HttpOnly_a.example\tFALSE\t/\tTRUE\t0\tsid\ts3cret\n") {
		t.Errorf("%s, %v", out.Body, err)
	}
	if diff := cmp.Diff([]library.NotExported{
		{Component: "cookie_same_site", Count: 1, Reason: "the format has no SameSite"},
		{Component: "local_storage", Origin: "https://a.example/", Count: 1, Reason: "the format has cookies only"},
	}, out.NotExported); diff != "" {
		t.Errorf("not carried:\n%s", diff)
	}
	if len(r.browsers.all()) != 0 {
		t.Error("the export started a Chrome")
	}
	out, err = r.library.State(t.Context(), keeper, id, library.Export{Format: library.FormatPlaywright, IndexedDB: true})
	if err != nil || !strings.Contains(string(out.Body), `"indexedDB"`) || !strings.Contains(string(out.Body), `"read"`) {
		t.Errorf("%s, %v", out.Body, err)
	}
	if all := r.browsers.all(); len(all) != 1 || !all[0].dead() || r.dirs() != 0 {
		t.Errorf("the Chrome that read it: %d, %d run directories", len(all), r.dirs())
	}
	r.browsers.fails(errBroken, "storage")
	if _, err := r.library.State(t.Context(), keeper, id, library.Export{Format: library.FormatPlaywright, IndexedDB: true}); err == nil || r.dirs() != 0 || !r.browsers.last().dead() {
		t.Errorf("a Chrome that fails: %v", err)
	}
	r.browsers.works()

	archive, err := r.library.Archive(t.Context(), keeper, id)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Error(err)
	}
	b := r.importFile(bob, importer.Request{Format: library.FormatStasis}, string(whole))
	stranger.UserID = "bob"
	first, err := r.library.State(t.Context(), keeper, id, library.Export{Format: library.FormatStasis})
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.library.State(t.Context(), stranger, b.Snapshot.ID, library.Export{Format: library.FormatStasis})
	if err != nil || !bytes.Equal(first.Body, second.Body) {
		t.Errorf("another document: %v\n%s\n%s", err, first.Body, second.Body)
	}
}

// A sealed archive needs the same right. It is imported if it can be opened. If not, the
// error names its recipients and nothing is stored.
func TestSealedExport(t *testing.T) {
	r := newRig(t, nil)
	id := r.importFile(alice, importer.Request{Format: library.FormatPlaywright}, storageStateFile).Snapshot.ID
	_, err := r.library.SealedArchive(t.Context(), alice, id, nil)
	wantCode(t, err, fault.Forbidden)
	_, err = r.library.SealedArchive(t.Context(), keeper, id, []string{"age1x"})
	wantCode(t, err, fault.InvalidField)
	friend, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to := friend.Recipient().String()
	for _, recipients := range [][]string{nil, {to}} {
		archive, err := r.library.SealedArchive(t.Context(), keeper, id, recipients)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(archive)
		if err != nil || int64(len(whole)) != archive.Size || archive.Close() != nil {
			t.Fatalf("%d bytes of %d, %v", len(whole), archive.Size, err)
		}
		a, err := r.Import(t.Context(), bob, importer.Request{Format: library.FormatStasis}, bytes.NewReader(whole))
		if recipients == nil {
			if err != nil || a.Snapshot.ID == "" {
				t.Errorf("our own: %+v, %v", a, err)
			}
			continue
		}
		wantCode(t, err, fault.InvalidImport)
		if !strings.Contains(fault.MessageOf(err), to) {
			t.Errorf("the error does not name the recipients: %v", err)
		}
	}
}
