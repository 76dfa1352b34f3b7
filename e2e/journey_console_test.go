package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A person uses the console in a real browser: signs in, logs in by hand, saves that as the
// default, restores it. axe-core finds nothing serious on any page. See clients/console.mjs.
func TestConsole(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/login" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "6d8c1f0a9b3e47d2", MaxAge: 3600, HttpOnly: true})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		title := "log in"
		if c, err := r.Cookie("session"); err == nil {
			title = "welcome back " + c.Value
		}
		_, _ = fmt.Fprintf(w, "<title>%s &lt;img src=x onerror=alert(1)></title><h1>%s</h1>", title, title)
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	in, err := json.Marshal(obj{"url": d.URL, "key": daemon.Key, "site": site.URL, "timeout_ms": stepDeadline.Milliseconds(), "long": storetest.Long()})
	if err != nil {
		t.Fatal(err)
	}
	node(t, in, "clients/console.mjs")
}
