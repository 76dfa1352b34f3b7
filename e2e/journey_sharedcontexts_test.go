package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// Unchanged scripts that make browser contexts are logged in when their connection says
// context=environment: two clients of Playwright and one of Puppeteer use a restored session at
// the same time, and none disturbs the others. See clients/sharedcontexts.mjs.
func TestSharedContextsChrome(t *testing.T) { t.Parallel(); sharedContexts(t, browser.EngineChrome) }
func TestSharedContextsShell(t *testing.T)  { t.Parallel(); sharedContexts(t, browser.EngineShell) }

func sharedContexts(t *testing.T, engine string) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/download":
			w.Header().Set("Content-Disposition", `attachment; filename="report.txt"`)
			_, _ = fmt.Fprint(w, "a report")
		case "/renew":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "renewed", Path: "/"})
		case "/api":
			_, _ = fmt.Fprint(w, "real")
		default:
			title := "logged out"
			if c, err := r.Cookie("session"); err == nil && c.Value == "9f3c51d0" {
				title = "logged in"
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, "<title>%s</title>%s", title, title)
		}
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	s := create(t, d, body{"user_id": "ada", "engine": engine})
	drive(t, playwright, s.CDP, visit(site.URL+"/"), evaluate(`document.cookie = "session=9f3c51d0; max-age=3600"; localStorage.theme = "dark"`))
	save(t, d, s.ID, "filesystem", "save_as_default=true")

	s = create(t, d, body{"restore_default_environment_from_user_id": "ada", "default_context": "environment"})
	in, err := json.Marshal(obj{"endpoint": s.CDP, "plain": s.CDP + "&context=new", "allowed": s.CDP + "&shared_writes=allow", "site": site.URL, "timeout_ms": stepDeadline.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	node(t, in, "clients/sharedcontexts.mjs")
	end(t, d, s.ID, "")
}
