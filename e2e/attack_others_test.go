package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// othersStorage checks that two sessions share nothing on the same site.
func othersStorage(t *testing.T, p *attackSetup) {
	p.w.open(p.page, p.site.URL+"/check")
	p.w.eval(p.page, `new Promise(ok => { const i = setInterval(() => { if (window.__state) { clearInterval(i); ok() } }, 20) })`)
	got := p.w.eval(p.page, `JSON.stringify(window.__state) + document.cookie + JSON.stringify(localStorage)`)
	if strings.Contains(got, planted) {
		t.Errorf("the attacker's page sees the other's state: %s", got)
	}
	for _, c := range []struct {
		session, method string
		params          obj
	}{
		{"", "Storage.getCookies", obj{}}, {p.page, "Network.getAllCookies", obj{}},
		{p.page, "DOMStorage.getDOMStorageItems", obj{"storageId": obj{"securityOrigin": p.site.URL, "isLocalStorage": true}}},
	} {
		if r := p.w.try(c.session, c.method, c.params); r.Error != nil || strings.Contains(string(r.Result), planted) {
			t.Errorf("%s: %+v shows the other's state: %s", c.method, r.Error, r.Result)
		}
	}
	// The other session's state is unchanged.
	s := p.otherW.attach(p.otherTab)
	if got := p.otherW.eval(s, `localStorage.getItem("mine")`); got != planted {
		t.Errorf("the other's localStorage: %q", got)
	}
}

// othersByTheAPI checks that keys of one user, and tickets of one session, open nothing
// of another.
func othersByTheAPI(t *testing.T, p *attackSetup) {
	alice, bob := newKey(t, p.d, "alice"), newKey(t, p.d, "bob")
	for _, c := range []struct{ method, path string }{
		{"GET", ""}, {"GET", "/status"}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/cancel"}, {"GET", "/screenshot"},
		{"GET", "/files"}, {"GET", "/files/secret.txt"}, {"DELETE", "/files/secret.txt"}, {"GET", "/snapshots"}, {"GET", "/restore-report"},
		{"GET", "/messages"}, {"GET", "/notes"}, {"GET", "/runs"}, {"GET", "/events"},
		{"GET", "/json/version"}, {"GET", "/json/list"},
	} {
		wants(t, p.d.CallAs(t, alice, c.method, at(p.other.ID, c.path), nil), 404, "session_not_found")
	}
	wants(t, p.d.CallAs(t, alice, http.MethodPost, at(p.other.ID, "/message"), obj{"type": "LOG", "message": "x"}), 404, "session_not_found")
	wants(t, p.d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"session_id": p.other.ID}), 409, "session_exists")
	wants(t, p.d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"restore_from_session_id": p.other.ID}), 404, "snapshot_not_found")
	wants(t, p.d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"user_id": "bob"}), 403, "forbidden")
	wants(t, p.d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"restore_default_environment_from_user_id": "bob"}), 404, "snapshot_not_found")
	wants(t, p.d.CallAs(t, alice, http.MethodGet, "/v1/users/bob/default", nil), 404, "user_not_found")
	wants(t, p.d.CallAs(t, alice, http.MethodDelete, "/v1/sessions?all=true", nil), 403, "forbidden")
	wants(t, p.d.CallAs(t, alice, http.MethodDelete, "/v1/sessions?user_id=bob", nil), 403, "forbidden")
	wants(t, p.d.CallAs(t, alice, http.MethodGet, "/v1/keys", nil), 403, "forbidden")
	wants(t, p.d.CallAs(t, alice, http.MethodPost, "/v1/keys", obj{"name": "x", "user_id": "bob", "rights": []string{"use"}}), 403, "forbidden")
	var gone ending
	p.d.CallAs(t, alice, http.MethodDelete, at(p.other.ID, "?", toFiles), nil).Into(t, &gone)
	if gone.Deleted || gone.Snapshot != nil {
		t.Errorf("delete of another user's session: %+v", gone)
	}
	for key, id := range map[string]string{alice: p.own.ID, bob: p.other.ID} {
		var list []liveSession
		p.d.CallAs(t, key, http.MethodGet, "/v1/sessions", nil).Into(t, &list)
		if len(list) != 1 || list[0].ID != id {
			t.Errorf("a user's list: %+v, want %s alone", list, id)
		}
	}
	_, ticket, _ := strings.Cut(p.own.CDP, "ticket=")
	base, _, _ := strings.Cut(p.other.CDP, "?")
	for url, want := range map[string]int{
		base + "?ticket=" + ticket: 401, base: 401, base + "?ticket=": 401, base + "?ticket=" + strings.ToLower(ticket): 401,
	} {
		if got := refusedUpgrade(t, url, nil); got != want {
			t.Errorf("dial %s = %d, want %d", url, got, want)
		}
	}
	if got := refusedUpgrade(t, base, http.Header{"X-Api-Key": {alice}}); got != 404 {
		t.Errorf("dial with another user's key = %d", got)
	}
	for _, origin := range []string{"https://evil.example", "null", p.site.URL, "http://127.0.0.1"} {
		if got := refusedUpgrade(t, p.own.CDP, http.Header{"Origin": {origin}}); got != 403 {
			t.Errorf("dial from %s = %d, want 403", origin, got)
		}
	}
	if s := look(t, p.d, p.other.ID); s.Status != "running" {
		t.Errorf("the other's session is %s", s.Status)
	}
}

// othersByTheSystem checks that every Chrome runs as its own user, who cannot enter
// another's folder. Those of an ordinary user run as that user. Landlock keeps them from each
// other's files, see TestLandlockLeavesNothingToRead.
func othersByTheSystem(t *testing.T, p *attackSetup) {
	uids := map[int]bool{}
	for _, pid := range mains(p.d) {
		uids[uidOf(t, pid)] = true
	}
	if ordinaryUserIsAttacked() {
		if len(uids) != 1 || !uids[unprivileged] {
			t.Errorf("users of the two Chromes: %v", uids)
		}
		return
	}
	if len(uids) != 2 || uids[0] {
		t.Fatalf("users of the two Chromes: %v", uids)
	}
	me := ownerOf(t, p.ownDir)
	if me == ownerOf(t, p.otherDir) {
		t.Fatal("both run directories belong to one user")
	}
	for _, path := range []string{p.otherDir, p.secret, filepath.Join(p.otherDir, "profile"), filepath.Join(p.d.Dir, "stasis.db"),
		filepath.Join(p.d.Dir, "identity"), filepath.Join(p.d.Dir, "archive-key"), filepath.Join(p.d.Dir, "snapshots")} {
		if out, err := asUser(me, "cat", path); err == nil {
			t.Errorf("user %d reads %s: %s", me, path, out)
		}
		if out, err := asUser(me, "ls", path+"/"); err == nil {
			t.Errorf("user %d lists %s: %s", me, path, out)
		}
	}
	if out, err := asUser(me, "ls", filepath.Join(p.d.Dir, "run")); err == nil {
		t.Errorf("user %d lists the run folder: %s", me, out)
	}
	if out, err := asUser(me, "ls", p.ownDir); err != nil {
		t.Errorf("user %d cannot list its own: %v %s", me, err, out)
	}
	for _, pid := range mains(p.d) {
		if uidOf(t, pid) != me {
			if out, err := asUser(me, "kill", "-0", fmt.Sprint(pid)); err == nil {
				t.Errorf("user %d can signal process %d: %s", me, pid, out)
			}
		}
	}
}
