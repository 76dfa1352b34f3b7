package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// remoteDaemon is the address of a running daemon and a key for it.
type remoteDaemon struct {
	URL string `help:"The daemon's address." default:"http://127.0.0.1:8080"`
	Key string `help:"API key." env:"STASIS_API_KEY" required:""`
}

// remoteDeadline limits one call; an upload may take long.
const remoteDeadline = 10 * time.Minute

// refusal is an error answer of the daemon.
type refusal struct{ Code, Message string }

func (r refusal) Error() string { return r.Code + ": " + r.Message }

// noAnswer is the error for a daemon that cannot be reached.
func noAnswer(exit int, err error) error {
	advice := "give its address with --url"
	if errors.Is(err, syscall.ECONNREFUSED) {
		advice = "is stasis serve running? If it listens elsewhere, " + advice
	}
	return exitError{exit, "the daemon does not answer: " + err.Error() + "; " + advice}
}

// call makes a request and decodes its answer into out, unless out is nil.
func (r remoteDaemon) call(ctx context.Context, method, path string, body io.Reader, out any) error {
	return r.send(ctx, method, path, "application/octet-stream", body, out)
}

// callJSON is call with a JSON body.
func (r remoteDaemon) callJSON(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return r.send(ctx, method, path, "application/json", bytes.NewReader(body), out)
}

func (r remoteDaemon) send(ctx context.Context, method, path, media string, body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, remoteDeadline)
	defer cancel()
	res, err := r.do(ctx, method, path, media, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// do makes a request and returns an error if the daemon refuses it. The caller closes the
// body of the answer.
func (r remoteDaemon) do(ctx context.Context, method, path, media string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.URL, "/")+path, body)
	if err != nil {
		return nil, exitError{exitUsage, err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+r.Key)
	if body != nil {
		req.Header.Set("Content-Type", media)
	}
	if file, ok := body.(*os.File); ok { // with a length the daemon can refuse a file for lack of space before it is sent
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			req.ContentLength = info.Size()
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, noAnswer(exitFailed, err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	var refused refusal
	if json.NewDecoder(res.Body).Decode(&refused) != nil || refused.Code == "" {
		return nil, exitError{exitFailed, "the daemon answered " + res.Status}
	}
	return nil, refused
}
