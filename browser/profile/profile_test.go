package profile_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

func put(t *testing.T, root, name, body string) {
	t.Helper()
	at := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(files []profile.File) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.Name)
	}
	return list
}

// Select keeps the user's files and leaves out those that Chrome creates again.
func TestSelect(t *testing.T) {
	root := t.TempDir()
	kept := []string{
		"Default/Cookies", "Default/Cookies-journal", "Default/Extensions/abc/1.0/LOG",
		"Default/File System/000/p/00/00000000", "Default/IndexedDB/http_a_0.indexeddb.leveldb/000003.log",
		"Default/Local Storage/leveldb/CURRENT", "Default/Login Data", "Default/Preferences",
		"Default/Service Worker/CacheStorage/x/index", "Default/Service Worker/ScriptCache/index",
		"Default/Sessions/Session_1", "Default/Something New/of a later Chrome", "Default/WebStorage/QuotaManager",
	}
	for _, name := range kept {
		put(t, root, name, name)
	}
	for _, name := range []string{
		"Default/Cache/Cache_Data/data_0", "Default/Code Cache/js/index", "Default/GPUCache/data_1",
		"Default/Local Storage/leveldb/LOG", "Default/Local Storage/leveldb/LOCK", "Default/Local Storage/leveldb/LOG.old",
		"Default/SingletonLock", "Local State", "Crashpad/x", "Spare/Cookies", "SingletonCookie", "Default/DevToolsActivePort",
	} {
		put(t, root, name, name)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "Default/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(root, "Default/folder link")); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(root, "Default/s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.Mkdir(filepath.Join(root, "Default/Empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := profile.Select(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, names(files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var bytes int64
	for _, f := range files {
		bytes += int64(len(f.Name)) // each file contains its own name
		if f.Path != filepath.Join(root, f.Name) || f.Mode != 0o600 || f.Size != int64(len(f.Name)) {
			t.Errorf("%+v", f)
		}
		if !profile.Accept(f.Name) {
			t.Errorf("%s is archived but not accepted", f.Name)
		}
	}
	if got := profile.Size(files); got != bytes {
		t.Errorf("size %d, want %d", got, bytes)
	}
}

func TestSelectMissing(t *testing.T) {
	root := t.TempDir()
	if _, err := profile.Select(t.Context(), root); !fault.Is(err, fault.SaveFailed) {
		t.Errorf("without a profile: %v", err)
	}
	if profile.Exists(root) {
		t.Error("Exists reports a missing profile")
	}
	put(t, root, "Default/Cookies", "")
	if !profile.Exists(root) {
		t.Error("Exists does not report the profile")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := profile.Select(gone, root); !fault.Is(err, fault.Timeout) {
		t.Errorf("after cancel: %v", err)
	}
	// A profile that is a link out of the directory does not count.
	other := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "Default"), filepath.Join(other, "Default")); err != nil {
		t.Fatal(err)
	}
	if files, err := profile.Select(t.Context(), other); err == nil && len(files) > 0 {
		t.Errorf("a linked profile gives %v", names(files))
	}
}

// Accept allows only the profile's own files and those of extensions.
func TestAccept(t *testing.T) {
	for name, want := range map[string]bool{
		"Default": true, "Default/Cookies": true, "Default/a/b/c": true, "Default/Extensions/x/LOG": true,
		"":                                    false,
		".":                                   false,
		"/":                                   false,
		"/etc/passwd":                         false,
		"Default/":                            false,
		"Default//Cookies":                    false,
		"Default/../x":                        false,
		"Default/..":                          false,
		"../Default/x":                        false,
		"./Default/x":                         false,
		"DefaultX/Cookies":                    false,
		"default/Cookies":                     false,
		"Local State":                         false,
		"First Run":                           false,
		"Spare/Cookies":                       false,
		"NativeMessagingHosts/x.json":         false,
		"Default/NativeMessagingHosts/x.json": false,
		"Default/a/NativeMessagingHosts":      false,
		"SingletonLock":                       false,
		"Default/SingletonSocket":             false,
		"Default/a/SingletonLock":             false,
		"Default/Cache/x":                     false,
		"Default/Local Storage/leveldb/LOCK":  false,
		"state.json":                          false,
		"Policies/managed/x.json":             false,
	} {
		if got := profile.Accept(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// prefs reads a preferences file and keeps its numbers unchanged.
func prefs(t *testing.T, root, name string) map[string]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "Default", name))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func want(t *testing.T, all map[string]json.RawMessage, value string, path ...string) {
	t.Helper()
	for len(path) > 1 {
		var next map[string]json.RawMessage
		if err := json.Unmarshal(all[path[0]], &next); err != nil {
			t.Fatalf("%s: %v", path[0], err)
		}
		all, path = next, path[1:]
	}
	if got := string(all[path[0]]); got != value {
		t.Errorf("%s is %s, want %s", path[0], got, value)
	}
}

func TestPrepareMissing(t *testing.T) {
	root := t.TempDir()
	for range 2 {
		if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
			t.Fatal(err)
		}
	}
	got := prefs(t, root, "Preferences")
	want(t, got, "1", "session", "restore_on_startup")
	want(t, got, `"Normal"`, "profile", "exit_type")
	want(t, got, "2", "profile", "default_content_setting_values", "geolocation")
	if _, err := os.Stat(filepath.Join(root, "Default/Secure Preferences")); err == nil {
		t.Error("Prepare created Secure Preferences, which Chrome would reject")
	}
}

// Prepare keeps the environment's settings, except those that depend on the machine.
func TestPrepareKeeps(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"session":{"restore_on_startup":4,"startup_urls":["https://a.example/"]},
		"profile":{"exit_type":"Crashed","name":"Person 1","default_content_setting_values":{"geolocation":1}},
		"download":{"default_directory":"/home/else","prompt_for_download":true},
		"times":{"install":13412345678901234567,"small":0.1},
		"extensions":{"settings":{"abs":{"path":"/usr/share/evil"},"rel":{"path":"rel/1.0_0"},"none":{},"odd":[]}}}`)
	put(t, root, "Default/Secure Preferences", `{"extensions":{"settings":{"abs":{"path":"/usr/share/evil"},"rel":{"path":"rel/1.0_0"}}},"protection":{"macs":9007199254740993}}`)
	for _, folder := range []string{"Sessions", "Sessions_Encrypted"} {
		put(t, root, "Default/"+folder+"/Session_1", "SNSS\x03\x00\x00\x00")
	}
	if _, err := (profile.Prepare{RestoreTabs: true}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	got := prefs(t, root, "Preferences")
	want(t, got, "1", "session", "restore_on_startup")
	want(t, got, `["https://a.example/"]`, "session", "startup_urls")
	want(t, got, `"Person 1"`, "profile", "name")
	want(t, got, `"Normal"`, "profile", "exit_type")
	want(t, got, "1", "profile", "default_content_setting_values", "geolocation")
	want(t, got, "2", "profile", "default_content_setting_values", "notifications")
	want(t, got, "", "download", "default_directory")
	want(t, got, "true", "download", "prompt_for_download")
	want(t, got, "13412345678901234567", "times", "install")
	want(t, got, "0.1", "times", "small")
	want(t, got, `{}`, "extensions", "settings")
	secure := prefs(t, root, "Secure Preferences")
	want(t, secure, `{}`, "extensions", "settings")
	want(t, secure, "9007199254740993", "protection", "macs")
	if _, err := os.Stat(filepath.Join(root, "Default/Sessions/Session_1")); err != nil {
		t.Errorf("the tabs: %v", err)
	}
	if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"Sessions", "Sessions_Encrypted"} {
		if _, err := os.Stat(filepath.Join(root, "Default", folder)); err == nil {
			t.Errorf("the tabs were not removed: %s", folder)
		}
	}
}

// Prepare replaces sections of another type than Chrome writes. It reports a file that is
// not a JSON object as damaged and does not change it.
func TestPrepareDamaged(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"session":[1],"profile":"x","extensions":{"settings":[]},"download":null}`)
	if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	want(t, prefs(t, root, "Preferences"), `{"restore_on_startup":1}`, "session")
	for _, body := range []string{``, `{`, `[]`, `null`, `"x"`, `{"a":1`, "\xff\x00", `[{"session":{}}]`} {
		for _, name := range []string{"Preferences", "Secure Preferences"} {
			root := t.TempDir()
			put(t, root, "Default/"+name, body)
			if _, err := (profile.Prepare{}).Run(t.Context(), root); !fault.Is(err, fault.ArchiveDamaged) {
				t.Errorf("%s with %q: %v", name, body, err)
			}
			if got, err := os.ReadFile(filepath.Join(root, "Default", name)); err != nil || string(got) != body {
				t.Errorf("%s with %q was changed to %q, %v", name, body, got, err)
			}
		}
	}
}

// A named pipe in place of the preferences does not block the daemon.
func TestPrepareOpensNoPipe(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, profile.Default), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, profile.Default, "Preferences"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (profile.Prepare{}).Run(t.Context(), root); err == nil {
		t.Error("a pipe was accepted as preferences")
	}
}

// Nothing is read or written through a link that Chrome left.
func TestPrepareFollowsNoLinkOut(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte(`{"mine":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	put(t, root, "Default/Cookies", "")
	if err := os.Symlink(outside, filepath.Join(root, "Default/Preferences")); err != nil {
		t.Fatal(err)
	}
	_, err := (profile.Prepare{}).Run(t.Context(), root)
	if got, rerr := os.ReadFile(outside); rerr != nil || string(got) != `{"mine":1}` {
		t.Errorf("the file outside has changed to %q (%v), Run: %v", got, rerr, err)
	}
}

// After Prepare, no page can read files or use devices of a machine because of the
// profile.
func TestPrepareDropsGrants(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"profile":{"content_settings":{
		"exceptions":{"file_system_read_guard":{"https://a.example:443,*":{"setting":1}},"file_system_access_chooser_data":{"a":{}},
			"usb_chooser_data":{"a":{}},"clipboard":{"https://a.example:443,*":{"setting":1}}},
		"partitioned_exceptions":{"file_system_write_guard":{"a":{}}}},
		"default_content_setting_values":{"file_system_read_guard":1,"file_system_write_guard":1}}}`)
	if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	got := prefs(t, root, "Preferences")
	want(t, got, `{"clipboard":{"https://a.example:443,*":{"setting":1}}}`, "profile", "content_settings", "exceptions")
	want(t, got, `{}`, "profile", "content_settings", "partitioned_exceptions")
	want(t, got, "", "profile", "default_content_setting_values", "file_system_read_guard")
	want(t, got, "2", "profile", "default_content_setting_values", "file_system_write_guard")
}

// A policy's default applies where the environment has no decision for an origin, its
// rules become exceptions, and the earlier policy is removed.
func TestPreparePolicy(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"profile":{"content_settings":{"exceptions":{
		"media_stream_camera":{"https://own.example:443,*":{"setting":2},"https://a.example:443,*":{"setting":1}}}},
		"default_content_setting_values":{"geolocation":1,"notifications":1,"cookies":4}}}`)
	before := &state.PermissionPolicy{Default: state.DecisionAllow, Rules: []state.PermissionRule{
		{Permission: "camera", Origin: "https://a.example", Decision: state.DecisionAllow},
		{Permission: "persistent-storage", Origin: "*", Decision: state.DecisionDeny}}}
	now := &state.PermissionPolicy{Default: state.DecisionDeny, Rules: []state.PermissionRule{
		{Permission: "camera", Decision: state.DecisionAllow},
		{Permission: "local-network-access", Origin: "http://[::1]:8080", Decision: state.DecisionAllow}}}
	if _, err := (profile.Prepare{Policy: now, Before: before}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	got := prefs(t, root, "Preferences")
	for name, setting := range map[string]string{"media_stream_camera": "1", "geolocation": "2", "notifications": "2", "cookies": "4",
		"durable_storage": "", "usb_guard": "2"} {
		want(t, got, setting, "profile", "default_content_setting_values", name)
	}
	want(t, got, `{"https://own.example:443,*":{"setting":2}}`, "profile", "content_settings", "exceptions", "media_stream_camera")
	for _, name := range []string{"local_network_access", "local_network", "loopback_network"} {
		want(t, got, `{"http://[::1]:8080,*":{"setting":1}}`, "profile", "content_settings", "exceptions", name)
	}
	if _, err := (profile.Prepare{Before: now}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	got = prefs(t, root, "Preferences")
	want(t, got, "2", "profile", "default_content_setting_values", "media_stream_camera")
	want(t, got, `{}`, "profile", "content_settings", "exceptions", "loopback_network")
}
