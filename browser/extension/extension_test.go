package extension_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

// goodManifest is a valid manifest.
const goodManifest = `{"manifest_version": 3, "name": "Probe", "version": "1.2"}`

// entry is one entry of a zip made by a test.
type entry struct {
	name, body string
	mode       fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(e.body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t testing.TB, raw []byte) (extension.Info, string, error) {
	t.Helper()
	dir := t.TempDir()
	info, err := extension.Write(t.Context(), bytes.NewReader(raw), int64(len(raw)), dir)
	return info, dir, err
}

func idOf(key []byte) string {
	sum := sha256.Sum256(key)
	return strings.Map(func(r rune) rune {
		if r <= '9' {
			return r - '0' + 'a'
		}
		return r - 'a' + 'k'
	}, hex.EncodeToString(sum[:16]))
}

// An extension without a key gets one derived from its name, so that its ID stays the
// same in later versions and on other machines. One with a key keeps it.
func TestIDs(t *testing.T) {
	first, dir, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "a/b.js", body: "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if want := idOf([]byte("stasis extension\x00Probe")); first.ID != want || !extension.IsID(first.ID) {
		t.Errorf("ID %s, want %s", first.ID, want)
	}
	var m struct {
		Key  string `json:"key"`
		Name string `json:"name"`
	}
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Name != "Probe" {
		t.Fatalf("%v %s", err, raw)
	}
	if key, err := base64.StdEncoding.DecodeString(m.Key); err != nil || idOf(key) != first.ID {
		t.Errorf("key in the manifest: %q, want one for the ID", m.Key)
	}
	if first.Name != "Probe" || first.Version != "1.2" || first.Size != int64(len(raw)+1) || len(first.SHA256) != 64 {
		t.Errorf("%+v", first)
	}
	next, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: strings.Replace(goodManifest, "1.2", "1.3", 1)}))
	if err != nil || next.ID != first.ID || next.SHA256 == first.SHA256 {
		t.Errorf("another version: %+v %v", next, err)
	}
	key := []byte("any bytes are a key to Chrome")
	keyed := strings.Replace(goodManifest, "{", `{"key": "`+base64.StdEncoding.EncodeToString(key)+`",`, 1)
	own, dir, err := write(t, zipOf(t, entry{name: "manifest.json", body: keyed}))
	if err != nil || own.ID != idOf(key) {
		t.Errorf("with a key: %+v %v", own, err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "manifest.json")); err != nil || string(raw) != keyed {
		t.Errorf("a manifest with a key was changed: %s", raw)
	}
}

// The same files have the same hash, however they were packed.
func TestSHA256IsOfTheFiles(t *testing.T) {
	a, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "x.js", body: "1"}))
	if err != nil {
		t.Fatal(err)
	}
	b, dir, err := write(t, zipOf(t, entry{name: "probe-1.2/", mode: fs.ModeDir | 0o755}, entry{name: "probe-1.2/x.js", body: "1"},
		entry{name: "probe-1.2/manifest.json", body: goodManifest}, entry{name: "__MACOSX/probe-1.2/._x.js", body: "?"},
		entry{name: "probe-1.2/_metadata/verified_contents.json", body: "?"}))
	if err != nil || a != b {
		t.Errorf("in a folder: %+v, at the top %+v, %v", b, a, err)
	}
	// Files that Chrome writes into the folder do not change the hash.
	if err := os.MkdirAll(filepath.Join(dir, "_metadata/generated_indexed_rulesets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "_metadata/generated_indexed_rulesets/_ruleset1"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, err := extension.Inspect(t.Context(), dir); err != nil || now != a {
		t.Errorf("with Chrome's own files: %+v %v", now, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.js"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, err := extension.Inspect(t.Context(), dir); err != nil || now.SHA256 == a.SHA256 {
		t.Errorf("changed: %+v %v", now, err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "y.js")); err != nil {
		t.Fatal(err)
	}
	if _, err := extension.Inspect(t.Context(), dir); !fault.Is(err, fault.InvalidExtension) {
		t.Errorf("with a link: %v", err)
	}
}

// Inspect reads a folder that Chrome has used only up to the limits of an upload.
// Otherwise a filled folder would delay a save, because every byte of it is hashed.
func TestInspectIsBounded(t *testing.T) {
	for name, fill := range map[string]func(dir string) error{
		"a large file": func(dir string) error { return sparse(filepath.Join(dir, "x.js"), 128<<20+1) },
		"much in all": func(dir string) error {
			return errors.Join(sparse(filepath.Join(dir, "x.js"), 100<<20), sparse(filepath.Join(dir, "y.js"), 100<<20),
				sparse(filepath.Join(dir, "z.js"), 100<<20))
		},
	} {
		_, dir, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}))
		if err != nil {
			t.Fatal(err)
		}
		if err := fill(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := extension.Inspect(t.Context(), dir); !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, dir, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}))
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := extension.Inspect(gone, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}

// sparse makes a file of the given size that uses no disk space.
func sparse(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func TestNameOfTheDefaultLocale(t *testing.T) {
	body := `{"manifest_version": 3, "name": "__MSG_appName__", "version": "1", "default_locale": "en"}`
	messages := entry{name: "_locales/en/messages.json", body: `{"APPNAME": {"message": "Night"}}`}
	info, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: "\xef\xbb\xbf" + body}, messages))
	if err != nil || info.Name != "Night" || info.ID != idOf([]byte("stasis extension\x00__MSG_appName__")) {
		t.Errorf("%+v %v", info, err)
	}
	other := entry{name: "_locales/en/messages.json", body: `{"other": {"message": "Day"}}`}
	if info, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: body}, other)); err != nil || info.Name != "__MSG_appName__" {
		t.Errorf("without its translation: %+v %v", info, err)
	}
}

func TestRefusedZips(t *testing.T) {
	m := entry{name: "manifest.json", body: goodManifest}
	for name, c := range map[string]struct {
		entries []entry
		code    fault.Code
		says    string
	}{
		"no manifest":     {[]entry{{name: "a.js"}}, fault.InvalidExtension, "no manifest.json"},
		"two folders":     {[]entry{{name: "a/manifest.json", body: goodManifest}, {name: "b/x"}}, fault.InvalidExtension, "no manifest.json"},
		"up":              {[]entry{m, {name: "../x"}}, fault.InvalidExtension, `"../x"`},
		"up within":       {[]entry{m, {name: "a/../../x"}}, fault.InvalidExtension, "clean relative path"},
		"absolute":        {[]entry{m, {name: "/etc/passwd"}}, fault.InvalidExtension, "/etc/passwd"},
		"backslash":       {[]entry{m, {name: `a\b`}}, fault.InvalidExtension, "clean relative path"},
		"drive":           {[]entry{m, {name: "c:x"}}, fault.InvalidExtension, "clean relative path"},
		"dot":             {[]entry{m, {name: "a/./b"}}, fault.InvalidExtension, "clean relative path"},
		"control":         {[]entry{m, {name: "a\x00b"}}, fault.InvalidExtension, "clean relative path"},
		"not UTF-8":       {[]entry{m, {name: "a\xff"}}, fault.InvalidExtension, "clean relative path"},
		"long":            {[]entry{m, {name: strings.Repeat("a", 300)}}, fault.InvalidExtension, "clean relative path"},
		"link":            {[]entry{m, {name: "x", body: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, fault.InvalidExtension, "neither a file nor a folder"},
		"pipe":            {[]entry{m, {name: "x", mode: fs.ModeNamedPipe | 0o600}}, fault.InvalidExtension, "neither a file nor a folder"},
		"twice":           {[]entry{m, {name: "x"}, {name: "x"}}, fault.InvalidExtension, "twice"},
		"by case":         {[]entry{m, {name: "x.js"}, {name: "X.js"}}, fault.InvalidExtension, "only by case"},
		"folders by case": {[]entry{m, {name: "a/x"}, {name: "A/y"}}, fault.InvalidExtension, "only by case"},
		"file and folder": {[]entry{m, {name: "a"}, {name: "a/b"}}, fault.InvalidExtension, "twice"},
		"a huge manifest": {[]entry{{name: "manifest.json", body: strings.Repeat(" ", 2<<20)}}, fault.TooLarge, "manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := write(t, zipOf(t, c.entries...))
			if !fault.Is(err, c.code) || !strings.Contains(fault.MessageOf(err), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// These zips have wrong sizes, a wrong directory or wrong bytes.
func TestDamagedZips(t *testing.T) {
	whole := zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "x.js", body: strings.Repeat("some text ", 1000)})
	change := func(at int, to ...byte) []byte {
		raw := bytes.Clone(whole)
		copy(raw[at:], to)
		return raw
	}
	list := bytes.Index(whole, []byte("PK\x01\x02"))
	second := list + 4 + bytes.Index(whole[list+4:], []byte("PK\x01\x02"))
	for name, raw := range map[string][]byte{
		"nothing":        {},
		"not a zip":      []byte("<!doctype html>"),
		"cut":            whole[:len(whole)/2],
		"more before":    append([]byte("x"), whole...),
		"contents":       change(bytes.Index(whole, []byte("x.js"))+4, 0xff, 0xff),
		"smaller stated": change(second+24, 10, 0, 0, 0),   // its size, unpacked
		"a bomb":         change(second+24, 0, 0, 0x10, 8), // it states 129 MB unpacked
		"a list of 4 GB": change(len(whole)-10, 0xff, 0xff, 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			_, dir, err := write(t, raw)
			if files, _ := os.ReadDir(dir); name == "a bomb" && (!fault.Is(err, fault.TooLarge) || len(files) > 0) {
				t.Errorf("the bomb was unpacked: %v", err)
			}
			if !fault.Is(err, fault.InvalidExtension) && !fault.Is(err, fault.TooLarge) {
				t.Errorf("%v", err)
			}
		})
	}
}

// named returns a manifest with one more field.
func named(field string) string {
	return `{"manifest_version": 3, "name": "x", "version": "1", ` + field + `}`
}

// Chrome's rules apply to the paths in a manifest.
func TestNamedFiles(t *testing.T) {
	body := named(`"background": {"service_worker": "/js/sw.js"}, "content_scripts": [{"js": ["./js/../js/sw.js"],
		"matches": ["<all_urls>", "*://*/*", "https://*.a.example/x*", "http://a.example:8080/*", "http://localhost:*/*", "file:///*"]}]`)
	if _, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: body}, entry{name: "js/sw.js", body: "1"})); err != nil {
		t.Error(err)
	}
}

func TestRefusedManifests(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"not JSON":         {`{`, "not a JSON object"},
		"an array":         {`[]`, "not a JSON object"},
		"null":             {`null`, "not a JSON object"},
		"empty":            {`{}`, "manifest_version is missing"},
		"version a string": {`{"manifest_version": "3", "name": "x", "version": "1"}`, "manifest_version must be an integer"},
		"version null":     {`{"manifest_version": null, "name": "x", "version": "1"}`, "manifest_version must be an integer"},
		"name a number":    {`{"manifest_version": 3, "name": 1, "version": "1"}`, "name must be a string"},
		"no name":          {`{"manifest_version": 3, "version": "1"}`, "name is missing"},
		"empty name":       {`{"manifest_version": 3, "name": "", "version": "1"}`, "name must have"},
		"its version":      {`{"manifest_version": 3, "name": "x", "version": "1.2-beta"}`, "version must be one to four"},
		"large version":    {`{"manifest_version": 3, "name": "x", "version": "70000"}`, "version must be one to four"},
		"long version":     {`{"manifest_version": 3, "name": "x", "version": "1.2.3.4.5"}`, "version must be one to four"},
		"key":              {`{"manifest_version": 3, "name": "x", "version": "1", "key": "?"}`, "key must be"},
		"key a number":     {`{"manifest_version": 3, "name": "x", "version": "1", "key": 5}`, "key must be"},
		"permissions":      {`{"manifest_version": 3, "name": "x", "version": "1", "permissions": "tabs"}`, "permissions must be an array"},
		"background":       {`{"manifest_version": 3, "name": "x", "version": "1", "background": []}`, "background must be an object"},
		"no worker":        {named(`"background": {"service_worker": "sw.js"}`), `service_worker: there is no file "sw.js"`},
		"no script":        {named(`"content_scripts": [{"matches": ["<all_urls>"], "js": ["/a.js"]}]`), `content_scripts[0]: there is no file "/a.js"`},
		"no styles":        {named(`"content_scripts": [{"matches": ["*://*/*"], "css": ["./a.css"]}]`), `there is no file "./a.css"`},
		"no matches":       {named(`"content_scripts": [{"js": ["manifest.json"]}]`), "content_scripts[0].matches must have a pattern"},
		"no pattern":       {named(`"content_scripts": [{"matches": ["https://a.*/x"]}]`), `"https://a.*/x" is not a match pattern`},
		"no path":          {named(`"content_scripts": [{"matches": ["<all_urls>"], "exclude_matches": ["https://a.example"]}]`), "is not a match pattern"},
		"scripts":          {named(`"content_scripts": {}`), "has a wrong type"},
		"no translations":  {named(`"default_locale": "en"`), "default_locale: there is no file _locales/en/messages.json"},
		"version 2":        {`{"manifest_version": 2, "name": "x", "version": "1"}`, "manifest_version must be 3"},
		"optional ones":    {`{"manifest_version": 3, "name": "x", "version": "1", "optional_permissions": ["nativeMessaging"]}`, "nativeMessaging"},
		"native programs":  {`{"manifest_version": 3, "name": "x", "version": "1", "permissions": ["nativeMessaging"]}`, "nativeMessaging"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := write(t, zipOf(t, entry{name: "manifest.json", body: c.body}))
			code := fault.InvalidExtension
			if name == "version 2" || strings.HasSuffix(c.says, "nativeMessaging") {
				code = fault.Unsupported
			}
			if !fault.Is(err, code) || !strings.Contains(fault.MessageOf(err), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Whatever a manifest contains, an accepted extension reads back as the same.
func FuzzManifest(f *testing.F) {
	f.Add(goodManifest)
	f.Add(`{"manifest_version": 3, "name": "x", "version": "1", "key": "AAAA", "permissions": ["tabs", {}]}`)
	f.Add(`{"manifest_version": 3, "name": "__MSG_a__", "default_locale": "../x", "version": "0.0.0.1", "NAME": 1}`)
	f.Add("\xef\xbb\xbf{}")
	f.Fuzz(func(t *testing.T, body string) {
		info, dir, err := write(t, zipOf(t, entry{name: "manifest.json", body: body}))
		if err != nil {
			if code := fault.CodeOf(err); code != fault.InvalidExtension && code != fault.Unsupported && code != fault.TooLarge {
				t.Fatal(err)
			}
			return
		}
		if again, err := extension.Inspect(t.Context(), dir); err != nil || again != info || !extension.IsID(info.ID) {
			t.Fatalf("written %+v, read back %+v, %v", info, again, err)
		}
	})
}
