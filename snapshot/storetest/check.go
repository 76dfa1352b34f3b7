package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// RunCheck damages stores in every way that a check distinguishes. It compares the
// findings of the check and the result of a repair. It also makes every nth call of a
// check fail, in the long form each one.
func RunCheck(t *testing.T, open Open, every int) {
	if everyCall() {
		every = 1
	}
	keys := testKeys(t)
	for _, test := range []struct {
		name   string
		damage func(*checkFixture)
		want   []string // kind and subject of each finding
		left   []string // the findings after the repair
	}{
		{"nothing", func(*checkFixture) {}, nil, nil},
		{"archive missing", func(c *checkFixture) { c.remove(c.archive(c.first)) }, []string{"archive_missing 1"}, []string{"archive_missing 1"}},
		{"archive of latest missing", func(c *checkFixture) { c.remove(c.archive(c.second)) },
			[]string{"archive_missing 2", "latest_damaged 2 repairable"}, []string{"archive_missing 2"}},
		{"archive cut off", func(c *checkFixture) { c.change(c.archive(c.first), func(b []byte) []byte { return b[:len(b)-1] }) },
			[]string{"archive_damaged 1"}, []string{"archive_damaged 1"}},
		{"archive with a flipped bit", func(c *checkFixture) { c.change(c.archive(c.second), flipLast) },
			[]string{"archive_damaged 2", "latest_damaged 2 repairable"}, []string{"archive_damaged 2"}},
		{"document with a flipped bit", func(c *checkFixture) { c.change(c.document(c.first), flipLast) },
			[]string{"document_damaged 1", "archive_orphaned"}, []string{"document_damaged 1", "archive_orphaned"}},
		{"document in another's place", func(c *checkFixture) { c.change(c.document(c.first), c.bytes(c.document(c.second))) },
			[]string{"document_damaged 1", "archive_orphaned"}, []string{"document_damaged 1", "archive_orphaned"}},
		// latest is the only complete copy left. The repair must not overwrite it, but put
		// it back.
		{"document of latest missing", func(c *checkFixture) { c.remove(c.document(c.second)) },
			[]string{"latest_damaged 2 repairable"}, nil},
		{"document of latest damaged", func(c *checkFixture) { c.change(c.document(c.second), flipLast) },
			[]string{"document_damaged 2", "latest_damaged 2 repairable"}, nil},
		{"document of a newer version", func(c *checkFixture) { c.change(c.document(c.first), newer) },
			[]string{"version_unknown 1", "archive_orphaned"}, []string{"version_unknown 1", "archive_orphaned"}},
		{"no latest", func(c *checkFixture) { c.remove(c.latest()) }, []string{"latest_missing repairable"}, nil},
		{"latest cut off", func(c *checkFixture) { c.change(c.latest(), func(b []byte) []byte { return b[:20] }) },
			[]string{"latest_damaged repairable"}, nil},
		{"latest of a newer version", func(c *checkFixture) { c.change(c.latest(), newer) },
			[]string{"version_unknown"}, []string{"version_unknown"}},
		{"an older latest", func(c *checkFixture) { c.change(c.latest(), c.bytes(c.document(c.first))) }, nil, nil},
		{"no manifest", func(c *checkFixture) { c.remove(c.manifest()) }, []string{"manifest_missing repairable"}, nil},
		{"empty manifest", func(c *checkFixture) { c.change(c.manifest(), func([]byte) []byte { return nil }) },
			[]string{"manifest_damaged repairable"}, nil},
		{"manifest of a newer version", func(c *checkFixture) { c.change(c.manifest(), newer) },
			[]string{"version_unknown"}, []string{"version_unknown"}},
		{"nothing whole", func(c *checkFixture) {
			c.remove(c.archive(c.first))
			c.remove(c.archive(c.second))
			c.remove(c.latest())
		}, []string{"archive_missing 1", "archive_missing 2", "latest_missing"}, []string{"archive_missing 1", "archive_missing 2", "latest_missing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCheckFixture(t, open(t), keys)
			test.damage(c)
			all := c.objects()
			found := c.check(snapshot.CheckOptions{ReadData: true})
			if diff := cmp.Diff(test.want, c.words(found)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(all, c.objects()); diff != "" {
				t.Errorf("the check wrote something:\n%s", diff)
			}
			for range 2 { // the repair is idempotent
				if err := c.vault.Repair(t.Context(), place, true); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.left, c.words(c.check(snapshot.CheckOptions{ReadData: true}))); diff != "" {
				t.Errorf("found after the repair (-want +got):\n%s", diff)
			}
			for key, body := range all {
				if strings.Contains(key, "archives/") && c.objects()[key] != body {
					t.Errorf("the repair touched %s", key)
				}
			}
			if err := c.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("faults", func(t *testing.T) { checkFaults(t, open, keys, every) })
	t.Run("without an identity", func(t *testing.T) { checkSealed(t, open) })
	t.Run("sealed to others", func(t *testing.T) { checkRewrapped(t, open) })
	t.Run("a save under way", func(t *testing.T) { checkDuringSave(t, open, keys) })
}

// checkFaults makes every nth call of a check fail in turn. Then the check fails, or reports
// one unreadable object of a valid store. It must not report anything as damaged or
// missing. Nor may it report an archive as certainly unused: a caller that removes such
// archives must not remove one whose document was not seen.
func checkFaults(t *testing.T, open Open, keys snapshot.Keys, every int) {
	for _, mode := range []faultstore.Mode{faultstore.Refuse, faultstore.Dead} {
		c := newCheckFixture(t, open(t), keys)
		store := faultstore.New(c.store)
		c.vault = snapshot.NewVault(store, keys, snapshot.Options{Now: time.Now})
		for n := 1 + int(mode)%every; ; n += every {
			boom := fault.New(fault.StoreFailed, "test", "planned")
			store.FailAt(n, mode, boom)
			var found []snapshot.Finding
			out, err := c.vault.Check(t.Context(), snapshot.CheckOptions{ReadData: true},
				func(f snapshot.Finding) error { found = append(found, f); return nil })
			if store.Calls() < n {
				break
			}
			if mode == faultstore.Dead && !fault.Is(err, fault.StoreFailed) {
				t.Errorf("call %d: a store that does not answer: %v", n, err)
			}
			if err == nil && len(found) == 0 {
				t.Errorf("call %d: an error was ignored", n)
			}
			for _, f := range found {
				doubted := f.Kind == snapshot.ArchiveOrphaned && out.Unclear > 0
				if f.Kind != snapshot.Unreadable && !doubted {
					t.Errorf("call %d: a fault is reported as %+v", n, f)
				}
			}
		}
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkSealed checks a store without the identity that opens it. The check reports
// damage, but it cannot verify archives down to the tar.
func checkSealed(t *testing.T, open Open) {
	identity := must[*age.X25519Identity](t)(age.GenerateX25519Identity())
	c := newCheckFixture(t, open(t), snapshot.NewKeys(identity, [32]byte{1}))
	c.change(c.archive(c.first), flipLast)
	c.vault = snapshot.NewVault(c.store, snapshot.NewKeys(nil, [32]byte{1}, identity.Recipient()), snapshot.Options{Now: time.Now})
	found := c.words(c.check(snapshot.CheckOptions{ReadData: true}))
	if diff := cmp.Diff([]string{"archive_damaged 1", "identity_missing 2"}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if err := c.store.Close(); err != nil {
		t.Error(err)
	}
}

// checkRewrapped gives an archive the longer header of one more recipient. A rotation
// that dies before it updates the document leaves the same state.
func checkRewrapped(t *testing.T, open Open) {
	identity, other := must[*age.X25519Identity](t)(age.GenerateX25519Identity()), must[*age.X25519Identity](t)(age.GenerateX25519Identity())
	c := newCheckFixture(t, open(t), snapshot.NewKeys(identity, [32]byte{1}))
	before := c.objects()
	c.vault = snapshot.NewVault(c.store, snapshot.NewKeys(identity, [32]byte{1}, other.Recipient()), snapshot.Options{Now: time.Now})
	must[snapshot.RewrapResult](t)(c.vault.Rewrap(t.Context(), snapshot.RewrapOptions{}))
	for _, key := range []snapshot.Key{c.document(c.first), c.document(c.second), c.latest()} {
		Put(t, c.store, key, []byte(before[key.String()]))
	}
	if len(c.objects()[c.archive(c.first).String()]) == len(before[c.archive(c.first).String()]) {
		t.Fatal("the archive was not rewrapped")
	}
	if found := c.check(snapshot.CheckOptions{ReadData: true}); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	if err := c.store.Close(); err != nil {
		t.Error(err)
	}
}

// checkDuringSave changes a store between the two looks of a check, like a save that is in
// progress at the first look.
func checkDuringSave(t *testing.T, open Open, keys snapshot.Keys) {
	c := newCheckFixture(t, open(t), keys)
	latest := content(t, c.store, c.latest())
	c.remove(c.latest())
	c.remove(c.archive(c.first)) // stays missing, and must be reported
	looks := &onSecondLook{Store: c.store, do: func() {
		must[bool](t)(c.store.Create(t.Context(), c.latest(), latest))
	}}
	c.vault = snapshot.NewVault(looks, keys, snapshot.Options{Now: time.Now})
	found := c.words(c.check(snapshot.CheckOptions{RecheckDelay: time.Nanosecond}))
	if diff := cmp.Diff([]string{"archive_missing 1"}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if err := c.store.Close(); err != nil {
		t.Error(err)
	}
}

// onSecondLook calls a function when the location is listed for the second time.
type onSecondLook struct {
	snapshot.Store
	do    func()
	lists int
}

func (o *onSecondLook) List(ctx context.Context, folder snapshot.Key, limit int, after string) ([]string, error) {
	if strings.HasSuffix(folder.String(), "/snapshots") {
		if o.lists++; o.lists == 2 {
			o.do()
		}
	}
	return o.Store.List(ctx, folder, limit, after)
}
