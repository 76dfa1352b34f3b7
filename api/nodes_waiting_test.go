package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/request"
)

// fullNodes are nodes with a bounded number of places.
type fullNodes struct {
	*nodes
	mu   sync.Mutex
	free map[string]int
	made []string        // "user on node"
	over map[string]bool // users with a quota of one session, and whether they have it
}

// placesOf are the sessions of one of them.
type placesOf struct {
	Sessions
	id string
	of *fullNodes
}

func (s placesOf) Create(_ context.Context, _ access.Caller, r request.Create) (answer.Info, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case r.WaitsForPlace():
		return answer.Info{}, fault.New(fault.Internal, "fake", "it waits for a place on one node")
	case s.of.over[r.UserID]:
		return answer.Info{}, onlyOne(r.UserID).Error("fake", 1)
	case s.of.free[s.id] == 0:
		return answer.Info{}, fault.New(fault.TooManySessions, "fake", "full")
	}
	s.of.free[s.id]--
	s.of.say(s.id, s.of.free[s.id])
	s.of.made = append(s.of.made, r.UserID+" on "+s.id)
	return info(liveID), nil
}

func newFullNodes(t *testing.T, ids ...string) *fullNodes {
	t.Helper()
	f := &fullNodes{free: map[string]int{}, over: map[string]bool{}}
	f.nodes = newNodes(t, func(id string, o *Options) { o.Sessions = placesOf{o.Sessions, id, f} }, ids...)
	for _, id := range ids {
		f.say(id, 0)
		f.rigs[id].server.cluster.Waiter, f.rigs[id].everyUser = f.waiter, true
	}
	return f
}

// waiter returns a create as it waits for a place.
func (f *fullNodes) waiter(_ context.Context, c access.Caller, r request.Create, wanted placement.Wanted) (placement.Waiter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := placement.Waiter{Wanted: wanted, UserID: r.UserID, KeyID: c.KeyID}
	if _, limited := f.over[r.UserID]; limited {
		w.Limits = []quota.Limit{onlyOne(r.UserID)}
	}
	return w, nil
}

// onlyOne is a quota of one session.
func onlyOne(user string) quota.Limit {
	most := int64(1)
	return quota.Limit{Share: quota.Share{Holder: quota.Holder{Kind: quota.User, ID: user}, Name: quota.Sessions}, Most: &most}
}

// setOver gives a user a quota of one session, and says whether the user has one.
func (f *fullNodes) setOver(user string, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over[user] = over
	n := int64(0)
	if over {
		n = 1
	}
	f.waiting.SetSessions(user, n)
}

// say sets how many places a node says that it has.
func (f *fullNodes) say(id string, free int) {
	f.set(func() { f.node(id).Status = profiles.JSON(placement.Status{Free: free}) })
}

// frees gives a node places, and waits until somebody has each of them.
func (f *fullNodes) frees(t *testing.T, id string, n int) []string {
	t.Helper()
	f.mu.Lock()
	f.free[id], f.made = n, nil
	f.mu.Unlock()
	f.say(id, n)
	waitFor(t, func() bool { return len(f.sessions()) == n })
	return f.sessions()
}

func (f *fullNodes) sessions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

// waits has a create wait that a client has sent to a node.
func (f *fullNodes) waits(t *testing.T, ctx context.Context, on, user string) (status chan int) { //nolint:revive // t is first in tests
	t.Helper()
	was := f.count()
	status = make(chan int, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.rigs[on].url+"/v1/sessions", strings.NewReader(`{"wait_seconds":600,"user_id":"`+user+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Api-Key": {goodKey}, "Content-Type": {"application/json"}}
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			status <- 0
			return
		}
		_ = answer.Body.Close()
		status <- answer.StatusCode
	}()
	waitFor(t, func() bool { return f.count() == was+1 })
	return status
}

// count returns how many creates wait, on all nodes, and in the catalogue.
func (f *fullNodes) count() (n int) {
	for _, r := range f.rigs {
		n += r.server.cluster.Line.Count()
	}
	all, err := f.waiting.Waiting(context.Background())
	waiting := len(slices.DeleteFunc(all, func(w profiles.WaitingCreate) bool { return w.Turn > 0 }))
	if err != nil || waiting != n {
		return -1 // one of them comes or goes
	}
	return n
}

// Creates wait for the next place of any node. A client that goes leaves the order. A create that
// does not wait gets no place before those that do.
func TestWaitForAnyNode(t *testing.T) {
	f := newFullNodes(t, "a", "b", "c")
	first := f.waits(t, t.Context(), "a", "ann")
	f.waits(t, t.Context(), "a", "ann")
	ctx, leave := context.WithCancel(t.Context())
	f.waits(t, ctx, "b", "gone")
	f.waits(t, t.Context(), "b", "bob")
	leave()
	waitFor(t, func() bool { return f.count() == 3 })
	wants := func(on string, want ...string) {
		t.Helper()
		if got := f.frees(t, on, len(want)); !slices.Equal(got, want) {
			t.Errorf("made %q, want %q", got, want)
		}
	}
	wants("c", "ann on c")
	if status := <-first; status != http.StatusCreated {
		t.Errorf("answered with %d", status)
	}
	f.mu.Lock()
	f.free["c"] = 1 // which it has not said yet
	f.mu.Unlock()
	if answer, body := f.rigs["c"].do(t, "POST", "/v1/sessions", `{"user_id":"eve"}`); answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "too_many_sessions") {
		t.Errorf("a create that does not wait: %d %s", answer.StatusCode, body)
	}
	wants("c", "bob on c")
	wants("b", "ann on b")
	if answer, body := f.rigs["a"].do(t, "POST", "/v1/sessions", `{"wait_seconds":1}`); answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "too_many_sessions") {
		t.Errorf("nobody had a place: %d %s", answer.StatusCode, body)
	}
	waitFor(t, func() bool { return f.count() == 0 })
}

// A create that is beyond a quota of sessions waits, and delays no other.
func TestWaitForQuota(t *testing.T) {
	f := newFullNodes(t, "a", "b")
	f.setOver("ann", true)
	f.waits(t, t.Context(), "a", "ann")
	refused := func(body string) {
		t.Helper()
		answer, text := f.rigs["b"].do(t, "POST", "/v1/sessions", body)
		if answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"quota":{"name":"sessions"`) {
			t.Errorf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
	refused(`{"user_id":"ann"}`)
	f.waits(t, t.Context(), "b", "bob")
	if got := f.frees(t, "b", 1); got[0] != "bob on b" {
		t.Errorf("made %q", got)
	}
	refused(`{"user_id":"ann","wait_seconds":1}`)
	f.setOver("ann", false)
	if got := f.frees(t, "a", 1); got[0] != "ann on a" {
		t.Errorf("made %q", got)
	}
}

// A create that waits for its environment does so on the node that has it, for the rest of its time.
func TestWaitForEnvironment(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	n.rigs["a"].do(t, "POST", "/v1/sessions", `{"on_live":"wait","wait_seconds":60}`)
	created := n.rigs["b"].creates
	if len(created) != 1 || created[0].Wait <= 0 || created[0].Wait.Seconds() > 60 || created[0].WaitsForPlace() {
		t.Errorf("created %+v", created)
	}
}

// A create waits for a full node, also if another one does not answer. If none answers, it does not
// wait.
func TestWaitBesideADeadNode(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	n.set(func() { n.at("b", "http://127.0.0.1:1") })
	a := n.rigs["a"]
	a.err = fault.New(fault.TooManySessions, "fake", "full")
	answer, body := a.do(t, "POST", "/v1/sessions", `{"wait_seconds":1}`)
	if answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "stayed in use for wait_seconds") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	n.set(func() { n.node("a").Draining = true })
	waitFor(t, func() bool { // the line may be reading the nodes as they were
		a.server.cluster.Peers.Forget()
		self, err := a.server.cluster.Peers.Node(t.Context(), "a")
		return err == nil && self.Draining
	})
	if answer, body := a.do(t, "POST", "/v1/sessions", `{"wait_seconds":60}`); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "node_unavailable") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// A create for a user for whom its caller may not act is refused, and does not wait.
func TestNoTurnForStrangers(t *testing.T) {
	f := newFullNodes(t, "a", "b")
	a := f.rigs["a"]
	a.everyUser = false
	a.server.cluster.Wants = func(context.Context, request.Create) (placement.Wanted, error) {
		return placement.Wanted{UserID: "stranger"}, nil
	}
	a.do(t, "POST", "/v1/sessions", `{"restore_from_environment_id":"`+liveID+`","wait_seconds":600}`) // returns, so it did not wait
}
