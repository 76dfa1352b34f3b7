package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// RunDocuments checks the behaviour of agent documents over stores that open creates, and
// what remains when a single call of the store fails: every nth, in the long form each.
func RunDocuments(t *testing.T, open Open, every int) {
	if everyCall() {
		every = 1
	}
	tests := []struct {
		name string
		run  func(*testing.T, snapshot.Store, *snapshot.Documents)
	}{
		{"kept once", savedOnce}, {"pages", pages}, {"manifest", manifest}, {"deleted", deleted},
		{"not ours", refusesReserved}, {"damaged", damagedDocuments}, {"race", documentRace}, {"latest race", latestRace},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, s, documents(s))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, mode := range []faultstore.Mode{faultstore.Refuse, faultstore.Lose, faultstore.Dead} {
		t.Run(fmt.Sprintf("faults %d", mode), func(t *testing.T) { documentFaults(t, open, mode, every) })
	}
}

func documents(s snapshot.Store) *snapshot.Documents {
	return snapshot.NewDocuments(s, snapshot.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Reserve: 1})
}

// desk is an agent's location.
var desk = snapshot.Location{Owner: place.Owner, Session: place.Session, Scope: "agent", ScopeID: "desk"}

// agentDocument returns an agent document with the given text.
func agentDocument(words string) []byte {
	return fmt.Appendf(nil, `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z",`+
		`"data":{"messages":[{"role":"user","content":[{"text":%q}]}],"a":1,"A":2},"appData":{}}`, words)
}

func save(t *testing.T, d *snapshot.Documents, id, words string, latest bool) {
	t.Helper()
	if err := d.Save(t.Context(), desk, id, agentDocument(words), latest); err != nil {
		t.Fatal(err)
	}
}

func wantDocument(t *testing.T, d *snapshot.Documents, id, words string) {
	t.Helper()
	body, err := d.Load(t.Context(), desk, id)
	if words == "" {
		if !fault.Is(err, fault.SnapshotNotFound) {
			t.Errorf("%s: %s, %v; want none", id, body, err)
		}
		return
	}
	if err != nil || string(body) != string(agentDocument(words)) {
		t.Errorf("%s: %.200s, %v; want %q", id, body, err, words)
	}
}

func savedOnce(t *testing.T, _ snapshot.Store, d *snapshot.Documents) {
	wantDocument(t, d, snapshot.LatestID, "")
	wantDocument(t, d, id(1), "")
	save(t, d, id(1), "one", false)
	wantDocument(t, d, snapshot.LatestID, "") // an immutable document alone does not become latest
	save(t, d, snapshot.LatestID, "now", false)
	save(t, d, id(2), "two", true)
	wantDocument(t, d, snapshot.LatestID, "two")
	save(t, d, id(2), "two", false) // the same document again
	err := d.Save(t.Context(), desk, id(1), agentDocument("other"), true)
	if !fault.Is(err, fault.SnapshotExists) {
		t.Errorf("a different document under the same ID: %v, want snapshot_exists", err)
	}
	wantDocument(t, d, id(1), "one")
	wantDocument(t, d, snapshot.LatestID, "two")
	save(t, d, snapshot.LatestID, "later", true)
	wantDocument(t, d, snapshot.LatestID, "later")
	wantDocument(t, d, id(2), "two")
}

func pages(t *testing.T, _ snapshot.Store, d *snapshot.Documents) {
	for _, n := range []int{3, 1, 5, 2, 4} {
		save(t, d, id(n), "x", n == 5)
	}
	const random, named = "3f2c1b0a-0000-4000-8000-000000000001", "90000000-0000-5000-f000-000000000001" // of other versions
	save(t, d, random, "random", false)
	save(t, d, named, "named", false)
	wantDocument(t, d, random, "random")
	var got [][]string
	for after := ""; ; {
		ids, next, err := d.List(t.Context(), desk, 2, after)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ids)
		if after = next; after == "" {
			break
		}
	}
	if diff := cmp.Diff([][]string{{id(1), id(2)}, {id(3), id(4)}, {id(5), random}, {named}}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func manifest(t *testing.T, _ snapshot.Store, d *snapshot.Documents) {
	want := func(manifest string) {
		t.Helper()
		if got := must[[]byte](t)(d.Manifest(t.Context(), desk)); string(got) != manifest {
			t.Errorf("manifest %s, want %s", got, manifest)
		}
	}
	want(`{"schemaVersion":"1.0","updatedAt":"2027-01-15T08:00:00.000Z"}`)
	for _, day := range []string{"01", "02"} {
		saved := `{"updatedAt":"2026-11-` + day + `T00:00:00.000Z","schemaVersion":"1.0"}`
		if err := d.SaveManifest(t.Context(), desk, []byte(saved)); err != nil {
			t.Fatal(err)
		}
		want(saved)
	}
}

func deleted(t *testing.T, s snapshot.Store, d *snapshot.Documents) {
	save(t, d, id(1), "one", true)
	save(t, d, id(2), "two", false)
	if err := d.Delete(t.Context(), desk, id(1)); err != nil {
		t.Fatal(err)
	}
	wantDocument(t, d, id(1), "")
	wantDocument(t, d, id(2), "two")
	wantDocument(t, d, snapshot.LatestID, "one") // latest is a document in its own right
	for _, missing := range []string{id(1), id(9)} {
		if err := d.Delete(t.Context(), desk, missing); !fault.Is(err, fault.SnapshotNotFound) {
			t.Errorf("Delete of a missing one: %v", err)
		}
	}

	notes, other := desk, desk
	notes.ScopeID, other.Session = "notes", "s-2"
	kept := []snapshot.Key{must[snapshot.Key](t)(place.LatestKey()), must[snapshot.Key](t)(place.DocumentKey(id(1))),
		must[snapshot.Key](t)(notes.ManifestKey()), must[snapshot.Key](t)(other.LatestKey())}
	for _, key := range kept {
		Put(t, s, key, []byte("kept"))
	}
	team := desk
	team.Scope = "multiAgent"
	body := strings.Replace(string(agentDocument("team")), `"agent"`, `"multiAgent"`, 1)
	if err := d.Save(t.Context(), team, id(3), []byte(body), true); err != nil {
		t.Fatal(err)
	}
	if err := d.SaveManifest(t.Context(), desk, []byte(`{"schemaVersion":"1.0","updatedAt":"2026-11-22T00:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.DeleteSession(t.Context(), desk.Owner, desk.Session); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range kept {
		wantContent(t, s, key, "kept")
	}
	left := must[[]snapshot.Location](t)(snapshot.Locations(t.Context(), s))
	if diff := cmp.Diff([]snapshot.Location{place, notes, other}, left); diff != "" {
		t.Errorf("locations left (-want +got):\n%s", diff)
	}
}

// refusesReserved checks that no method reaches Stasis's own snapshots or leaves the store.
func refusesReserved(t *testing.T, s snapshot.Store, d *snapshot.Documents) {
	Put(t, s, must[snapshot.Key](t)(place.LatestKey()), agentDocument("a browser's"))
	long := strings.Repeat("x", 300)
	with := func(change func(*snapshot.Location)) snapshot.Location { l := desk; change(&l); return l }
	for _, test := range []struct {
		at   snapshot.Location
		id   string
		code fault.Code
		name string
	}{
		{place, snapshot.LatestID, fault.ScopeReserved, "scope_id"},
		{with(func(l *snapshot.Location) { l.ScopeID = "notes"; l.Scope = "multiAgent" }), id(1), fault.ScopeReserved, "scope_id"},
		{with(func(l *snapshot.Location) { l.Session = ".." }), id(1), fault.InvalidField, "session_id"},
		{with(func(l *snapshot.Location) { l.Session = long }), id(1), fault.InvalidField, "session_id"},
		{with(func(l *snapshot.Location) { l.Scope = "user" }), id(1), fault.InvalidField, "scope"},
		{with(func(l *snapshot.Location) { l.ScopeID = "a/b" }), id(1), fault.InvalidField, "scope_id"},
		{with(func(l *snapshot.Location) { l.ScopeID = "Desk" }), id(1), fault.InvalidField, "scope_id"},
		{desk, "../snapshot_latest", fault.InvalidField, "snapshot_id"},
		{desk, strings.ToUpper(id(0xa)), fault.InvalidField, "snapshot_id"},
		{desk, "00000000-0000-4000-8000-00000000001", fault.InvalidField, "snapshot_id"}, // too short
		{desk, long, fault.InvalidField, "snapshot_id"},
	} {
		body := []byte(strings.Replace(string(agentDocument("x")), `"agent"`, fmt.Sprintf("%q", test.at.Scope), 1))
		_, loaded := d.Load(t.Context(), test.at, test.id)
		errs := map[string]error{"Save": d.Save(t.Context(), test.at, test.id, body, true), "Load": loaded, "Delete": d.Delete(t.Context(), test.at, test.id)}
		if test.name != "snapshot_id" {
			_, _, errs["List"] = d.List(t.Context(), test.at, 1, "")
			_, errs["Manifest"] = d.Manifest(t.Context(), test.at)
			errs["SaveManifest"] = d.SaveManifest(t.Context(), test.at, []byte(`{"schemaVersion":"1.0","updatedAt":"2026-11-22T00:00:00Z"}`))
		}
		for call, err := range errs {
			if !fault.Is(err, test.code) || !strings.HasPrefix(fault.MessageOf(err), test.name+": ") {
				t.Errorf("%s at %+v, %.40s: %v, want %s naming %s", call, test.at, test.id, err, test.code, test.name)
			}
		}
	}
	if err := d.DeleteSession(t.Context(), desk.Owner, ".."); !fault.Is(err, fault.InvalidField) {
		t.Errorf("DeleteSession: %v", err)
	}
	wantContent(t, s, must[snapshot.Key](t)(place.LatestKey()), string(agentDocument("a browser's")))
	left := must[[]snapshot.Location](t)(snapshot.Locations(t.Context(), s))
	if diff := cmp.Diff([]snapshot.Location{place}, left); diff != "" {
		t.Errorf("something was written (-want +got):\n%s", diff)
	}
}

// damagedDocuments checks that an invalid agent document is not returned.
func damagedDocuments(t *testing.T, s snapshot.Store, d *snapshot.Documents) {
	key := must[snapshot.Key](t)(desk.LatestKey())
	valid := string(agentDocument("x"))
	for body, code := range map[string]fault.Code{
		"": fault.ArchiveDamaged, valid[:len(valid)-1]: fault.ArchiveDamaged, valid + "{}": fault.ArchiveDamaged,
		strings.Replace(valid, `"agent"`, `"multiAgent"`, 1): fault.ArchiveDamaged,
		strings.Replace(valid, `"1.0"`, `"1.1"`, 1):          fault.Unsupported,
	} {
		Put(t, s, key, []byte(body))
		if _, err := d.Load(t.Context(), desk, snapshot.LatestID); !fault.Is(err, code) {
			t.Errorf("%.80q: %v, want %s", body, err, code)
		}
	}
	save(t, d, snapshot.LatestID, "sound again", false)
	wantDocument(t, d, snapshot.LatestID, "sound again")
}
