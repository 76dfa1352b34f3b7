package snapshot_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// Save accepts a document only if the SDK could load it again. The error names the field.
func TestAgentDocumentForm(t *testing.T) {
	const valid = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{},"appData":{}}`
	with := func(old, new string) string { return strings.Replace(valid, old, new, 1) }
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	store := memstore.New(0, time.Now)
	d := snapshot.NewDocuments(store, snapshot.Options{Now: time.Now})
	at := snapshot.Location{Owner: strings.Repeat("0", 32), Session: "default-session", Scope: "agent", ScopeID: "agent"}

	for _, body := range []string{
		valid, with(`"data":{}`, `"data":{"a":1,"A":[{"a":null}],"":"\ud83d"}`), "\n " + valid + "\n",
		with(`.908Z`, `+01:00`), with(`"data":{}`, `"data":`+deep(900)),
	} {
		if err := d.Save(t.Context(), at, snapshot.LatestID, []byte(body), false); err != nil {
			t.Errorf("%.80s: %v", body, err)
		}
		if got, err := d.Load(t.Context(), at, snapshot.LatestID); err != nil || string(got) != body {
			t.Errorf("%.80s: loaded as %.80s, %v", body, got, err)
		}
	}

	if err := d.Delete(t.Context(), at, snapshot.LatestID); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		body  string
		code  fault.Code
		names string
	}{
		{"", fault.InvalidRequest, "JSON object"},
		{"null", fault.InvalidRequest, "JSON object"},
		{"[" + valid + "]", fault.InvalidRequest, "JSON object"},
		{valid + valid, fault.InvalidRequest, "JSON object"},
		{with(`"data":{}`, "\"data\":{\"a\":\"\xff\"}"), fault.InvalidRequest, "UTF-8"},
		{with(`"data":{}`, `"data":{"a":1,"a":2}`), fault.InvalidRequest, "a name occurs twice"},
		{with(`"data":{}`, `"data":{},"data":{}`), fault.InvalidRequest, "a name occurs twice"},
		{with(`"data":{}`, `"data":`+deep(1000)), fault.InvalidRequest, "nested too deep"},
		{deep(2_000_000), fault.InvalidRequest, "JSON object"},
		{with(`"1.0"`, `"2.0"`), fault.Unsupported, `schemaVersion: "2.0" is not known`},
		{with(`"1.0"`, `1`), fault.Unsupported, "schemaVersion: 1 is not known"},
		{with(`"schemaVersion":"1.0",`, ""), fault.InvalidField, "schemaVersion: is required"},
		{with(`"scope"`, `"Scope"`), fault.UnknownField, `"Scope"`},
		{with(`"data"`, `"more":1,"data"`), fault.UnknownField, `"more"`},
		{with(`"agent"`, `"multiAgent"`), fault.InvalidField, `scope: must be "agent"`},
		{with(`"agent"`, `null`), fault.InvalidField, "scope: must be"},
		{with(`2026-11-22T`, `22.11.2026 `), fault.InvalidField, "createdAt: must be an RFC 3339 time"},
		{with(`"data":{}`, `"data":[]`), fault.InvalidField, "data: must be an object"},
		{with(`"appData":{}`, `"appData":null`), fault.InvalidField, "appData: must be an object"},
		{with(`,"appData":{}`, ``), fault.InvalidField, "appData: is required"},
		{strings.Repeat(" ", snapshot.MaxAgentDocument-len(valid)+1) + valid, fault.TooLarge, "16777216 bytes"},
	} {
		err := d.Save(t.Context(), at, "01900000-0000-7000-8000-000000000001", []byte(test.body), true)
		if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.names) {
			t.Errorf("%.120q: %v, want %s with %q", test.body, err, test.code, test.names)
		}
	}
	for body, code := range map[string]fault.Code{
		`{}`: fault.InvalidField, `{"schemaVersion":"1.1","updatedAt":"2026-11-22T04:34:40Z"}`: fault.Unsupported,
		`{"schemaVersion":"1.0","updatedAt":"now"}`:                              fault.InvalidField,
		`{"schemaVersion":"1.0","updatedAt":"2026-11-22T04:34:40Z","latest":""}`: fault.UnknownField,
		strings.Repeat(" ", 64<<10) + `{}`:                                       fault.TooLarge,
	} {
		if err := d.SaveManifest(t.Context(), at, []byte(body)); !fault.Is(err, code) {
			t.Errorf("manifest %.80q: %v, want %s", body, err, code)
		}
	}
	if left, err := snapshot.Locations(t.Context(), store); err != nil || len(left) > 0 {
		t.Errorf("something was written: %v, %v", left, err)
	}
}

// Documents do not use the space reserved for the daemon's own snapshots.
func TestDocumentsKeepReserve(t *testing.T) {
	d := snapshot.NewDocuments(memstore.New(1<<20, time.Now), snapshot.Options{Now: time.Now, Reserve: 1<<20 - 300})
	at := snapshot.Location{Owner: strings.Repeat("0", 32), Session: "s", Scope: "agent", ScopeID: "agent"}
	body := func(n int) []byte {
		return []byte(`{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40Z","appData":{},"data":{"a":"` +
			strings.Repeat("x", n) + `"}}`)
	}
	if err := d.Save(t.Context(), at, snapshot.LatestID, body(300), false); !fault.Is(err, fault.StoreFull) {
		t.Errorf("into the reserve: %v", err)
	}
	if err := d.Save(t.Context(), at, snapshot.LatestID, body(100), false); err != nil {
		t.Error(err)
	}
}

// No body makes the parser panic or fail without a code. A saved body is loaded
// unchanged.
func FuzzAgentDocument(f *testing.F) {
	f.Add([]byte(`{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{"a":[{"A":null}]},"appData":{}}`))
	f.Add([]byte(`{"scope":"agent","schemaVersion":"2"}`))
	f.Add([]byte(`{"data":{"":1,"":2}} {}`))
	f.Add([]byte(strings.Repeat(`{"a":[`, 20_000)))
	codes := []fault.Code{fault.InvalidRequest, fault.InvalidField, fault.UnknownField, fault.Unsupported, fault.TooLarge}
	at := snapshot.Location{Owner: strings.Repeat("0", 32), Session: "s", Scope: "agent", ScopeID: "agent"}
	f.Fuzz(func(t *testing.T, body []byte) {
		d := snapshot.NewDocuments(memstore.New(0, time.Now), snapshot.Options{Now: time.Now})
		if err := d.Save(t.Context(), at, snapshot.LatestID, body, false); err != nil {
			if !slices.Contains(codes, fault.CodeOf(err)) {
				t.Errorf("an error without its code: %v", err)
			}
			return
		}
		got, err := d.Load(t.Context(), at, snapshot.LatestID)
		if err != nil || !bytes.Equal(got, body) || !json.Valid(body) {
			t.Errorf("saved, but loaded as %q, %v", got, err)
		}
	})
}
