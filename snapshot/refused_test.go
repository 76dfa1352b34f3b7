package snapshot_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// Data of a newer version is refused by name, and neither overwritten nor deleted.
func TestFutureVersion(t *testing.T) {
	for name, key := range map[string]func() (snapshot.Key, error){
		"manifest": place.ManifestKey,
		"document": func() (snapshot.Key, error) { return place.DocumentKey(id(1)) },
		"latest":   place.LatestKey,
	} {
		v, store := newVault(t)
		save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
		k, err := key()
		k, body := stored(t, store, k, err)
		future := bytes.Replace(body, []byte(`"1.0"`), []byte(`"2.3"`), 1)
		storetest.Put(t, store, k, future)
		calls := map[string]error{}
		switch name {
		case "manifest":
			_, calls["Save"] = v.Save(t.Context(), draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
		case "document":
			_, calls["Open"] = v.Open(t.Context(), place, id(1))
			calls["Delete"] = v.Delete(t.Context(), place, id(1), storetest.NotInUse)
		case "latest":
			_, calls["Latest"] = v.Latest(t.Context(), place)
		}
		for call, err := range calls {
			if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.MessageOf(err), `"2.3"`) {
				t.Errorf("%s: %s: %v, want unsupported naming the version", name, call, err)
			}
		}
		if _, now := stored(t, store, k, nil); !bytes.Equal(now, future) {
			t.Errorf("%s: it became %q", name, now)
		}
		if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 9, ""); err != nil || len(names) != 1 {
			t.Errorf("%s: archives %q, %v", name, names, err)
		}
	}
}

// An invalid ID never becomes a path, in any method and at any position.
func TestBadIDs(t *testing.T) {
	v, _ := newVault(t)
	for _, bad := range []string{
		"", ".", "..", "../x", "a/b", "/", "A", "aA", "é", "a b", "s\n", "a\x00", "latest.json", "*", strings.Repeat("a", 300), strings.Repeat("0", 129),
	} {
		for name, in := range map[string]snapshot.Location{
			"owner":    {Owner: bad, Session: place.Session, Scope: place.Scope, ScopeID: place.ScopeID},
			"session":  {Owner: place.Owner, Session: bad, Scope: place.Scope, ScopeID: place.ScopeID},
			"scope":    {Owner: place.Owner, Session: place.Session, Scope: bad, ScopeID: place.ScopeID},
			"scope ID": {Owner: place.Owner, Session: place.Session, Scope: place.Scope, ScopeID: bad},
		} {
			d := draft(1)
			d.Location = in
			_, saved := v.Save(t.Context(), d)
			_, opened := v.Open(t.Context(), in, id(1))
			_, latest := v.Latest(t.Context(), in)
			_, _, listed := v.List(t.Context(), in, 0, "")
			_, manifest := in.ManifestKey()
			for call, err := range map[string]error{
				"Save": saved, "Open": opened, "Latest": latest, "List": listed, "Delete": v.Delete(t.Context(), in, id(1), storetest.NotInUse),
				"ManifestKey": manifest, "Check": in.Check(),
			} {
				if !fault.Is(err, fault.InvalidField) || len(bad) > 3 && strings.Contains(fault.MessageOf(err), bad) {
					t.Errorf("%s %q: %s: %v", name, bad, call, err)
				}
			}
		}
		d := draft(1)
		d.ID = bad
		_, saved := v.Save(t.Context(), d)
		_, opened := v.Open(t.Context(), place, bad)
		_, archive := snapshot.ArchiveKey(bad)
		errs := map[string]error{"Save": saved, "Open": opened, "ArchiveKey": archive, "Delete": v.Delete(t.Context(), place, bad, storetest.NotInUse)}
		if bad != "" { // "" lists from the start
			_, _, errs["List"] = v.List(t.Context(), place, 0, bad)
		}
		for call, err := range errs {
			if !fault.Is(err, fault.InvalidField) {
				t.Errorf("%s of %q: %v", call, bad, err)
			}
		}
	}
	for _, bad := range []string{strings.Repeat("0", 36), id(1) + "/", strings.ToUpper("01900000-0000-7000-8000-00000000000a"), id(1)[1:]} {
		if _, err := v.Open(t.Context(), place, bad); !fault.Is(err, fault.InvalidField) {
			t.Errorf("Open %q: %v", bad, err)
		}
	}
}
