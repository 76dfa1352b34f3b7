package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/stasisd/stasis/client"
)

// call is one call of the API, for people who want to repeat it.
type call struct {
	method string
	path   string // with the query
	body   string // JSON; "" is none
	file   bool   // the body is a form with a file
}

// curl returns the call as a command for a shell. The key is a variable in it.
func (c call) curl(origin url.URL) string {
	var b strings.Builder
	b.WriteString(`curl -H "Authorization: Bearer $STASIS_API_KEY"`)
	if c.method != http.MethodGet && (c.method != http.MethodPost || c.body == "" && !c.file) {
		b.WriteString(" -X " + c.method)
	}
	if c.body != "" {
		b.WriteString(" --json " + quote(c.body))
	}
	if c.file {
		b.WriteString(" -F file=@FILE")
	}
	base := url.URL{Scheme: origin.Scheme, Host: origin.Host}
	b.WriteString(" " + quote(base.String()+strings.TrimSuffix(origin.EscapedPath(), "/")+c.path))
	return b.String()
}

// quote returns text as one word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// caller calls the API for one person, within the process. It is not safe for concurrent use.
type caller struct {
	api    http.Handler
	of     *http.Request // the person's request
	secret string
	calls  []call
}

// get decodes the answer of a GET into out. It returns the headers of the answer.
func (c *caller) get(path string, out any) (http.Header, error) {
	return c.send(http.MethodGet, path, nil, out)
}

// send makes a call. A body that is not nil is sent as JSON. The answer is decoded into out
// unless out is nil. An error answer is an [client.Error].
func (c *caller) send(method, path string, body, out any, headers ...string) (http.Header, error) {
	made := call{method: method, path: path}
	var content io.Reader
	if body != nil {
		data, err := encode(body)
		if err != nil {
			return nil, err
		}
		made.body, content = string(data), bytes.NewReader(data)
		headers = append(headers, "Content-Type", "application/json")
	}
	c.calls = append(c.calls, made)
	req, err := c.request(method, path, content, headers...)
	if err != nil {
		return nil, err
	}
	answer := &recorded{header: http.Header{}}
	c.api.ServeHTTP(answer, req)
	return answer.header, answer.decode(path, out)
}

// encode returns v as JSON, as a person would write it: < and & are not escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// text returns the answer of a GET as text.
func (c *caller) text(path string) (string, error) {
	c.calls = append(c.calls, call{method: http.MethodGet, path: path})
	req, err := c.request(http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	answer := &recorded{header: http.Header{}}
	c.api.ServeHTTP(answer, req)
	return answer.body.String(), answer.failure()
}

// upload passes the body of the person's request on: a form with one file.
func (c *caller) upload(path string) error {
	return c.stream(path, c.of.Body, c.of.ContentLength, nil, "Content-Type", c.of.Header.Get("Content-Type"))
}

// stream makes a POST whose body is a file or a form with one, of size bytes; -1 if that is
// not known. The answer is decoded into out unless out is nil.
func (c *caller) stream(path string, file io.Reader, size int64, out any, headers ...string) error {
	c.calls = append(c.calls, call{method: http.MethodPost, path: path, file: true})
	req, err := c.request(http.MethodPost, path, file, headers...)
	if err != nil {
		return err
	}
	req.ContentLength = size
	answer := &recorded{header: http.Header{}}
	c.api.ServeHTTP(answer, req)
	return answer.decode(path, out)
}

// download passes the answer of a GET on to w as it arrives, unless it is an error.
func (c *caller) download(w http.ResponseWriter, path string) error {
	req, err := c.request(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	answer := &recorded{header: http.Header{}, to: w}
	c.api.ServeHTTP(answer, req)
	return answer.failure()
}

// request makes a request with the person's key. The API sees the person's address.
func (c *caller) request(method, path string, body io.Reader, headers ...string) (*http.Request, error) {
	if body == nil {
		body = http.NoBody // as a server's requests have
	}
	req, err := http.NewRequestWithContext(c.of.Context(), method, path, body)
	if err != nil {
		return nil, err
	}
	req.Host, req.RemoteAddr, req.TLS = c.of.Host, c.of.RemoteAddr, c.of.TLS
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"} {
		req.Header[name] = c.of.Header[name]
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	return req, nil
}

// recorded is a ResponseWriter that keeps the answer. If to is set, it passes answers that
// are no errors on to it.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
	to     http.ResponseWriter
}

// Header returns the headers of the answer.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader begins the answer.
func (r *recorded) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	if r.passes() {
		for name, values := range r.header {
			r.to.Header()[name] = values
		}
		r.to.WriteHeader(status)
	}
}

// Write adds to the answer.
func (r *recorded) Write(data []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.passes() {
		return r.to.Write(data)
	}
	return r.body.Write(data)
}

func (r *recorded) passes() bool { return r.to != nil && r.status < http.StatusBadRequest }

// decode decodes the answer to a call of path into out unless out is nil. It returns an error
// answer as an error.
func (r *recorded) decode(path string, out any) error {
	if err := r.failure(); err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(r.body.Bytes(), out); err != nil {
		return fmt.Errorf("the answer to %s cannot be decoded: %w", path, err)
	}
	return nil
}

// failure returns an error answer as an error.
func (r *recorded) failure() error {
	if r.status < http.StatusBadRequest {
		return nil
	}
	failed := &client.Error{Status: r.status}
	if err := json.Unmarshal(r.body.Bytes(), failed); err != nil || failed.Code == "" {
		failed.Code, failed.Message = "internal", "the API has answered "+http.StatusText(r.status)
	}
	return failed
}
