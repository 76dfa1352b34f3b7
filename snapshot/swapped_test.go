package snapshot_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// An attacker who may write to the store but has no keys cannot pass off one archive as
// another, even of the same owner. Nor can they combine two archives.
func TestSwappedArchives(t *testing.T) {
	v, store := newVault(t)
	a := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	b := save(t, v, draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
	keyA, sealedA := archiveOf(t, store, a)
	_, sealedB := archiveOf(t, store, b)
	at := func(file []byte) int { return bytes.Index(file, []byte("\n--- ")) + len("\n--- ") + 43 + 1 }
	join := func(head, payload []byte) []byte {
		return append(bytes.Clone(head[:at(head)]), payload[at(payload):]...)
	}
	for name, body := range map[string][]byte{
		"another's":                sealedB,
		"another's header":         join(sealedB, sealedA),
		"another's payload":        join(sealedA, sealedB),
		"a header, nothing behind": sealedA[:at(sealedA)],
	} {
		storetest.Put(t, store, keyA, body)
		if err := v.Verify(t.Context(), a); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: Verify: %v, want archive_damaged", name, err)
		}
		r, err := v.OpenSealed(t.Context(), a, []string{newIdentity(t).Recipient().String()})
		if err == nil {
			_, err = snapshot.PayloadSHA256(r)
		}
		// With another archive's header only, the payload is the right one. A reader that opens
		// the file finds that it does not decrypt.
		if name != "another's header" && !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: exported: %v, want archive_damaged", name, err)
		}
	}
	storetest.Put(t, store, keyA, sealedA)
	if err := v.Verify(t.Context(), a); err != nil {
		t.Error(err)
	}
}

// A document is valid only in its own location and under its own ID, wherever it is
// copied and whatever is written into it there.
func TestCopiedDocuments(t *testing.T) {
	v, store := newVault(t)
	save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	own, err := place.DocumentKey(id(1))
	_, body := stored(t, store, own, err)
	other := strings.Repeat("f", 32)
	for name, to := range map[string]struct {
		loc  snapshot.Location
		id   string
		with [2]string // old and new
	}{
		"another session": {snapshot.Location{Owner: place.Owner, Session: "s-2", Scope: place.Scope, ScopeID: place.ScopeID}, id(1), [2]string{`"s-1"`, `"s-2"`}},
		"another owner":   {snapshot.Location{Owner: other, Session: place.Session, Scope: place.Scope, ScopeID: place.ScopeID}, id(1), [2]string{place.Owner, other}},
		"another scope":   {snapshot.Location{Owner: place.Owner, Session: place.Session, Scope: "multiAgent", ScopeID: place.ScopeID}, id(1), [2]string{`"agent"`, `"multiAgent"`}},
		"another ID":      {place, id(9), [2]string{id(1), id(9)}},
	} {
		key, err := to.loc.DocumentKey(to.id)
		if err != nil {
			t.Fatal(err)
		}
		for how, copied := range map[string][]byte{"unchanged": body, "fitted": bytes.ReplaceAll(body, []byte(to.with[0]), []byte(to.with[1]))} {
			storetest.Put(t, store, key, copied)
			if _, err := v.Open(t.Context(), to.loc, to.id); !fault.Is(err, fault.ArchiveDamaged) {
				t.Errorf("%s, %s: %v, want archive_damaged", name, how, err)
			}
		}
	}
}

// A sealed part belongs to one document, and to one field in it. An unsealed appData is
// invalid. A MAC would reveal the changes too, so these documents have none.
func TestSwappedSealedParts(t *testing.T) {
	v, store := newVault(t)
	for n := range 2 {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: []byte("a")}))
	}
	var docs [2]map[string]any
	for n := range docs {
		key, err := place.DocumentKey(id(n))
		_, body := stored(t, store, key, err)
		if err := json.Unmarshal(body, &docs[n]); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "call the bank") {
			t.Fatal("the document has its appData unencrypted")
		}
		delete(docs[n]["data"].(map[string]any), "mac")
	}
	own, foreign := docs[0]["data"].(map[string]any)["sealed"], docs[1]["appData"]
	key, err := place.DocumentKey(id(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		appData any
		good    bool
	}{
		{docs[0]["appData"], true}, {map[string]any{}, true}, {map[string]any{"sealed": own}, false}, {foreign, false},
		{map[string]any{"sealed": "AAAA"}, false}, {map[string]any{"notes": "x"}, false}, {[]any{}, false}, {"x", false},
	} {
		docs[0]["appData"] = x.appData
		body, err := json.Marshal(docs[0])
		if err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, store, key, body)
		if _, err := v.Open(t.Context(), place, id(0)); x.good != (err == nil) || !x.good && !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%v: %v", x.appData, err)
		}
	}
}

// One replay cannot be detected: an attacker puts back an older document of the location
// as latest. It opens as the older snapshot, with its own ID. The catalogue knows which
// snapshot is wanted, and no restore reads latest.
func TestReplayedLatest(t *testing.T) {
	v, store := newVault(t)
	save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	save(t, v, draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
	older, err := place.DocumentKey(id(1))
	_, body := stored(t, store, older, err)
	latest, err := place.LatestKey()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, latest, body)
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(1) {
		t.Errorf("latest: %q, %v", s.ID, err)
	}
	if s, err := v.Open(t.Context(), place, id(2)); err != nil || v.Verify(t.Context(), s) != nil {
		t.Errorf("the newer one: %v", err)
	}
	// Under the newer snapshot's name the older document is refused.
	newer, err := place.DocumentKey(id(2))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, newer, body)
	if _, err := v.Open(t.Context(), place, id(2)); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("the older one under its name: %v", err)
	}
}
