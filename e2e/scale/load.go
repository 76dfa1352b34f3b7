package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
)

const (
	// inFlight limits the calls under way. If so many wait, the cluster does not bear the
	// rate, and the load waits too.
	inFlight = 1000
	// callDeadline limits one call. Slower ones count as failed.
	callDeadline = 30 * time.Second
	// fillers is how many callers create the first sessions, each one after the other.
	fillers = 32
	// idleConns is how many unused connections to a node the load keeps. With all nodes, both
	// ends of them are descriptors of this process.
	idleConns = 8
)

// mix says what the load does.
type mix struct {
	users    int     // that sessions are of
	restored float64 // share of creates that ask for their user's default
	saved    float64 // share of ends that save, as the user's default
	lookups  int     // for each create, each at a random node
	random   bool    // the load chooses random session IDs; otherwise the nodes make them, in order of time
}

// live is a session that the load has created, and the node that has answered.
type live struct {
	id string
	on *node
}

// load creates and ends sessions.
type load struct {
	nodes  []*node
	mix    mix
	client *http.Client

	mu       sync.Mutex
	sessions []live

	creates, ends, saves, lookups timings
	outrun                        atomic.Int64 // saves whose default another session had moved before
}

func newLoad(nodes []*node, m mix) *load {
	return &load{nodes: nodes, mix: m, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: idleConns, IdleConnTimeout: time.Minute}}}
}

// reply is what the load reads of an answer.
type reply struct {
	Code      string `json:"code"`
	SessionID string `json:"session_id"`
	Success   bool   `json:"success"`
}

// call makes one call. An error has the answer's code, so that equal ones count together.
func (l *load) call(ctx context.Context, method, url string, body any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	to := io.Reader(http.NoBody)
	if body != nil {
		to = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, to)
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	res, err := l.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return reply{}, errors.New("no answer in time")
		}
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var a reply
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("%s %d without JSON", method, res.StatusCode)
	}
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
	if res.StatusCode >= http.StatusBadRequest {
		return a, fmt.Errorf("%d %s", res.StatusCode, a.Code)
	}
	return a, nil
}

// create creates a session by a random node. due is when it should have begun.
func (l *load) create(ctx context.Context, due time.Time) {
	l.createBy(ctx, l.nodes[rand.IntN(len(l.nodes))], due)
}

// createBy creates a session by a node, which may place it on another one.
func (l *load) createBy(ctx context.Context, on *node, due time.Time) {
	user := fmt.Sprintf("user-%d", rand.IntN(l.mix.users))
	body := map[string]any{"user_id": user, "idle_timeout_seconds": 86400, "max_lifetime_seconds": 86400}
	if rand.Float64() < l.mix.restored {
		body["restore_default_environment_from_user_id"], body["if_missing"] = user, "fresh"
	}
	if l.mix.random {
		body["session_id"] = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	}
	a, err := l.call(ctx, http.MethodPost, on.url+"/v1/sessions", body)
	if ctx.Err() != nil {
		return
	}
	l.creates.add(time.Since(due), err)
	if err == nil {
		l.mu.Lock()
		l.sessions = append(l.sessions, live{a.SessionID, on})
		l.mu.Unlock()
	}
}

// end ends a random session, by the node that has answered its create.
func (l *load) end(ctx context.Context, due time.Time) {
	l.mu.Lock()
	if len(l.sessions) == 0 {
		l.mu.Unlock()
		return
	}
	i, last := rand.IntN(len(l.sessions)), len(l.sessions)-1
	s := l.sessions[i]
	l.sessions[i] = l.sessions[last]
	l.sessions = l.sessions[:last]
	l.mu.Unlock()
	how, into := "none", &l.ends
	if rand.Float64() < l.mix.saved {
		how, into = "filesystem&save_as_default=true", &l.saves
	}
	a, err := l.call(ctx, http.MethodDelete, s.on.url+"/v1/sessions/"+s.id+"?save_snapshot_mode="+how, nil)
	if ctx.Err() != nil {
		return
	}
	switch {
	case a.Code == string(fault.VersionConflict): // the snapshot is saved; the default is that of a session that ended before
		l.outrun.Add(1)
		err = nil
	case err == nil && !a.Success:
		err = errors.New("an end without success")
	}
	into.add(time.Since(due), err)
}

// lookup asks a random node for a random session.
func (l *load) lookup(ctx context.Context, due time.Time) {
	l.mu.Lock()
	if len(l.sessions) == 0 {
		l.mu.Unlock()
		return
	}
	s := l.sessions[rand.IntN(len(l.sessions))]
	l.mu.Unlock()
	_, err := l.call(ctx, http.MethodGet, l.nodes[rand.IntN(len(l.nodes))].url+"/v1/sessions/"+s.id, nil)
	if ctx.Err() == nil {
		l.lookups.add(time.Since(due), err)
	}
}

// fill creates sessions until n live. It fails if more than a hundredth of the creates fail.
func (l *load) fill(ctx context.Context, n int) error {
	l.creates.reset()
	var callers sync.WaitGroup
	// One node makes many in a row, so it knows the others already: it need not read them each
	// time.
	missing := n - len(l.sessions)
	left := make(chan *node, n)
	for i := range missing {
		left <- l.nodes[i*len(l.nodes)/missing]
	}
	close(left)
	for range fillers {
		callers.Go(func() {
			for on := range left {
				if ctx.Err() != nil {
					return
				}
				l.createBy(ctx, on, time.Now())
			}
		})
	}
	callers.Wait()
	if s := l.creates.summary(); s.failures() > n/100 {
		return fmt.Errorf("%d of %d creates failed: %v", s.failures(), n, s.Errors)
	}
	return ctx.Err()
}

// offer offers rate creates and as many ends in a second for a duration, at even distances,
// whatever the answers. It waits for the last answer, and returns how long all took.
func (l *load) offer(ctx context.Context, rate float64, d time.Duration) time.Duration {
	for _, t := range []*timings{&l.creates, &l.ends, &l.saves, &l.lookups} {
		t.reset()
	}
	l.outrun.Store(0)
	var calls sync.WaitGroup
	free := make(chan struct{}, inFlight)
	do := func(call func(context.Context, time.Time), due time.Time) {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			call(ctx, due)
		})
	}
	began := time.Now()
	for i := range int(rate * d.Seconds()) {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || time.Since(began) > 2*d { // it is far behind
			break
		}
		do(l.create, due)
		do(l.end, due)
		for range l.mix.lookups {
			do(l.lookup, due)
		}
	}
	calls.Wait()
	return time.Since(began)
}
