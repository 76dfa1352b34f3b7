package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/e2e/daemon"
)

// exceeded is the quota of a quota_exceeded.
type exceeded struct {
	Quota struct {
		Name  string
		Limit int
		Of    string
		ID    string
	}
}

// refusedBy checks that an answer is a quota_exceeded of one quota.
func refusedBy(t *testing.T, a daemon.Answer, name, of, id string, limit int) {
	t.Helper()
	wants(t, a, http.StatusTooManyRequests, "quota_exceeded")
	var e exceeded
	a.Into(t, &e)
	if q := e.Quota; q.Name != name || q.Of != of || q.ID != id || q.Limit != limit || !strings.Contains(string(a.Body), "quotas."+name) || a.Header.Get("Retry-After") == "" {
		t.Errorf("refused by %+v, want the quota %s of the %s %s, which is %d\n%s", q, name, of, id, limit, a.Body)
	}
}

// useOf returns how much a user uses of a quota.
func useOf(t *testing.T, d *daemon.Daemon, user, name string) int {
	t.Helper()
	var u struct {
		Use map[string]struct{ Used int }
	}
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/users/"+user, nil).Into(t, &u)
	return u.Use[name].Used
}

// quotaKey makes a key with quotas and returns its ID and secret.
func quotaKey(t *testing.T, d *daemon.Daemon, user string, quotas obj) (id, secret string) {
	t.Helper()
	var k struct{ ID, Secret string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/keys", obj{"name": user, "user_id": user, "rights": []string{"use"}, "quotas": quotas}).Into(t, &k)
	return k.ID, k.Secret
}

func setQuotas(t *testing.T, d *daemon.Daemon, user string, quotas obj) {
	t.Helper()
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, obj{"quotas": quotas})
}

// atOnce makes 50 calls at once and returns how many succeeded. The others must be refused
// by one quota, or with the code too.
func atOnce(t *testing.T, call func() daemon.Answer, refused func(daemon.Answer), too string) int {
	t.Helper()
	var good atomic.Int32
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			switch a := call(); {
			case a.Status < 300:
				good.Add(1)
			case too == "" || a.Code() != too:
				refused(a)
			}
		})
	}
	calls.Wait()
	return int(good.Load())
}

const cookieFile = "# Netscape HTTP Cookie File\na.example\tFALSE\t/\tFALSE\t4102444800\tname\tvalue\n"

// importAs imports a file of cookies.
func importAs(t *testing.T, d *daemon.Daemon, key string, body io.Reader) daemon.Answer {
	t.Helper()
	return d.Send(t, key, http.MethodPost, "/v1/snapshots?format=netscape", body, http.Header{"Content-Type": {"text/plain"}})
}

// TestAttackQuotasOfKeys has two keys of one user: each is limited by its own quotas.
func TestAttackQuotasOfKeys(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	id, small := quotaKey(t, d, "alice", obj{"sessions": 2})
	large := newKey(t, d, "alice")
	made := atOnce(t, func() daemon.Answer { return d.CallAs(t, small, http.MethodPost, "/v1/sessions", obj{}) },
		func(a daemon.Answer) { refusedBy(t, a, "sessions", "key", id, 2) }, "")
	if made != 2 {
		t.Errorf("of 50 creates %d made a session", made)
	}
	beginAs(t, d, large, obj{})
	var list struct {
		Keys []struct {
			ID     string
			Quotas struct{ Sessions *int }
			Use    map[string]struct {
				Used  int
				Limit *int
			}
		}
	}
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/keys", nil).Into(t, &list)
	for _, k := range list.Keys {
		if use := k.Use["sessions"]; k.ID == id && (use.Used != 2 || use.Limit == nil || *use.Limit != 2) {
			t.Errorf("the key uses %+v", k)
		}
	}
	wants(t, d.CallAs(t, large, http.MethodPatch, "/v1/keys/"+id, obj{"quotas": obj{"sessions": 3}}), http.StatusForbidden, "forbidden")
	wants(t, d.Call(t, http.MethodPatch, "/v1/keys/"+id, obj{"quotas": obj{"standbys": 3}}), http.StatusUnprocessableEntity, "unsupported")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/keys/"+id, obj{"quotas": obj{"sessions": 3}})
	beginAs(t, d, small, obj{})
	refusedBy(t, d.CallAs(t, small, http.MethodPost, "/v1/sessions", obj{}), "sessions", "key", id, 3)
}

// TestAttackQuotasOfStorage fills the quotas of snapshots and of bytes. What somebody asks for is
// refused, but the end of a session that runs is saved.
func TestAttackQuotasOfStorage(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--max-sessions", "8"}})
	t.Run("snapshots", func(t *testing.T) {
		alice := newKey(t, d, "alice")
		setQuotas(t, d, "alice", obj{"snapshots": 3})
		full := func(a daemon.Answer) { t.Helper(); refusedBy(t, a, "snapshots", "user", "alice", 3) }
		create := func() daemon.Answer { return d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{}) }
		first := beginAs(t, d, alice, obj{})
		finish(t, d, first.ID, toFiles)
		var mu sync.Mutex
		var made []liveSession
		n := atOnce(t, func() daemon.Answer {
			a := create()
			if a.Status == http.StatusCreated {
				var s liveSession
				a.Into(t, &s)
				mu.Lock()
				made = append(made, s)
				mu.Unlock()
			}
			return a
		}, full, "")
		if n != 2 {
			t.Fatalf("beside one snapshot of three, %d sessions were made", n)
		}
		full(d.CallAs(t, alice, http.MethodPost, "/v1/sessions/"+made[0].ID+"/snapshots", obj{}))
		full(importAs(t, d, alice, strings.NewReader(cookieFile)))
		var saved []string
		for _, s := range made {
			saved = append(saved, finish(t, d, s.ID, toFiles).Snapshot.ID)
		}
		if use := useOf(t, d, "alice", "snapshots"); use != 3 {
			t.Errorf("it has %d snapshots", use)
		}
		full(create())
		reading := beginAs(t, d, alice, obj{"read_only": true, "restore_from_session_id": first.ID})
		finish(t, d, reading.ID, throwAway)
		for _, id := range saved {
			d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+id, nil)
		}
		n = atOnce(t, func() daemon.Answer { return importAs(t, d, alice, strings.NewReader(cookieFile)) }, full, "too_many_imports")
		if use := useOf(t, d, "alice", "snapshots"); n != 2 || use != 3 {
			t.Errorf("%d imports were made, and there are %d snapshots", n, use)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		bob := newKey(t, d, "bob")
		setQuotas(t, d, "bob", obj{"bytes": 1})
		full := func(a daemon.Answer) { t.Helper(); refusedBy(t, a, "bytes", "user", "bob", 1) }
		one, two := beginAs(t, d, bob, obj{}), beginAs(t, d, bob, obj{})
		idle := beginAs(t, d, bob, obj{"idle_timeout_seconds": 1})
		finish(t, d, one.ID, toFiles)
		full(d.CallAs(t, bob, http.MethodPost, "/v1/sessions/"+two.ID+"/snapshots", obj{}))
		if e := finish(t, d, two.ID, toFiles); e.Snapshot == nil {
			t.Error("a session that ran was not saved at its end")
		}
		daemon.Eventually(t, grace, "the idle session is saved", func() bool { return useOf(t, d, "bob", "snapshots") == 3 && look(t, d, idle.ID).Status == "terminated" })
		used := useOf(t, d, "bob", "bytes")
		if made := atOnce(t, func() daemon.Answer { return d.CallAs(t, bob, http.MethodPost, "/v1/sessions", obj{}) }, full, ""); made > 0 || used < 2 {
			t.Errorf("with %d bytes %d sessions were made", used, made)
		}
		refused := importAs(t, d, bob, strings.NewReader(cookieFile))
		if full(refused); strings.Contains(string(refused.Body), "read_only") {
			t.Errorf("an import gets the advice for a create: %s", refused.Body)
		}
		beginAs(t, d, bob, obj{"read_only": true, "restore_from_session_id": two.ID})
	})
	t.Run("of a key", func(t *testing.T) {
		id, key := quotaKey(t, d, "carol", obj{"snapshots": 1})
		finish(t, d, beginAs(t, d, key, obj{}).ID, toFiles)
		refusedBy(t, d.CallAs(t, key, http.MethodPost, "/v1/sessions", obj{}), "snapshots", "key", id, 1)
		begin(t, d, obj{"user_id": "carol"}) // another key of the user's
	})
}

// TestAttackQuotasOfKeptChromes parks more Chromes than a user may have: the oldest of that user
// give way, and their files stay. It also asks for too many standbys.
func TestAttackQuotasOfKeptChromes(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Standby: 2, Args: []string{"--engine", "shell", "--max-sessions", "6", "--parked", "6", "--default-quota", "parked=1,standbys=1"}})
	alice := newKey(t, d, "alice")
	other := begin(t, d, obj{"user_id": "bob"})
	finish(t, d, other.ID, toMemory)
	var sessions []liveSession
	for range 3 {
		sessions = append(sessions, beginAs(t, d, alice, obj{}))
	}
	for _, s := range sessions {
		finish(t, d, s.ID, toMemory)
	}
	if alice, bob := useOf(t, d, "alice", "parked"), useOf(t, d, "bob", "parked"); alice != 1 || bob != 1 {
		t.Errorf("alice has %d parked Chromes, bob %d", alice, bob)
	}
	for i, want := range []string{"cold", "cold", "parked"} {
		back := begin(t, d, obj{"user_id": "alice", "restore_from_session_id": sessions[i].ID})
		if back.Restored.Path != want {
			t.Errorf("session %d came back %s, want %s", i, back.Restored.Path, want)
		}
		finish(t, d, back.ID, toFiles+andDefault)
	}
	refusedBy(t, d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"standby": 2}), "standbys", "user", "alice", 1)
	if made := atOnce(t, func() daemon.Answer {
		return d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"standby": 1})
	},
		func(a daemon.Answer) { t.Errorf("%d %s", a.Status, a.Body) }, ""); made != 50 {
		t.Errorf("%d settings were made", made)
	}
	daemon.Eventually(t, backgroundDeadline, "a standby is ready", func() bool { return useOf(t, d, "alice", "standbys") == 1 })
}

// TestAttackQuotasOfConnections has more imports, sockets and requests than the quotas allow.
func TestAttackQuotasOfConnections(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	t.Run("imports", func(t *testing.T) {
		alice := newKey(t, d, "alice")
		setQuotas(t, d, "alice", obj{"imports": 1})
		slow, upload := io.Pipe()
		running := make(chan error, 1)
		first, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/v1/snapshots?format=netscape", slow)
		if err != nil {
			t.Fatal(err)
		}
		first.Header.Set("Authorization", "Bearer "+alice)
		first.Header.Set("Content-Type", "text/plain")
		go func() {
			answer, err := http.DefaultClient.Do(first)
			if err == nil {
				if answer.StatusCode != http.StatusCreated {
					err = errors.New(answer.Status)
				}
				err = errors.Join(err, answer.Body.Close())
			}
			running <- err
		}()
		if _, err := io.WriteString(upload, cookieFile); err != nil {
			t.Fatal(err)
		}
		daemon.Eventually(t, grace, "the import has begun", func() bool { return useOf(t, d, "alice", "imports") == 1 })
		if n := atOnce(t, func() daemon.Answer { return importAs(t, d, alice, strings.NewReader(cookieFile)) },
			func(a daemon.Answer) { refusedBy(t, a, "imports", "user", "alice", 1) }, ""); n > 0 {
			t.Errorf("%d imports were made beside one that runs", n)
		}
		_ = upload.Close()
		if err := <-running; err != nil {
			t.Errorf("the first import: %v", err)
		}
		if a := importAs(t, d, alice, strings.NewReader(cookieFile)); a.Status != http.StatusCreated {
			t.Errorf("a later import: %d %s", a.Status, a.Body)
		}
	})
	t.Run("sockets", func(t *testing.T) {
		setQuotas(t, d, "bob", obj{"sockets": 3})
		s, another := begin(t, d, obj{"user_id": "bob"}), begin(t, d, obj{"user_id": "bob"})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		stream, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/v1/sessions/"+s.ID+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		stream.Header.Set("Authorization", "Bearer "+daemon.Key)
		following, err := http.DefaultClient.Do(stream)
		if err != nil || following.StatusCode != http.StatusOK {
			t.Fatalf("the stream of events: %v", err)
		}
		defer following.Body.Close()
		var open, refused atomic.Int32
		var dials sync.WaitGroup
		conns := make(chan *websocket.Conn, 50)
		for i := range 50 {
			dials.Go(func() {
				conn, answer, err := websocket.Dial(ctx, []string{s.CDP, another.CDP}[i%2], nil) //nolint:bodyclose // Dial has read and closed it
				switch {
				case err == nil:
					open.Add(1)
					conns <- conn
				case answer != nil && answer.StatusCode == http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("a socket: %v", err)
				}
			})
		}
		dials.Wait()
		if open.Load() != 2 || refused.Load() != 48 || useOf(t, d, "bob", "sockets") != 3 {
			t.Errorf("%d sockets are open, %d were refused, and %d are counted", open.Load(), refused.Load(), useOf(t, d, "bob", "sockets"))
		}
		refusedBy(t, d.Send(t, daemon.Key, http.MethodGet, "/v1/sessions/"+another.ID+"/events", nil, nil), "sockets", "user", "bob", 3)
		_ = (<-conns).CloseNow()
		_ = (<-conns).CloseNow()
		end()
		daemon.Eventually(t, grace, "the sockets are closed", func() bool { return useOf(t, d, "bob", "sockets") == 0 })
	})
	t.Run("requests", func(t *testing.T) {
		setQuotas(t, d, "carol", obj{"requests_per_second": 20})
		id, key := quotaKey(t, d, "carol", obj{"requests_per_second": 5})
		_, unlimited := quotaKey(t, d, "dave", obj{})
		if h := d.CallAs(t, unlimited, http.MethodGet, "/v1/me", nil).Header; h.Get("RateLimit") != "" || h.Get("RateLimit-Policy") != "" {
			t.Errorf("without a quota: %v", h)
		}
		policy := regexp.MustCompile(`^"user";q=20;w=1, "key";q=5;w=1$`)
		left := regexp.MustCompile(`^"user";r=(1?\d|20);t=[01], "key";r=[0-5];t=[01]$`)
		began := time.Now()
		n := atOnce(t, func() daemon.Answer {
			a := d.CallAs(t, key, http.MethodGet, "/v1/me", nil)
			if !policy.MatchString(a.Header.Get("RateLimit-Policy")) || !left.MatchString(a.Header.Get("RateLimit")) {
				t.Errorf("the headers are %q and %q", a.Header.Get("RateLimit-Policy"), a.Header.Get("RateLimit"))
			}
			return a
		}, func(a daemon.Answer) {
			refusedBy(t, a, "requests_per_second", "key", id, 5)
			if a.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After: %s", a.Header.Get("Retry-After"))
			}
		}, "")
		if most := 5 + int(5*time.Since(began).Seconds()) + 1; n < 5 || n > most {
			t.Errorf("of 50 requests %d were served in %s, want from 5 to %d", n, time.Since(began), most)
		}
		daemon.Eventually(t, grace, "the key is served again", func() bool { return d.CallAs(t, key, http.MethodGet, "/v1/me", nil).Status == http.StatusOK })
	})
}
