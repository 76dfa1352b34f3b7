package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// The test checks which source keys come from, what they seal to and open with, and which
// files LoadKeys creates.
func TestKeySources(t *testing.T) {
	a, b, r := newIdentity(t), newIdentity(t), newIdentity(t).Recipient()
	two := a.String() + "\n# another\n" + b.String() + "\n"
	secret := strings.Repeat("5a", 32)
	used := func() (bool, error) { return true, nil }
	type config = snapshot.KeyConfig
	for name, test := range map[string]struct {
		config config
		has    []string // files that exist before
		seals  int
		opens  int
		made   string // files that exist afterwards
		code   fault.Code
		says   string
	}{
		"several identities":           {config: config{Identities: two, Source: "x"}, seals: 1, opens: 2, made: "archive-key"},
		"and recipients":               {config: config{Identities: two, Source: "x", Recipients: []string{r.String(), b.Recipient().String()}}, seals: 3, opens: 2, made: "archive-key"},
		"its own recipient named":      {config: config{Identities: two, Source: "x", Recipients: []string{a.Recipient().String()}}, seals: 1, opens: 2, made: "archive-key"},
		"recipients beside a file":     {config: config{Recipients: []string{r.String()}}, has: []string{"identity", "archive-key"}, seals: 2, opens: 1, made: "archive-key identity"},
		"recipients alone":             {config: config{Recipients: []string{r.String()}}, seals: 1, made: "archive-key"},
		"recipients, identity removed": {config: config{Recipients: []string{r.String()}}, has: []string{"archive-key"}, seals: 1, made: "archive-key"},
		"all given":                    {config: config{Identities: two, Source: "x", NamingSecret: secret, InUse: used}, seals: 1, opens: 2},
		"a naming secret given":        {config: config{NamingSecret: secret}, seals: 1, opens: 1, made: "identity"},
		"a store in use":               {config: config{InUse: used}, code: fault.IdentityMissing, says: "archive-key"},
		"a store in use, identity":     {config: config{Identities: two, Source: "x", InUse: used}, code: fault.IdentityMissing, says: "--archive-key-file"},
		"a store in use, secret":       {config: config{NamingSecret: secret, InUse: used}, code: fault.IdentityMissing, says: "--identity-file"},
		"a store that fails":           {config: config{InUse: func() (bool, error) { return false, errors.New("away") }}, code: fault.Internal},
		"read only, nothing there":     {config: config{ReadOnly: true}, code: fault.Config, says: "put identity and archive-key back from a backup"},
		"rubbish":                      {config: config{Identities: "AGE-SECRET-KEY-1RUBBISH", Source: "STASIS_IDENTITY"}, made: "archive-key", code: fault.Config, says: "STASIS_IDENTITY: must be"},
		"none in it":                   {config: config{Identities: "# nothing\n", Source: "--identity-file"}, made: "archive-key", code: fault.Config, says: "--identity-file: must be"},
		"a bad recipient":              {config: config{Recipients: []string{"age1x"}}, code: fault.Config, says: `"age1x"`},
		"a recipient that is a secret": {config: config{Recipients: []string{a.String()}}, code: fault.Config, says: "recipient"},
		"a bad secret":                 {config: config{NamingSecret: "5a"}, made: "identity", code: fault.Config, says: "--archive-key-file"},
	} {
		dir := t.TempDir()
		made := t.TempDir()
		loadKeys(t, made)
		for _, file := range test.has {
			if err := os.Rename(filepath.Join(made, file), filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		test.config.Dir = dir
		keys, err := snapshot.LoadKeys(test.config)
		if test.code != "" {
			if !fault.Is(err, test.code) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "SECRET-KEY-1") {
				t.Errorf("%s: %v, want %s saying %q", name, err, test.code, test.says)
			}
		} else if err != nil || len(keys.Recipients()) != test.seals || len(keys.IdentityRecipients()) != test.opens {
			t.Errorf("%s: %v; seals to %q, opens %q", name, err, keys.Recipients(), keys.IdentityRecipients())
		}
		if got := filesIn(t, dir); got != test.made {
			t.Errorf("%s: the directory holds %q, want %q", name, got, test.made)
		}
	}
}

func filesIn(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Name())
	}
	return strings.Join(names, " ")
}

// At every point of a rotation, one of the two files has the retired identity. A rotation
// that was begun is continued.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	first := loadKeys(t, dir).IdentityRecipients()[0]
	if resumed, err := snapshot.BeginRotation(dir, nil); err != nil || resumed {
		t.Fatalf("resumed %v, %v", resumed, err)
	}
	during := loadKeys(t, dir)
	second := during.IdentityRecipients()[0]
	if diff := cmp.Diff([]string{second, first}, during.IdentityRecipients()); diff != "" || !cmp.Equal(during.Recipients(), []string{second}) {
		t.Errorf("during it, seals to %q, opens (-want +got):\n%s", during.Recipients(), diff)
	}
	if resumed, err := snapshot.BeginRotation(dir, nil); err != nil || !resumed || !cmp.Equal(loadKeys(t, dir).IdentityRecipients(), during.IdentityRecipients()) {
		t.Errorf("again: resumed %v, %v", resumed, err)
	}
	if _, err := snapshot.BeginRotation(dir, newIdentity(t)); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), second) {
		t.Errorf("to another one meanwhile: %v, want config naming the one that was begun", err)
	}
	if err := snapshot.EndRotation(dir); err != nil {
		t.Fatal(err)
	}
	retired := snapshot.KeyConfig{Dir: dir, Source: "x", Identities: read(t, filepath.Join(dir, snapshot.RetiredFile))}
	if got := loadKeys(t, dir).IdentityRecipients(); !cmp.Equal(got, []string{second}) {
		t.Errorf("afterwards it opens %q", got)
	}
	third := newIdentity(t)
	if resumed, err := snapshot.BeginRotation(dir, third); err != nil || resumed {
		t.Fatalf("a second rotation: resumed %v, %v", resumed, err)
	}
	if resumed, err := snapshot.BeginRotation(dir, third); err != nil || !resumed {
		t.Errorf("to the same one: resumed %v, %v", resumed, err)
	}
	if err := snapshot.EndRotation(dir); err != nil {
		t.Fatal(err)
	}
	retired.Identities = read(t, filepath.Join(dir, snapshot.RetiredFile))
	if keys, err := snapshot.LoadKeys(retired); err != nil || !cmp.Equal(keys.IdentityRecipients(), []string{second, first}) {
		t.Errorf("retired are %q, %v", keys.IdentityRecipients(), err)
	}
	old, err := age.ParseX25519Identity(strings.Split(retired.Identities, "\n")[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.BeginRotation(dir, old); !fault.Is(err, fault.Config) {
		t.Errorf("back to a retired one: %v", err)
	}
	for _, name := range []string{"identity", snapshot.RetiredFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := snapshot.BeginRotation(t.TempDir(), nil); !fault.Is(err, fault.IdentityMissing) {
		t.Errorf("without an identity: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A node that writes and cannot read names the missing identity before it starts a
// restore. The same holds for sealed data in a session's record.
func TestWriteOnly(t *testing.T) {
	reader := newIdentity(t)
	keys := snapshot.NewKeys(nil, [32]byte{1}, reader.Recipient())
	v := vaultOf(memstore.New(0, time.Now), keys)
	s := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("x")}))
	sealed, err := v.Seal([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	_, unsealed := v.Unseal(sealed)
	for name, err := range map[string]error{"Readable": v.Readable(s), "Unseal": unsealed} {
		if !fault.Is(err, fault.IdentityMissing) || !strings.Contains(fault.MessageOf(err), reader.Recipient().String()) {
			t.Errorf("%s: %v, want identity_missing naming the recipient", name, err)
		}
	}
}
