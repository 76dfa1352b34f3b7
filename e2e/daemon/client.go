package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// callDeadline bounds one call. A create may wait for ten minutes.
const callDeadline = 11 * time.Minute

// Answer is an HTTP response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Into decodes the body as JSON.
func (a Answer) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("cannot decode the answer's JSON: %v\n%s", err, a.Body)
	}
}

// Code returns the error code of an answer, or "" if there is none.
func (a Answer) Code() string {
	var e struct{ Code string }
	_ = json.Unmarshal(a.Body, &e) // a body without a code leaves it empty
	return e.Code
}

// Call makes one request with the test key and the body as JSON. A string or []byte is
// sent unchanged; nil sends no body. Every exchange is checked against openapi.yaml.
func (d *Daemon) Call(t testing.TB, method, path string, body any) Answer {
	t.Helper()
	return d.CallAs(t, Key, method, path, body)
}

// CallAs is Call with another key; "" sends none.
func (d *Daemon) CallAs(t testing.TB, key, method, path string, body any) Answer {
	t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = bytes.NewReader([]byte(b))
	case []byte:
		in = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	return d.Send(t, key, method, path, in, nil)
}

// Send makes one request with a key ("" for none) and more headers. The body is sent as
// JSON unless a header gives another type.
func (d *Daemon) Send(t testing.TB, key, method, path string, in io.Reader, header http.Header) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callDeadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.URL+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := d.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }() // the body is read whole below
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: raw}
}

// Must is Call. It fails the test if the status is not the wanted one.
func (d *Daemon) Must(t testing.TB, status int, method, path string, body any) Answer {
	t.Helper()
	a := d.Call(t, method, path, body)
	if a.Status != status {
		t.Fatalf("%s %s = %d, want %d\n%s", method, path, a.Status, status, a.Body)
	}
	return a
}
