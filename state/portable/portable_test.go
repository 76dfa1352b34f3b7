package portable_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/portable"
)

// fullDocument returns a document with something of each kind.
func fullDocument() state.Document {
	path := "id"
	return state.Document{SchemaVersion: state.SchemaVersion, Datadir: state.DatadirNone, Complete: true,
		Cookies: []state.Cookie{
			{Name: "sid", Value: "a=b c", Domain: "a.example", Path: "/", Expires: -1, Session: true, HTTPOnly: true, Secure: true, SameSite: "Lax"},
			{Name: "wide", Value: "", Domain: ".a.example", Path: "/p", Expires: 1893456000.5, SameSite: "None", Secure: true},
			{Name: "chip", Value: "v", Domain: "b.example", Path: "/", Expires: 1893456000, Secure: true, SameSite: "None",
				Partition: &state.PartitionKey{TopLevelSite: "https://a.example", HasCrossSiteAncestor: true}},
		},
		Local: []state.Area{{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "ü\u2028"}, {Key: "", Value: ""}}}},
		Tabs:  []state.Tab{},
		IndexedDB: []state.Databases{{Origin: "https://a.example", Databases: []state.Database{{Name: "db", Version: 3, Stores: []state.Store{
			{Name: "inline", AutoIncrement: true, KeyPath: &path, Records: []state.Record{{Value: json.RawMessage(`{"id":1}`)}},
				Indexes: []state.Index{{Name: "by", KeyPathArray: []string{"a", "b"}, Unique: true}}},
			{Name: "outline", Records: []state.Record{{KeyEncoded: json.RawMessage(`{"d":"2026-01-01T00:00:00.000Z"}`), Value: json.RawMessage(`null`)}},
				Indexes: []state.Index{}},
		}}}}},
	}
}

// equal compares as JSON, so that white space and nil lists do not matter.
func equal(t *testing.T, want, got any) {
	t.Helper()
	text := func(v any) string {
		raw, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlaywrightRoundTrip(t *testing.T) {
	raw, lost := portable.Playwright(fullDocument())
	equal(t, []portable.Loss{{Component: "indexed_db_counter", Origin: "https://a.example", Count: 1,
		Reason: "the counter of an auto-increment store continues from its highest key"}}, lost)
	doc, lost, err := portable.ReadPlaywright(raw)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []portable.Loss{}, lost)
	equal(t, fullDocument(), doc)
}

func TestPuppeteerRoundTrip(t *testing.T) {
	want := fullDocument()
	want.Cookies[0].Priority, want.Cookies[0].SourceScheme, want.Cookies[0].SourcePort = "High", "Secure", 8443
	raw, lost := portable.Puppeteer(want)
	equal(t, []portable.Loss{
		{Component: "local_storage", Origin: "https://a.example/", Count: 2, Reason: "the format has cookies only"},
		{Component: "indexed_db", Origin: "https://a.example", Count: 2, Reason: "the format has cookies only"},
	}, lost)
	doc, lost, err := portable.ReadPuppeteer(raw)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []portable.Loss{}, lost)
	equal(t, want.Cookies, doc.Cookies)
}

func TestNetscapeRoundTrip(t *testing.T) {
	raw, lost := portable.Netscape(fullDocument())
	const file = "# Netscape HTTP Cookie File\n" +
		"#HttpOnly_a.example\tFALSE\t/\tTRUE\t0\tsid\ta=b c\n" +
		".a.example\tTRUE\t/p\tTRUE\t1893456001\twide\t\n"
	if string(raw) != file {
		t.Errorf("%q", raw)
	}
	equal(t, []portable.Loss{
		{Component: "cookie_same_site", Count: 2, Reason: "the format has no SameSite"},
		{Component: "cookies", Origin: "b.example", Count: 1, Reason: "the format has no partitioned cookies"},
		{Component: "local_storage", Origin: "https://a.example/", Count: 2, Reason: "the format has cookies only"},
		{Component: "indexed_db", Origin: "https://a.example", Count: 2, Reason: "the format has cookies only"},
	}, lost)
	doc, _, err := portable.ReadNetscape(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := fullDocument().Cookies[:2]
	want[0].SameSite, want[1].SameSite, want[1].Expires = "", "", 1893456001
	equal(t, want, doc.Cookies)
}

// Everything that only tabs have, or that the formats cannot hold, is named.
func TestLosses(t *testing.T) {
	doc := state.Document{
		Cookies: []state.Cookie{
			{Name: "unsaid", Domain: "a.example", Path: "/", Session: true, Priority: "High", SourceScheme: "Secure"},
			{Name: "opaque", Domain: "a.example", Path: "/", Session: true, Opaque: true},
			{Name: "tab", Value: "a\tb", Domain: "a.example", Path: "/", Session: true},
			{Value: "nameless", Domain: "a.example", Path: "/", Session: true},
		},
		Local: []state.Area{{StorageKey: "https://f.example/^0https://a.example", Items: []state.Item{{}}}},
		Tabs: []state.Tab{{Name: "w", History: make([]state.HistoryEntry, 3),
			Session: []state.Area{{StorageKey: "https://a.example/", Items: []state.Item{{}, {}}}}}},
	}
	tabs := []portable.Loss{
		{Component: "tabs", Count: 1, Reason: "the format has no tabs"},
		{Component: "tab_history", Count: 2, Reason: "the format has no tabs"},
		{Component: "window_name", Count: 1, Reason: "the format has no tabs"},
		{Component: "session_storage", Origin: "https://a.example/", Count: 2, Reason: "the format has no tabs"},
	}
	_, lost := portable.Playwright(doc)
	equal(t, append([]portable.Loss{
		{Component: "cookie_same_site", Count: 3, Reason: "SameSite is written as Lax because the site did not set it"},
		{Component: "cookie_priority", Count: 1, Reason: "the format has no priority"},
		{Component: "cookie_source", Count: 1, Reason: "the format does not say that the cookie came over https"},
		{Component: "cookies", Origin: "a.example", Count: 1, Reason: "its partition has no name"},
		{Component: "local_storage", Origin: "https://f.example/^0https://a.example", Count: 1,
			Reason: "the format has no storage of frames below another site"},
	}, tabs...), lost)
	_, lost = portable.Netscape(doc)
	equal(t, append([]portable.Loss{
		{Component: "cookie_priority", Count: 1, Reason: "the format has no priority"},
		{Component: "cookie_source", Count: 1, Reason: "the format does not say that the cookie came over https"},
		{Component: "cookies", Origin: "a.example", Count: 1, Reason: "the format has no partitioned cookies"},
		{Component: "cookies", Origin: "a.example", Count: 1, Reason: "it contains a tab, a line break or a null character"},
		{Component: "cookies", Origin: "a.example", Count: 1, Reason: "the format has no cookies without a name"},
		{Component: "local_storage", Origin: "https://f.example/^0https://a.example", Count: 1, Reason: "the format has cookies only"},
	}, tabs...), lost)
}

// A misspelt field is reported with its path and, if the object lacks it, with the field that
// was meant. A misspelt part of the file has its own component.
func TestMisspeltFields(t *testing.T) {
	_, lost, err := portable.ReadPlaywright([]byte(`{"cokies":[],"origins":[{"origin":"https://a.example","localstorage":[]},{"origin":"https://b.example",
		"localStorage":[{"name":"k","value":"v","names":1}],"localstorage":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []portable.Loss{
		{Component: "unknown_field", Count: 1, Reason: `the format has no field "$.origins[].localstorage": did you mean localStorage?`},
		{Component: "unknown_field", Count: 1, Reason: `the format has no field "$.origins[].localStorage[].names"`},
		{Component: "unknown_field", Count: 1, Reason: `the format has no field "$.origins[].localstorage"`},
		{Component: "misspelt_part", Count: 1, Reason: `the format has no field "$.cokies": did you mean cookies?`},
	}, lost)
	_, lost, err = portable.ReadPuppeteer([]byte(`[{"name":"a","value":"v","domain":"a.example","httponly":true},{"name":"b","value":"v","domain":"a.example","httponly":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []portable.Loss{{Component: "unknown_field", Count: 2, Reason: `the format has no field "$[].httponly": did you mean httpOnly?`}}, lost)
}

// Dialects: fields that real tools omit or add.
func TestDialects(t *testing.T) {
	doc, lost, err := portable.ReadPlaywright([]byte(`{"cookies":[{"name":"n","value":"v","url":"https://a.example/x","more":1}],
		"origins":[{"origin":"https://A.example:8443","localStorage":[{"name":"k","value":"v"}],"opfs":[{"path":"f","type":"file"}]}],
		"credentials":[{}],"extra":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []state.Cookie{{Name: "n", Value: "v", Domain: "a.example", Path: "/", Expires: -1, Session: true, Secure: true}}, doc.Cookies)
	equal(t, "https://a.example:8443/", doc.Local[0].StorageKey)
	equal(t, []portable.Loss{
		{Component: "unknown_field", Count: 1, Reason: `the format has no field "$.cookies[].more"`},
		{Component: "opfs", Origin: "https://a.example:8443", Count: 1, Reason: "files of the origin's private file system are not imported"},
		{Component: "passkeys", Count: 1, Reason: "credentials are not imported"},
		{Component: "unknown_field", Count: 1, Reason: `the format has no field "$.extra"`},
	}, lost)

	doc, lost, err = portable.ReadPuppeteer([]byte(`[{"name":"n","value":"v","domain":"a.example","sameSite":"Default","secure":true,"partitionKey":"https://www.t.example:8443",
		"size":2,"session":true,"sameParty":false},{"name":"o","value":"v","domain":"a.example","partitionKeyOpaque":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []state.Cookie{{Name: "n", Value: "v", Domain: "a.example", Path: "/", Expires: -1, Session: true, Secure: true,
		Partition: &state.PartitionKey{TopLevelSite: "https://t.example"}}}, doc.Cookies)
	equal(t, []portable.Loss{{Component: "cookies", Origin: "a.example", Count: 1, Reason: "its partition has no name that can be set"}}, lost)

	doc, _, err = portable.ReadNetscape([]byte("# a comment\r\n\r\n.a.example\tFALSE\t/\tfalse\t0\tn\r\nb.example\tTRUE\t/\tTRUE\t1\tm\tv"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []state.Cookie{
		{Name: "n", Domain: "a.example", Path: "/", Expires: -1, Session: true},
		{Name: "m", Value: "v", Domain: ".b.example", Path: "/", Expires: 1, Secure: true},
	}, doc.Cookies)
}

// A cookie that no Chrome accepts is dropped and named. The other cookies are read, and
// written as Chrome writes them.
func TestOddCookies(t *testing.T) {
	const good = `{"name":"good","value":"v","domain":"a.example"}`
	for odd, want := range map[string]string{
		`{"name":"n","value":"v","domain":"A.Example","sameSite":"None"}`:                                                              "SameSite=None without Secure",
		`{"name":"__Host-n","value":"v","domain":".a.example","secure":true}`:                                                          "__Host- without Secure",
		`{"name":"__secure-n","value":"v","domain":"a.example"}`:                                                                       "__Secure- without Secure",
		`{"name":"n","value":"` + strings.Repeat("x", 4096) + `","domain":"a.example"}`:                                                "more than 4096 bytes",
		`{"name":"good","value":"another","domain":"a.example"}`:                                                                       "the last one is used",
		`{"name":"n","value":"v;w","domain":"a.example"}`:                                                                              "semicolon",
		`{"name":"n","value":"v","domain":"a.example","path":"/a/../b"}`:                                                               "its path has .. segments",
		`{"name":"n","value":"v","domain":"a.example","secure":true,"partitionKey":{"sourceOrigin":"t","hasCrossSiteAncestor":false}}`: "its partition is not a site",
		`{"name":"n","value":"v","domain":"a.example:80"}`:                                                                             "its domain is not a host name",
	} {
		doc, lost, err := portable.ReadPuppeteer([]byte("[" + odd + "," + good + "]"))
		if err != nil || len(doc.Cookies) != 1 || doc.Cookies[0].Value != "v" || doc.Cookies[0].Name != "good" {
			t.Errorf("%s: %+v, %v", odd, doc.Cookies, err)
		}
		if len(lost) != 1 || lost[0].Component != "cookies" || !strings.HasPrefix(lost[0].Origin, "a.example") || lost[0].Count != 1 || !strings.Contains(lost[0].Reason, want) {
			t.Errorf("%s: %+v", odd, lost)
		}
	}
	doc, lost, err := portable.ReadNetscape([]byte(".B\u00fccher.example\tTRUE\t/a b\tFALSE\t0\tn\tv\n.com\tTRUE\t/\tFALSE\t0\tn\tv\n.127.0.0.1\tTRUE\t/\tFALSE\t0\tn\tv\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range doc.Cookies {
		got = append(got, c.Domain+c.Path)
	}
	equal(t, []string{".xn--bcher-kva.example/a%20b", "com/", "127.0.0.1/"}, got)
	const narrowed = "this domain cannot have subdomains: the cookie becomes a cookie of the host alone"
	equal(t, []portable.Loss{{Component: "cookie_domain", Origin: "com", Count: 1, Reason: narrowed},
		{Component: "cookie_domain", Origin: "127.0.0.1", Count: 1, Reason: narrowed}}, lost)
}

type reader func([]byte) (state.Document, []portable.Loss, error)

// Input in another format is refused. The error has the position and no value.
func TestRefused(t *testing.T) {
	const store = `{"origins":[{"origin":"https://a.example","localStorage":[],"indexedDB":[{"name":"d","version":1,"stores":[%s]}]}]}`
	for _, test := range []struct {
		read reader
		in   string
		want string
	}{
		{portable.ReadPlaywright, `{"cookies":[ {"name":"secret"`, "not JSON: it ends too soon, at byte 29"},
		{portable.ReadPlaywright, `{"cookies":[{]`, "not JSON, at byte 13"},
		{portable.ReadPlaywright, `{"cookies":[]} {}`, "not JSON, at byte 15"},
		{portable.ReadPlaywright, "\xff", "not UTF-8"},
		{portable.ReadPlaywright, `[]`, "$: must be an object"},
		{portable.ReadPlaywright, `{}`, "$: must have cookies or origins"},
		{portable.ReadPlaywright, `{"cookies":{}}`, "$.cookies: must be an array"},
		{portable.ReadPlaywright, `{"cookies":[null]}`, "$.cookies[0]: must be an object"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"v","domain":"d"},{"name":7}]}`, "$.cookies[1].name: must be a string"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n"}]}`, "$.cookies[0].value: must be a string"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret"}]}`, "$.cookies[0]: must have a domain or a url"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","url":"file:///x"}]}`, "$.cookies[0].url: must be an http"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"a/b"}]}`, "$.cookies[0].domain: must be a host"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","path":"x"}]}`, "$.cookies[0].path: must be a path"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","expires":"1"}]}`, "$.cookies[0].expires: must be a number"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","expires":-2}]}`, "$.cookies[0].expires: must be -1"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","expires":1e300}]}`, "$.cookies[0].expires: must be -1"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","httpOnly":1}]}`, "$.cookies[0].httpOnly: must be true"},
		{portable.ReadPlaywright, `{"cookies":[{"name":"n","value":"secret","domain":"d","sameSite":"lax"}]}`, "$.cookies[0].sameSite: must be one of"},
		{portable.ReadPlaywright, `{"origins":[{}]}`, "$.origins[0].origin: must be a string"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"file:///etc/passwd"}]}`, "$.origins[0].origin: must be an origin"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"https://a.example/x"}]}`, "$.origins[0].origin: must be an origin"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"https://u@a.example"}]}`, "$.origins[0].origin: must be an origin"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"https://a"},{"origin":"https://a"}]}`, "$.origins[1].origin: the origin occurs twice"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"https://a","localStorage":[{"name":"k","value":null}]}]}`, "$.origins[0].localStorage[0].value: must be a string"},
		{portable.ReadPlaywright, `{"origins":[{"origin":"https://a","indexedDB":[{"name":"d","version":0.5,"stores":[]}]}]}`, "indexedDB[0].version: must be a whole"},
		{portable.ReadPlaywright, strings.ReplaceAll(store, "%s", `{"name":"s"}`), "stores[0].autoIncrement: must be true"},
		{portable.ReadPlaywright, strings.ReplaceAll(store, "%s", `{"name":"s","autoIncrement":false,"records":[{"value":1}],"indexes":[]}`), "records[0]: must have key"},
		{portable.ReadPlaywright, strings.ReplaceAll(store, "%s", `{"name":"s","autoIncrement":false,"keyPath":"a","keyPathArray":["a"],"records":[],"indexes":[]}`), "must not have both"},
		{portable.ReadPlaywright, strings.ReplaceAll(store, "%s", `{"name":"s","autoIncrement":false,"records":[{"key":1}],"indexes":[]}`), "records[0]: must have value"},
		{portable.ReadPlaywright, strings.ReplaceAll(store, "%s", `{"name":"s","autoIncrement":false,"records":[],"indexes":[{"name":"i","multiEntry":false,"unique":false}]}`), "indexes[0]: must have keyPath"},
		{portable.ReadPuppeteer, `{}`, "$: must be an array"},
		{portable.ReadPuppeteer, `[{"name":"n","value":"secret","domain":"d","partitionKey":7}]`, "$[0].partitionKey: must be a string or an object"},
		{portable.ReadPuppeteer, `[{"name":"n","value":"secret","domain":"d","partitionKey":{}}]`, "$[0].partitionKey.sourceOrigin: must be a string"},
		{portable.ReadPuppeteer, `[{"name":"n","value":"secret","domain":"d","priority":"Top"}]`, "$[0].priority: must be one of"},
		{portable.ReadPuppeteer, `[{"name":"n","value":"secret","domain":"d","sourcePort":70000}]`, "$[0].sourcePort: must be a port"},
		{portable.ReadNetscape, "# x\na.example FALSE / FALSE 0 n secret\n", "line 2: must have 7 tab-separated fields"},
		{portable.ReadNetscape, "a.example\tyes\t/\tFALSE\t0\tn\tsecret", "line 1: field 2 (subdomains) must be TRUE or FALSE"},
		{portable.ReadNetscape, "a.example\tTRUE\t/\t1\t0\tn\tsecret", "line 1: field 4 (secure) must be TRUE or FALSE"},
		{portable.ReadNetscape, "\n\na.example\tTRUE\t/\tTRUE\tsoon\tn\tsecret", "line 3: field 5 (expiry) must be seconds"},
		{portable.ReadNetscape, "a b\tTRUE\t/\tTRUE\t0\tn\tsecret", "line 1: field 1 (domain) must be"},
		{portable.ReadNetscape, "#HttpOnly_a.example\tTRUE\t\tTRUE\t0\tn\tsecret", "line 1: field 3 (path) must begin"},
		{portable.ReadNetscape, "a.example\tTRUE\t/\tTRUE\t0\t\tsecret", "line 1: field 6 (name) must not be empty"},
		{portable.ReadNetscape, "\xff", "not UTF-8"},
	} {
		_, _, err := test.read([]byte(test.in))
		if !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), test.want) {
			t.Errorf("%s\ngot  %v\nwant %q", test.in, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains a value: %v", err)
		}
	}
}

// Any input is refused with invalid_import, or is the same after writing and reading it
// again.
func fuzz(f *testing.F, read reader, write func(state.Document) ([]byte, []portable.Loss)) {
	raw, _ := write(fullDocument())
	f.Add(raw)
	f.Fuzz(func(t *testing.T, in []byte) {
		doc, lost, err := read(in)
		if err != nil {
			if !fault.Is(err, fault.InvalidImport) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if lost == nil {
			t.Fatal("no list of losses")
		}
		raw, _ := write(doc)
		again, _, err := read(raw)
		if err != nil {
			t.Fatalf("the output cannot be read: %v\n%s", err, raw)
		}
		twice, _ := write(again)
		if string(twice) != string(raw) {
			t.Fatalf("the second output differs:\n%s\n%s", raw, twice)
		}
	})
}

func FuzzPlaywright(f *testing.F) {
	f.Add([]byte(`{"cookies":[{"name":"n","value":"v","url":"http://[::1]:80/x"}],"origins":[{"origin":"http://[::1]:80","indexedDB":[]}]}`))
	fuzz(f, portable.ReadPlaywright, portable.Playwright)
}

func FuzzPuppeteer(f *testing.F) {
	f.Add([]byte(`[{"name":"","value":"","domain":".d","partitionKey":""}]`))
	fuzz(f, portable.ReadPuppeteer, portable.Puppeteer)
}

func FuzzNetscape(f *testing.F) {
	f.Add([]byte("..a\tTRUE\t/\tTRUE\t0\t#n\t\n#HttpOnly_#a\tTRUE\t/\tTRUE\t0\tn"))
	fuzz(f, portable.ReadNetscape, portable.Netscape)
}
