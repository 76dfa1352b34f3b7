package profile_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
)

func TestFindDesktop(t *testing.T) {
	for _, test := range []struct {
		names   []string
		profile string
		file    string // in the archive
		want    string // name in the user data directory, or part of the reason why not
	}{
		{[]string{"Default/Preferences"}, "", "Default/Cookies", "Default/Cookies"},
		{[]string{"chromium/Default/Preferences"}, "", "chromium/Default/Cookies", "Default/Cookies"},
		{[]string{"home/x/.config/chromium/Default/Preferences"}, "", "home/x/.config/chromium/Last Version", "Last Version"},
		{[]string{"c/Profile 1/Preferences", "c/Default/Preferences"}, "Profile 1", "c/Profile 1/Cookies", "Default/Cookies"},
		{[]string{"c/Profile 1/Preferences", "c/Default/Preferences"}, "Profile 1", "c/Default/Cookies", "outside the profile"},
		{[]string{"Preferences"}, "", "Cookies", "Default/Cookies"},
		{[]string{"Profile 7/Preferences"}, "", "Profile 7/Cookies", "Default/Cookies"},
		{[]string{"Profile 7/Preferences"}, "", "Cookies", "outside the profile"},
		// An extension may contain such a file; the profile is the topmost folder.
		{[]string{"c/Default/Extensions/x/Default/Preferences", "c/Default/Preferences"}, "", "c/Default/Cookies", "Default/Cookies"},
		{[]string{"c/Default/Preferences"}, "", "c/Default/Cache/x", "caches"},
		{[]string{"c/Default/Preferences"}, "", "c/Default/IndexedDB/x/LOCK", "caches, logs and locks"},
		{[]string{"c/Default/Preferences"}, "", "c/SingletonLock", "Singleton*"},
		{[]string{"c/Default/Preferences"}, "", "c/NativeMessagingHosts/x.json", "NativeMessagingHosts"},
		{[]string{"c/Default/Preferences"}, "", "c/Default/NativeMessagingHosts/x.json", "NativeMessagingHosts"},
		{[]string{"c/Default/Preferences"}, "", "c/Local State", "outside the profile"},
		{[]string{"c/Default/Preferences"}, "", "c/Default", "Default"},
	} {
		d, err := profile.FindDesktop(test.names, test.profile)
		if err != nil {
			t.Errorf("%q: %v", test.names, err)
			continue
		}
		to, why := d.TargetName(test.file)
		if to != test.want && (to != "" || !strings.Contains(why, test.want)) {
			t.Errorf("%q: %s becomes %q, %q", test.names, test.file, to, why)
		}
		if to != "" && to != profile.LastVersion && !profile.Accept(to) {
			t.Errorf("%s: Accept rejects it", to)
		}
	}
	for _, test := range []struct {
		names         []string
		profile, says string
	}{
		{nil, "", "no folder in it has a file named Preferences"},
		{[]string{"a/Preferences", "b/Preferences"}, "", "it has a, b"},
		{[]string{"a/Preferences"}, "Default", "it has a"},
		{[]string{"x/a/Preferences"}, "", "it has a"},
	} {
		if _, err := profile.FindDesktop(test.names, test.profile); !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%q: %v", test.names, err)
		}
	}
}

func TestLeft(t *testing.T) {
	dir := t.TempDir()
	write := func(prefs string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "Default"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Default/Preferences"), []byte(prefs), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"profile":{"exit_type":"Normal"},"extensions":{"last_chrome_version":"139.0.1.2"}}`)
	if clean, version, err := profile.ExitState(dir); err != nil || !clean || version != "139.0.1.2" {
		t.Error(clean, version, err)
	}
	write(`{"profile":{"exit_type":"Crashed"}}`)
	if clean, version, err := profile.ExitState(dir); err != nil || clean || version != "" {
		t.Error(clean, version, err)
	}
	write(`[]`)
	if _, _, err := profile.ExitState(dir); !fault.Is(err, fault.ArchiveDamaged) {
		t.Error(err)
	}
}

// Secrets that a keyring encrypted are counted by site; those with the fixed key, or
// none, are not. A file that is not a database counts as empty.
func TestSealedByKeyring(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	make := func(name string, statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, "Default", name))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	make("Cookies", "CREATE TABLE cookies (host_key TEXT, encrypted_value BLOB)",
		"INSERT INTO cookies VALUES ('.a.example', x'76313101'), ('a.example', x'76313102'), ('a.example', x'76313003'), ('b.example', ''), ('c.example', x'763131')")
	make("Login Data", "CREATE TABLE logins (signon_realm TEXT, password_value BLOB)", "INSERT INTO logins VALUES ('https://a.example/', x'76313104')")
	want := []profile.Sealed{{File: "Cookies", Origin: "a.example", Count: 2}, {File: "Cookies", Origin: "c.example", Count: 1},
		{File: "Login Data", Origin: "https://a.example/", Count: 1}}
	if diff := cmp.Diff(want, profile.SealedByKeyring(t.Context(), dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "Default/Cookies")); err != nil {
		t.Fatal(err)
	}
	make("Cookies", "CREATE VIEW cookies AS SELECT 'x' AS host_key, x'763131' AS encrypted_value")
	if err := os.WriteFile(filepath.Join(dir, "Default/Login Data"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := profile.SealedByKeyring(t.Context(), dir); len(got) > 0 {
		t.Errorf("secrets found without a table: %+v", got)
	}
}
