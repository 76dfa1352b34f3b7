package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

// life is one run of a daemon, from its start to its kill, with the clients that use it.
type life struct {
	testing.TB
	d       *daemon.Daemon
	number  int
	site    string // address that the browsers visit
	random  *rand.Rand
	ctx     context.Context
	over    context.CancelFunc
	killing atomic.Bool
	answers atomic.Int64
	users   sync.WaitGroup
	http    *http.Client
}

// live starts a life with a daemon that listens.
func live(t testing.TB, d *daemon.Daemon, number int, site string, seed uint64) *life {
	l := &life{TB: t, d: d, number: number, site: site, random: rand.New(rand.NewPCG(seed, uint64(number))),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}}
	l.ctx, l.over = context.WithCancel(t.Context())
	return l
}

// kill kills the daemon and waits for all its clients.
func (l *life) kill() {
	l.Helper()
	l.killing.Store(true)
	l.d.Kill(l)
	l.leave()
}

// leave stops all clients of the daemon.
func (l *life) leave() {
	l.over()
	l.users.Wait()
	l.http.CloseIdleConnections()
}

// await waits for a number of further answers, however busy the machine is. If no
// answers can come, it waits for a while.
func (l *life) await(answers int64, most time.Duration) {
	over := time.NewTimer(most)
	defer over.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := l.answers.Load() + answers; l.answers.Load() < until; {
		select {
		case <-tick.C:
		case <-over.C:
			return
		}
	}
}

// call makes one request. answered is false if the daemon was killed, or the clients
// were stopped, before the answer: then the outcome is unknown. Otherwise the answer
// must have one of the statuses.
func (l *life) call(method, path string, in, out any, statuses ...int) (status int, answered bool) {
	l.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		l.Error(err)
		return 0, false
	}
	status, header, answer, err := l.send(method, path, raw, nil)
	switch {
	case err != nil && (l.killing.Load() || l.ctx.Err() != nil):
		return 0, false
	case err != nil:
		l.Errorf("life %d: %s %s: %v", l.number, method, path, err)
		return 0, false
	case !slices.Contains(statuses, status):
		l.Errorf("life %d: %s %s = %d, want %d\n%s", l.number, method, path, status, statuses, answer)
		return status, false
	}
	l.answers.Add(1)
	if out != nil && status < http.StatusMultipleChoices && header.Get("Content-Type") != "" {
		if err := json.Unmarshal(answer, out); err != nil {
			l.Errorf("life %d: %s %s: %v", l.number, method, path, err)
		}
	}
	return status, true
}

func (l *life) send(method, path string, body []byte, header http.Header) (int, http.Header, []byte, error) {
	res, err := l.open(method, path, body, header)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }() // the body is read whole below
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, answer, err
}

// open makes a request whose answer is read as a stream.
func (l *life) open(method, path string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(l.ctx, method, l.d.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Authorization", "Bearer "+daemon.Key)
	if string(body) != "null" && len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = http.NoBody
	}
	return l.http.Do(req)
}

// use runs a client until the life ends. It calls do again and again with a pause in
// between.
func (l *life) use(pause time.Duration, do func()) {
	l.users.Go(func() {
		between := time.NewTimer(0)
		defer between.Stop()
		for {
			select {
			case <-between.C:
			case <-l.ctx.Done():
				return
			}
			do()
			between.Reset(pause)
		}
	})
}
