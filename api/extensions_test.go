package api

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// upload posts an extension and returns the status and the body of the answer.
func (r *rig) upload(t *testing.T, media string, body []byte) (status int, code string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/v1/extensions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	req.Header.Set("Content-Type", media)
	answer, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text.String()
}

// An extension is the body, or the only file of a form. One that exists already is answered
// with 200.
func TestUploadOfAnExtension(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxUpload = 1000 })
	if status, body := r.upload(t, "application/zip", []byte("PK")); status != 201 || !strings.Contains(body, `"Night"`) {
		t.Errorf("%d %s", status, body)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "night.crx")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("Cr24")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if status, body := r.upload(t, w.FormDataContentType(), form.Bytes()); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if got := string(r.uploads["extension"]); got != "Cr24" {
		t.Errorf("the form's file arrived as %q", got)
	}
	if status, body := r.upload(t, "application/octet-stream", make([]byte, 2000)); status != 413 || !strings.Contains(body, "too_large") {
		t.Errorf("%d %s", status, body)
	}
}

func TestExtensionsOfACreate(t *testing.T) {
	r := newRig(t, nil)
	plain := r.client.Transport
	r.client.Transport = nil // the requests are not as described
	for body, says := range map[string]string{
		`{"extensions":["../x"]}`: "extensions",
		`{"extensions":["abcdefghijklmnopabcdefghijklmnop","abcdefghijklmnopabcdefghijklmnop"]}`: "each once",
		`{"extensions":[1]}`: "extensions[0]",
		`{"extensions":"abcdefghijklmnopabcdefghijklmnop"}`:      "extensions",
		`{"extensions":[` + strings.Repeat(`"a",`, 40) + `"a"]}`: "at most 32",
	} {
		if answer, got := r.do(t, "POST", "/v1/sessions", body); answer.StatusCode != 422 && answer.StatusCode != 400 || !strings.Contains(got, says) {
			t.Errorf("%s: %d %s", body, answer.StatusCode, got)
		}
	}
	r.client.Transport = plain
}
