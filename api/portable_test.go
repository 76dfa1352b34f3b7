package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/session/library"
)

// lostThings returns what the fake's exports cannot hold, over so many origins.
func lostThings(origins int) []library.NotExported {
	lost := []library.NotExported{{Component: "tabs", Count: 2, Reason: `a "reason"`}}
	for i := range origins {
		lost = append(lost, library.NotExported{Component: "local_storage", Origin: fmt.Sprintf("https://ü%d.example/", i), Count: 1, Reason: "no place"})
	}
	return lost
}

// brokenReader fails after some bytes.
type brokenReader struct{ left int }

func (b *brokenReader) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("damaged")
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

// The body is in the format itself. What the format cannot hold is in a header and in the
// envelope.
func TestStateExport(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "GET", "/v1/snapshots/snap-1/state?format=playwright", "")
	if body != `{"cookies":[]}` || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("playwright: %s %s", answer.Header, body)
	}
	header := answer.Header.Get(notCarriedHeader)
	var lost []library.NotExported
	if err := json.Unmarshal([]byte(header), &lost); err != nil || fmt.Sprint(lost) != fmt.Sprint(lostThings(1)) || strings.ContainsFunc(header, func(r rune) bool { return r > '~' }) {
		t.Errorf("header %q: %v", header, err)
	}
	answer, body = r.do(t, "GET", "/v1/users/alice/default/state?format=netscape", "")
	if body != "# Netscape HTTP Cookie File\n" || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("netscape: %s %s", answer.Header, body)
	}
	_, body = r.do(t, "GET", "/v1/snapshots/snap-1/state?format=netscape&envelope=true", "")
	if want := `{"format":"netscape","state":"# Netscape HTTP Cookie File\n","not_carried":[{"component":"tabs",`; !strings.HasPrefix(body, want) {
		t.Errorf("envelope: %s", body)
	}
	answer, body = r.do(t, "GET", "/v1/snapshots/long/state?envelope=true", "")
	if header := answer.Header.Get(notCarriedHeader); len(header) > maxNotCarried || !strings.Contains(header, `"local_storage","origin":"","count":1000,"reason":"shortened`) {
		t.Errorf("a long header: %s", header)
	}
	if strings.Count(body, "local_storage") != 1000 {
		t.Error("the envelope does not have the whole list")
	}
	for path, says := range map[string]string{
		"/v1/snapshots/snap-1/state?format=har":                      "format: must be one of stasis, playwright, puppeteer, netscape",
		"/v1/snapshots/snap-1/state?format=netscape&indexed_db=true": "indexed_db: allowed only with format=playwright",
		"/v1/snapshots/snap-1/archive?format=zip":                    "unknown parameter",
		"/v1/snapshots/snap-1/archive?sealed=false&recipient=age1x":  "sealed: must not be false",
	} {
		if answer, body := r.do(t, "GET", path, ""); answer.StatusCode != 422 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
}

// An archive is sealed to the requested recipients, or sent as it is stored.
func TestSealedArchive(t *testing.T) {
	r := newRig(t, nil)
	for query, want := range map[string]string{
		"?sealed=true":                        "sealed to ",
		"?recipient=age1a":                    "sealed to age1a",
		"?recipient=age1b&recipient=age1a":    "sealed to age1b,age1a",
		"?recipient=age1b&sealed=true":        "sealed to age1b",
		"?sealed=false":                       "tar.zst",
		"?sealed=true&recipient=age1a&limit=": "",
	} {
		answer, body := r.do(t, "GET", "/v1/snapshots/snap-1/archive"+query, "")
		if want == "" {
			if answer.StatusCode != 422 {
				t.Errorf("%s: %d %s", query, answer.StatusCode, body)
			}
			continue
		}
		sealed := strings.HasPrefix(want, "sealed")
		if answer.StatusCode != 200 || body != want || (answer.Header.Get(payloadHeader) != "") != sealed || sealed && answer.Header.Get("Content-Length") != fmt.Sprint(len(want)) ||
			strings.Contains(answer.Header.Get("Content-Disposition"), "snap-1.tar.zst.age") != sealed {
			t.Errorf("%s: %d %s %v", query, answer.StatusCode, body, answer.Header)
		}
	}
	if answer, body := r.do(t, "GET", "/v1/snapshots/broken-at-once/archive?sealed=true", ""); answer.StatusCode != 500 || answer.Header.Get(payloadHeader) != "" {
		t.Errorf("damaged at once: %d %s %v", answer.StatusCode, body, answer.Header)
	}
}

// The connection of an archive that turns out to be damaged is aborted before its end.
func TestDamagedArchiveIsCutOff(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "GET", "/v1/snapshots/snap-1/archive", "")
	if answer.StatusCode != 200 || body != "tar.zst" || !strings.Contains(answer.Header.Get("Content-Disposition"), "snap-1.tar.zst") {
		t.Errorf("whole: %d %s", answer.StatusCode, body)
	}
	if answer, body := r.do(t, "GET", "/v1/snapshots/broken-at-once/archive", ""); answer.StatusCode != 500 {
		t.Errorf("damaged at once: %d %s", answer.StatusCode, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/v1/snapshots/broken/archive", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil || n == 0 {
		t.Errorf("damaged: the client got %d bytes and the error %v", n, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if answer, _ := r.do(t, "GET", "/healthz", ""); answer.StatusCode != 200 {
		t.Error("the daemon no longer answers")
	}
}

func TestImport(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxImport = 1 << 12 })
	answer, body := r.do(t, "POST", "/v1/snapshots?format=datadir&profile=Profile%201&label=desk&save_as_default=true", "zip",
		"Content-Type: application/octet-stream", "Idempotency-Key: once")
	if answer.StatusCode != 201 || !strings.Contains(body, `"label":"desk"`) || !strings.Contains(body, `"default":{"moved":true`) || string(r.uploads["datadir/Profile 1"]) != "zip" {
		t.Errorf("%d %s %q", answer.StatusCode, body, r.uploads)
	}
	delete(r.uploads, "datadir/Profile 1")
	answer, again := r.do(t, "POST", "/v1/snapshots?format=datadir&profile=Profile%201&label=desk&save_as_default=true", "zip",
		"Content-Type: application/octet-stream", "Idempotency-Key: once")
	if answer.StatusCode != 201 || again != body || len(r.uploads) != 0 {
		t.Errorf("a repeat: %d %s", answer.StatusCode, again)
	}
	answer, again = r.do(t, "POST", "/v1/snapshots?format=datadir&profile=Profile%201&label=desk&save_as_default=true", "zap",
		"Content-Type: application/octet-stream", "Idempotency-Key: once")
	if answer.StatusCode < 400 || !strings.Contains(again, "idempotency_reused") || len(r.uploads) != 0 {
		t.Errorf("other bytes: %d %s", answer.StatusCode, again)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "state.json")
	if err != nil {
		t.Fatal(err)
	}
	whole := "{}" + strings.Repeat(" ", 1<<12-2) // the limit is the file's, without the framing of the form
	if _, err := part.Write([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	answer, body = r.do(t, "POST", "/v1/snapshots?format=playwright", form.String(), "Content-Type: "+w.FormDataContentType())
	if answer.StatusCode != 201 || string(r.uploads["playwright/"]) != whole {
		t.Errorf("a form: %d %s %q", answer.StatusCode, body, r.uploads)
	}
	for path, want := range map[string]string{
		"/v1/snapshots":                                                   "422 format: is required",
		"/v1/snapshots?format=har":                                        "422 format: must be one of",
		"/v1/snapshots?format=netscape&profile=x":                         "422 profile: allowed only with format=datadir",
		"/v1/snapshots?format=netscape&save_as_default=maybe":             "400 save_as_default: must be true or false",
		"/v1/snapshots?format=netscape&default_conflict=win":              "422 default_conflict: must be one of",
		"/v1/snapshots?format=netscape&label=" + strings.Repeat("x", 257): "422 label: must be at most",
	} {
		answer, body := r.do(t, "POST", path, "x", "Content-Type: text/plain")
		if !strings.Contains(fmt.Sprint(answer.StatusCode, " ", body), want[:3]) || !strings.Contains(body, want[4:]) {
			t.Errorf("%s: %d %s, want %s", path, answer.StatusCode, body, want)
		}
	}
	answer, body = r.do(t, "POST", "/v1/snapshots?format=datadir", strings.Repeat("x", 1<<12+1), "Content-Type: application/octet-stream")
	if answer.StatusCode != 413 || !strings.Contains(body, "4096 bytes") {
		t.Errorf("too large: %d %s", answer.StatusCode, body)
	}
}
