package mux

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
)

// Chrome gets the union of the permissions of all contexts.
func TestSharedPermissions(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	grant := func(c *testConn, id int64, permissions string) {
		t.Helper()
		var r struct{ BrowserContextID string }
		if err := json.Unmarshal(c.call(id, "", "Target.createBrowserContext", `{}`).Result, &r); err != nil {
			t.Fatal(err)
		}
		if got := c.call(id+1, "", "Browser.grantPermissions", fmt.Sprintf(`{"origin":"https://a.example","permissions":%s,"browserContextId":%q}`, permissions, r.BrowserContextID)); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	grant(a, 1, `["geolocation"]`)
	grant(b, 3, `["notifications","geolocation"]`)
	grant(a, 5, `["midi"]`)
	sent := f.wait(3, method("Browser.grantPermissions"))
	for i, want := range []string{"[geolocation]", "[geolocation notifications]", "[geolocation midi notifications]"} {
		if got := sent[i].param("permissions"); got != want || sent[i].Session != "" {
			t.Errorf("grant %d: Chrome got %s on %q, want %s", i, got, sent[i].Session, want)
		}
	}
	if got := m.Permissions.Granted(); len(got) != 0 {
		t.Errorf("the environment keeps %v", got)
	}
	close(b.in)
	_ = b.gone(CloseNormal)
	if got := fmt.Sprint(m.Permissions.InForce()); !strings.Contains(got, "[geolocation midi]") {
		t.Errorf("after a client has left, %s are in force", got)
	}
}

// Commands for the default context, also those of clients without shared contexts, keep the
// permissions of shared contexts. What Chrome refuses is not recorded.
func TestSharedPermissionsStay(t *testing.T) {
	m, f := start(t, Options{}, func(_ *fake, q message) []byte {
		if strings.Contains(string(q.Params), "refused") {
			return fmt.Appendf(nil, `{"id":%d,"error":{"code":-32000,"message":"no"}%s}`, *q.ID, sessionMember(q.Session))
		}
		return nil
	})
	regrants := make(chan string, 10)
	m.Hooks.OnRegrant(func(context.Context) { regrants <- fmt.Sprint(m.Permissions.InForce()) })
	a, plain := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{})
	in := fmt.Sprintf(`,"origin":"https://a.example","browserContextId":%q`, a.context(1))
	a.call(2, "", "Browser.grantPermissions", `{"permissions":["geolocation"]`+in+`}`)
	plain.call(3, "", "Browser.grantPermissions", `{"permissions":["camera"],"origin":"https://a.example"}`)
	a.call(4, "", "Browser.grantPermissions", `{"permissions":["midi"],"origin":"https://a.example"}`)
	sent := f.wait(3, method("Browser.grantPermissions"))
	for i, want := range []string{"[geolocation]", "[camera geolocation]", "[geolocation midi]"} {
		if got := sent[i].param("permissions"); got != want {
			t.Errorf("grant %d: Chrome got %s, want %s", i, got, want)
		}
	}
	if got := fmt.Sprint(m.Permissions.Granted()); got != "[{https://a.example  map[]  [midi]}]" {
		t.Errorf("the environment keeps %s", got)
	}
	plain.call(5, "", "Browser.resetPermissions", `{}`)
	if got := <-regrants; !strings.Contains(got, "[geolocation]") || len(m.Permissions.Granted()) != 0 {
		t.Errorf("after a reset, %s are in force", got)
	}
	if got := a.call(6, "", "Browser.grantPermissions", `{"permissions":["refused"]`+in+`}`); got.Error == nil {
		t.Error("not refused")
	}
	if got := fmt.Sprint(m.Permissions.InForce()); !strings.Contains(got, "[geolocation]") {
		t.Errorf("after a refusal, %s are in force", got)
	}
}

// The record of permissions is bounded for each client, and a client that has left adds nothing.
func TestSharedPermissionsLimit(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	grant := func(c *testConn, id int64, context, origin string) message {
		return c.call(id, "", "Browser.setPermission", fmt.Sprintf(`{"permission":{"name":"midi"},"setting":"granted","origin":%q,"browserContextId":%q}`, origin, context))
	}
	grant(b, 2, b.context(1), "https://b.example")
	ours := a.context(1)
	for i := range int64(2 * maxSharedGrants) {
		grant(a, 10+i, ours, fmt.Sprintf("https://a%d.example", i))
	}
	if got := m.Permissions.InForce(); len(got) != maxSharedGrants+1 || got[0].Origin != "https://b.example" {
		t.Errorf("%d are recorded, the first of %s", len(got), got[0].Origin)
	}
	if got := grant(a, 3, ours, "https://"+strings.Repeat("a", maxGrantBytes)); got.Error == nil {
		t.Error("a large permission is recorded")
	}
	// A permission waits until others have been set, and is dropped if its client leaves meanwhile.
	b.call(5, "", "Browser.getVersion", `{}`)
	rootOfB := f.wait(1, func(q message) bool { return q.Method == "Browser.getVersion" && q.Session != "" })[0].Session
	sent := len(f.wait(0, method("Browser.setPermission")))
	m.Permissions.Renew(t.Context(), func([]state.PermissionGrant) {
		b.ask(4, "Browser.setPermission", fmt.Sprintf(`{"permission":{"name":"midi"},"setting":"granted","origin":"https://late.example","browserContextId":%q}`, b.context(9)))
		m.mu.Lock()
		for c := range m.shared.clients {
			if m.sessions.all[c.client.root].id == rootOfB {
				c.client.end(CloseNormal, "", nil, false)
			}
		}
		m.mu.Unlock()
		f.wait(1, method("Target.detachFromTarget"))
	})
	_ = b.gone(CloseNormal)
	if got := m.Permissions.InForce(); len(got) != maxSharedGrants || len(f.wait(0, method("Browser.setPermission"))) != sent {
		t.Errorf("%d are in force", len(got))
	}
}
