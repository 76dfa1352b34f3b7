package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/fault"
)

// remoteDaemon is the address of a running daemon and a key for it.
type remoteDaemon struct {
	URL     string `help:"The daemon's address; by default that of the daemon of --data-dir on this machine, else http://127.0.0.1:8080."`
	Key     string `help:"API key; by default the one in the api-key file of the daemon of --data-dir on this machine." env:"STASIS_API_KEY"`
	DataDir string `help:"Data directory of a daemon on this machine; by default ~/.local/share/stasis, as root /var/lib/stasis." placeholder:"DIR"`

	local *localDaemon // whose api-key is Key; nil: the user gave the key
}

// AfterApply completes the address and the key with those of the daemon on this machine. The
// key of that daemon is used for its own address only, and only while it runs: on this
// machine, other users can listen on any port.
func (r *remoteDaemon) AfterApply() error {
	if r.URL != "" && r.Key != "" {
		return nil
	}
	dir, err := dataDirOf(r.DataDir)
	if err != nil && r.Key == "" {
		return err
	}
	local := findLocal(dir)
	if r.URL == "" && local != nil {
		r.URL = local.at.URL
	}
	r.URL = strings.TrimSuffix(cmp.Or(r.URL, client.DefaultURL), "/")
	switch {
	case r.Key != "":
		return nil
	case local == nil:
		return noKey(nil, "on this machine, no daemon of this user runs on the data directory "+dir+", so its key is not used")
	case r.URL != local.at.URL:
		return noKey(nil, fmt.Sprintf("the key in %s is used only for %s, where its daemon listens, not for %s", dir, local.at.URL, r.URL))
	}
	r.local = local
	r.Key, err = local.key()
	return err
}

// noKey is the error for a call without an API key. why says why the key of the daemon on
// this machine is not used.
func noKey(cause error, why string) error {
	return &fault.Error{Code: fault.Config, Op: "remote.key", Err: cause,
		Message: "--key: is missing; give --key KEY, or set " + keyVariable + "=KEY; " + why}
}

// http returns the client for calls and sockets of the daemon. It follows no redirects:
// net/http sends the key on to other ports and subdomains of the host, and without TLS too.
// With the key of the daemon on this machine, it checks after each connect that this daemon
// still runs.
func (r *remoteDaemon) http() *http.Client {
	h := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.local == nil {
		return h
	}
	dialer := &net.Dialer{Timeout: remoteDial}
	h.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil && !r.local.runs() {
			return nil, errors.Join(errors.New("the daemon has stopped"), conn.Close())
		}
		return conn, err
	}}
	return h
}

// api returns the client of the daemon's API. Its errors become messages with [remoteDaemon.explain].
func (r *remoteDaemon) api() *client.Client {
	return &client.Client{URL: r.URL, Key: r.Key, HTTP: r.http()}
}

// remoteDeadline limits one call; an upload may take long. remoteDial limits a connect.
const (
	remoteDeadline = 10 * time.Minute
	remoteDial     = 30 * time.Second
)

// noAnswer is the error for a daemon that cannot be reached.
func noAnswer(exit int, err error) error {
	advice := "give its address with --url"
	if errors.Is(err, syscall.ECONNREFUSED) {
		advice = "is stasis serve running? If it listens elsewhere, " + advice
	}
	return exitError{exit, "the daemon does not answer: " + err.Error() + "; " + advice}
}

// explain turns an error of a call into one that says what to do. It accepts nil.
func (r *remoteDaemon) explain(err error) error {
	var refused *client.Error
	var network *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return exitError{exitInterrupted, "interrupted"}
	case errors.As(err, &network):
		return noAnswer(exitFailed, err)
	case !errors.As(err, &refused):
		return err
	case refused.Code == "":
		return exitError{exitFailed, refused.Message + "; give the daemon's own address with --url"}
	case refused.Status == http.StatusUnauthorized:
		advised := *refused
		advised.Message += r.keyAdvice()
		return &advised
	}
	inFlags := *refused
	inFlags.Message = flagWords.Replace(refused.Message)
	return &inFlags
}

// code returns the code of a refused call, or "".
func code(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// call makes a request and decodes its answer into out, unless out is nil.
func (r *remoteDaemon) call(ctx context.Context, method, path string, body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, remoteDeadline)
	defer cancel()
	res, err := r.do(ctx, method, path, "application/octet-stream", body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// callJSON is call with a JSON body.
func (r *remoteDaemon) callJSON(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, remoteDeadline)
	defer cancel()
	return r.explain(r.api().Call(ctx, method, path, in, out))
}

// get is [remoteDaemon.callJSON] for a read.
func (r *remoteDaemon) get(ctx context.Context, path string, out any) error {
	return r.callJSON(ctx, http.MethodGet, path, nil, out)
}

// do makes a request and returns an error if the daemon refuses it. The caller closes the
// body of the answer.
func (r *remoteDaemon) do(ctx context.Context, method, path, media string, body io.Reader) (*http.Response, error) {
	res, err := r.api().Send(ctx, method, path, media, body)
	return res, r.explain(err)
}

// keyAdvice says where a key that the daemon refused is from, and how to give another.
func (r *remoteDaemon) keyAdvice() string {
	switch {
	case r.local != nil:
		return "; the key in " + r.local.dir + " has been replaced or deleted: give --key KEY, or set " + keyVariable + "=KEY"
	case os.Getenv(keyVariable) == r.Key:
		return "; the key is that of " + keyVariable
	}
	return "; the key is that of --key"
}
