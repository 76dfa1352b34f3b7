package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// may returns what a page is permitted to do.
func (r *rig) may(b *Browser, url string, permissions ...string) map[string]string {
	r.t.Helper()
	got := map[string]string{}
	for _, name := range permissions {
		got[name] = r.eval(b, url, fmt.Sprintf("navigator.permissions.query({name: %q}).then(s => s.state)", name))
	}
	return got
}

func (r *rig) checkMay(b *Browser, url string, want map[string]string) {
	r.t.Helper()
	for name, state := range want {
		if got := r.may(b, url, name)[name]; got != state {
			r.t.Errorf("%s at %s is %s, want %s", name, url, got, state)
		}
	}
}

// client connects a client. leave disconnects it and waits.
func (r *rig) client(b *Browser) (c *conn, leave func()) {
	c = newConn()
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), c, mux.ServeOptions{Admission: b.Admission()}) }()
	return c, func() {
		c.call(r.t, `{"id":99,"method":"Browser.close"}`)
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	}
}

func TestPermissionsOfThePolicyAndOfClients(t *testing.T) {
	r, s := newRig(t), newSite(t, nil)
	o := Options{RestoreTabs: true, Overrides: state.Overrides{
		Geolocation: &state.Geolocation{Latitude: 1, Longitude: 2, Accuracy: 3},
		PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionDeny, Rules: []state.PermissionRule{
			{Permission: "notifications", Origin: "*", Decision: state.DecisionAllow},
			{Permission: "camera", Origin: s.url, Decision: state.DecisionAllow},
		}}}}
	b, err := r.Fresh(within(t), r.dir(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	at := s.url + "/page"
	r.open(b, at)
	want := map[string]string{"geolocation": "granted", "notifications": "granted", "camera": "granted", "microphone": "denied", "clipboard-read": "denied"}
	r.checkMay(b, at, want)
	if got := r.eval(b, at, "new Promise((ok, no) => navigator.geolocation.getCurrentPosition(p => ok(p.coords.latitude + ' ' + p.coords.longitude), no))"); got != "1 2" {
		t.Errorf("the page is at %s", got)
	}

	c, leave := r.client(b)
	c.call(t, `{"id":1,"method":"Browser.setPermission","params":{"permission":{"name":"clipboard-read"},"setting":"granted","origin":"`+s.url+`"}}`)
	c.call(t, `{"id":2,"method":"Browser.setPermission","params":{"permission":{"name":"midi"},"setting":"granted"}}`)
	leave()
	want["clipboard-read"], want["midi"] = "granted", "granted"
	r.checkMay(b, at, want)
	doc := r.closed(b)

	b, report := r.restored(b.dir, doc, Options{RestoreTabs: true})
	r.checkMay(b, at, want)
	if got := line(report, state.ComponentPermissions, ""); got.Saved != 2 || got.Restored != 2 {
		t.Errorf("the report says %+v", got)
	}
	c, leave = r.client(b)
	c.call(t, `{"id":1,"method":"Browser.resetPermissions"}`)
	leave()
	want["clipboard-read"], want["midi"] = "denied", "denied"
	r.checkMay(b, at, want)
	doc = r.closed(b)

	// Another policy replaces the saved one, including its rules.
	b, report = r.restored(b.dir, doc, Options{RestoreTabs: true, Overrides: state.Overrides{
		PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionAllow, Rules: []state.PermissionRule{
			{Permission: "notifications", Origin: s.url, Decision: state.DecisionDeny}}}}})
	r.checkMay(b, at, map[string]string{"notifications": "denied", "microphone": "granted", "camera": "granted", "geolocation": "granted"})
	if got := line(report, state.ComponentOverrides, ""); got.Saved != 2 || got.Restored != 1 || got.Dropped != 1 {
		t.Errorf("the report says %+v", got)
	}
	if got := line(report, state.ComponentPermissions, ""); got.Saved != 0 {
		t.Errorf("permissions were restored after their reset: %+v", got)
	}
}

// closed captures a browser and closes it.
func (r *rig) closed(b *Browser) state.Document {
	r.t.Helper()
	doc, err := b.Capture(within(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(r.t)); err != nil || doc.Datadir != state.DatadirClean {
		r.t.Fatal(doc.Datadir, err)
	}
	return doc
}

// A client's overrides end with the client, and pages that it opens are set up first.
func TestOverridesBesideThoseOfAClient(t *testing.T) {
	r, m := newRig(t), newMirror(t)
	b, err := r.Fresh(within(t), r.dir(), Options{Overrides: allOverrides})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	c, leave := r.client(b)
	c.call(t, `{"id":1,"method":"Target.createTarget","params":{"url":"`+m.url+`/late"}}`)
	checkReport(t, "late", m.reports(t, "late")["late"])
	if got := m.header("late", "X-Extra"); got != "yes" {
		t.Errorf("the first request of a client's page had X-Extra %q", got)
	}
	url := m.url + "/late"
	session := c.attach(t, r.page(b, url))
	c.call(t, `{"id":2,"sessionId":"`+session+`","method":"Emulation.setDeviceMetricsOverride","params":{"width":555,"height":444,"deviceScaleFactor":1,"mobile":false}}`)
	await(t, "for the client the page has its viewport", func() bool { return r.eval(b, url, "innerWidth") == "555" })
	leave()
	await(t, "the session's own viewport is back", func() bool { return r.eval(b, url, "innerWidth") == "400" })
}
