// Package client calls the HTTP API of a running Stasis.
//
// [New] makes a [Client] for a daemon's address and an API key. Its methods are the calls of
// openapi.yaml that programs use most; [Client.Call] makes any other. A call that the daemon
// refuses returns an [*Error] with the daemon's code and message. Every call ends with its
// context.
//
// A session's browser is driven over CDP, at [Session.CDPURL], for example with chromedp:
// see the example of [Client.CreateSession].
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// Client calls one daemon with one API key. Its methods are safe for concurrent use.
type Client struct {
	// URL is the daemon's address, such as http://127.0.0.1:8080, without a slash at the end.
	URL string
	// Key is the API key.
	Key string
	// HTTP makes the requests; nil: http.DefaultClient.
	HTTP *http.Client
}

// DefaultURL is where a daemon listens without flags.
const DefaultURL = "http://127.0.0.1:8080"

// New returns a client. url "" means [DefaultURL].
func New(url, key string) *Client {
	return &Client{URL: strings.TrimSuffix(cmp.Or(url, DefaultURL), "/"), Key: key}
}

// Error is an answer of the daemon that refuses a call.
type Error struct {
	Status    int    `json:"-"`    // of HTTP
	Code      string `json:"code"` // for programs, such as no_snapshot; see docs/troubleshooting.md. "": the answer is not of this API
	Message   string `json:"message"`
	RequestID string `json:"request_id"` // of this call in the daemon's log

	// Snapshot is what an end has saved although its code is version_conflict, and Default says
	// why the default was kept. Both are nil for other errors.
	Snapshot *Snapshot       `json:"snapshot"`
	Default  *DefaultOutcome `json:"default"`
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// Call makes a request with a JSON body, unless in is nil, and decodes the JSON of the answer
// into out, unless that is nil. path begins with a slash and may have a query.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.call(ctx, method, path, in, out)
	return err
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	answer, err := c.Send(ctx, method, path, "application/json", body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if out == nil {
		return answer.Header, nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return nil, fmt.Errorf("%s %s: the answer is not the expected JSON: %w", method, path, err)
	}
	return answer.Header, nil
}

// Send makes a request with any body, which may be nil. The length of a file is sent before it.
// The caller closes the body of the answer. The error is an [*Error] for an answer that is not a success.
func (c *Client) Send(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if file, ok := body.(interface{ Stat() (fs.FileInfo, error) }); ok { // with a length the daemon can refuse a file for lack of space before it is sent
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			req.ContentLength = info.Size()
		}
	}
	answer, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	return nil, Refusal(answer)
}

// maxRefusal is the most that is read of a refusal, in bytes.
const maxRefusal = 1 << 20

// Refusal returns the error of an answer that is not a success, such as that of a WebSocket's
// upgrade. It reads the body of the answer.
func Refusal(answer *http.Response) *Error {
	e := &Error{}
	if answer.Body == nil || json.NewDecoder(io.LimitReader(answer.Body, maxRefusal)).Decode(e) != nil || e.Code == "" {
		e = &Error{Message: "the daemon answered " + answer.Status}
		if to := answer.Header.Get("Location"); to != "" {
			e.Message += fmt.Sprintf(" to %q; redirects are not followed", to)
		}
	}
	e.Status = answer.StatusCode
	return e
}
