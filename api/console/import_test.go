package console

import (
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// formOf returns a multipart form: pairs of names and values, and then a file unless it is "".
func formOf(t *testing.T, file string, pairs ...string) (body, header string) {
	t.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteField(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	name := ""
	if file != "" {
		name = "state.json"
	}
	part, err := w.CreateFormFile("file", name) // browsers send an empty one too
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, file) // a Builder takes everything
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

// The form imports a file or pasted text as its fields say, and shows the snapshot.
func TestImport(t *testing.T) {
	const imported = `{"snapshot":{"id":"snap-1","user_id":"alice"},"default":null}`
	for name, x := range map[string]struct {
		file   string
		fields []string
		call   string
		answer string
		says   string
	}{
		"a file":   {`{"cookies":[]}`, []string{"user_id", " alice ", "format", "playwright", "label", "", "profile", "P", "text", ""}, `POST /v1/snapshots?format=playwright&user_id=alice {"cookies":[]}`, imported, "The import is saved as a snapshot."},
		"a paste":  {"", []string{"format", "netscape", "text", "a\tb"}, "POST /v1/snapshots?format=netscape a\tb", imported, "-F file=@FILE &#39;http://stasis.example/v1/snapshots?format=netscape"},
		"default":  {"x", []string{"format", "datadir", "profile", "Profile 1", "label", "l", "default", "1"}, "POST /v1/snapshots?default_conflict=overwrite&format=datadir&label=l&profile=Profile+1&save_as_default=true x", `{"snapshot":{"id":"snap-1","user_id":"alice"},"default":{"moved":true,"version":2}}`, "is the default of alice now"},
		"no login": {"x", []string{"format", "stasis", "default", "1"}, "POST /v1/snapshots?default_conflict=overwrite&format=stasis&save_as_default=true x", `{"snapshot":{"id":"snap-1"},"default":{"moved":false,"reason":"it is logged out"}}`, "did not become the default: it is logged out."},
	} {
		r := newRig(t)
		r.answers["POST /v1/snapshots"] = x.answer
		r.answers["GET /v1/snapshots/snap-1"] = `{"id":"snap-1","components":[{"name":"cookies","saved":3,"dropped":2,"reason":"Chrome refuses them"}]}`
		r.signIn(t)
		body, header := formOf(t, x.file, x.fields...)
		answer := r.do(t, "POST", "/console/snapshots/import", body, header)
		if answer.StatusCode != http.StatusSeeOther || !slices.Equal(r.calls, []string{x.call}) {
			t.Fatalf("%s: %d %q\n%s", name, answer.StatusCode, r.calls, answer.body)
		}
		if page := r.get(t, answer.Header.Get("Location")); !strings.Contains(page, x.says) || !strings.Contains(page, "2 left out: Chrome refuses them") {
			t.Errorf("%s: %q is not in %s", name, x.says, page)
		}
	}
}

// After an error the person sees it above the form, which has all fields except what may have
// logins.
func TestImportRefused(t *testing.T) {
	for want, x := range map[string]struct {
		file   string
		fields []string
		status int
		calls  int
	}{
		"the field &lt;b&gt; is wrong":                  {"x", []string{"format", "puppeteer", "user_id", "bob"}, 422, 1},
		"choose a file, or paste its text":              {"", []string{"format", "puppeteer", "user_id", "bob", "text", " \r\n"}, 400, 0},
		"choose a file or paste its text, not both":     {"x", []string{"format", "puppeteer", "user_id", "bob", "text", "secret"}, 400, 0},
		"the pasted text is larger than 1.0 MiB":        {"", []string{"format", "puppeteer", "user_id", "bob", "text", strings.Repeat("secret", maxPaste/6+1)}, 413, 0},
		"cannot be read: the field label is too long":   {"", []string{"format", "puppeteer", "user_id", "bob", "label", strings.Repeat("x", maxField+1)}, 400, 0},
		"the form cannot be read: request Content-Type": {"no form", nil, 400, 0},
	} {
		r := newRig(t)
		r.answers["POST /v1/snapshots"] = "422"
		r.signIn(t)
		body, header := formOf(t, x.file, x.fields...)
		if x.fields == nil {
			header = "Content-Type: text/plain"
		}
		answer := r.do(t, "POST", "/console/snapshots/import", body, header)
		if answer.StatusCode != x.status || len(r.calls) != x.calls || !strings.Contains(answer.body, want) || strings.Contains(answer.body, "secret") {
			t.Errorf("%q: %d %q %s", want, answer.StatusCode, r.calls, answer.body)
		}
		if x.fields != nil && (!strings.Contains(answer.body, `value="bob"`) || !strings.Contains(answer.body, `value="puppeteer" selected`)) {
			t.Errorf("%q: the form is empty: %s", want, answer.body)
		}
	}
}

// Only the form's own fields are kept in memory.
func TestImportForeignFields(t *testing.T) {
	body, header := formOf(t, "", "text", "x", "foreign", "y", "", "z")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", strings.TrimPrefix(header, "Content-Type: "))
	values, _, err := readImport(r)
	if err != nil || len(values) != 1 || values.Get("text") != "x" {
		t.Errorf("%v, %v", values, err)
	}
}

// A file of any size is passed on while it arrives.
func TestImportStreams(t *testing.T) {
	first := make(chan string, 1)
	c := New(Options{Now: time.Now, Origin: func(*http.Request) url.URL { return url.URL{} }, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, begin); err != nil {
			t.Error(err)
		}
		first <- string(begin)
		rest, err := io.ReadAll(r.Body)
		if err != nil || string(rest) != "end" {
			t.Errorf("the rest is %q, %v", rest, err)
		}
		_, _ = io.WriteString(w, `{"snapshot":{"id":"snap-1"}}`)
	})})
	content, to := io.Pipe()
	form := multipart.NewWriter(to)
	go func() {
		part, err := form.CreateFormFile("file", "a.zip")
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(part, "begin")
		if got := <-first; got != "begin" {
			t.Errorf("the API has read %q", got)
		}
		_, _ = io.WriteString(part, "end")
		_ = to.CloseWithError(form.Close())
	}()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/snapshots/import", content)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(&http.Cookie{Name: cookieName, Value: c.logins.add(goodKey, "alice")})
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/snapshots/snap-1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
