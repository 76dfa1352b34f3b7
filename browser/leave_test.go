package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// leaving is a page that writes into every storage in its unload handlers, sends a beacon
// whose answer sets cookies, and asks for confirmation before that.
const leaving = `<!doctype html><script>
window.seen = ["js", "sent"].map(n => (document.cookie.match(n + "_session=(\\w+)") || [])[1] + "," + (document.cookie.match(n + "_kept=(\\w+)") || [])[1])
	.concat(localStorage.token, sessionStorage.token).join("|");
const write = (v) => { localStorage.token = sessionStorage.token = v; document.cookie = "js_session=" + v; document.cookie = "js_kept=" + v + "; max-age=3600"; };
if (!localStorage.token) {
	write("one");
	addEventListener("pagehide", () => { write("last"); navigator.sendBeacon("/sent"); });
	if (location.search) addEventListener("beforeunload", (e) => e.preventDefault());
}
</script>`

// What a site writes while Chrome closes is restored, not what was captured before: from
// an unload handler, and from the answer to its last request. One of two tabs asks for
// confirmation before.
func TestCloseRunsUnloadHandlers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/sent":
			w.Header().Add("Set-Cookie", "sent_session=last; Path=/")
			w.Header().Add("Set-Cookie", "sent_kept=last; Path=/; Max-Age=3600")
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, leaving)
		default:
			http.NotFound(w, req)
		}
	}))
	defer server.Close()
	r := newRig(t)
	b := r.fresh()
	tabs := []string{server.URL + "/", strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/?ask"}
	for _, url := range tabs {
		r.open(b, url)
		r.touch(b, url)
	}
	doc := r.closed(b)
	before := 0
	for _, c := range doc.Cookies {
		if strings.HasPrefix(c.Name, "js_") {
			before++
			if c.Value != "one" {
				t.Fatalf("%s was %q before the page was left", c.Name, c.Value)
			}
		}
	}
	if before != 4 {
		t.Fatalf("%d cookies were captured, want two of each tab", before)
	}
	back, _ := r.restored(b.dir, doc, Options{RestoreTabs: true})
	for _, url := range tabs {
		if got, want := r.eval(back, url, "window.seen"), "last,last|last,last|last|last"; got != want {
			t.Errorf("the first script of %s saw %s, want %s", url, got, want)
		}
	}
	if pages, err := back.Pages(within(t)); err != nil || len(pages) != 2 {
		t.Errorf("tabs: %+v, %v", pages, err)
	}
}

// touch clicks into a tab, as a user would. Without a click Chrome does not run a page's
// beforeunload dialog.
func (r *rig) touch(b *Browser, url string) {
	r.t.Helper()
	yes := true
	at, err := cdp.Call(within(r.t), b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: r.page(b, url), Flatten: &yes})
	if err != nil {
		r.t.Fatal(err)
	}
	s := b.driver.Session(at.SessionID)
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		if _, err := cdp.Call(within(r.t), s, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: 50, Y: 50, Button: input.MouseButtonLeft, ClickCount: 1}); err != nil {
			r.t.Fatal(err)
		}
	}
	await(r.t, "the page was touched", func() bool { return r.eval(b, url, "navigator.userActivation.hasBeenActive") == "true" })
}

// Scroll position and form input from just before the close are restored, for tabs in
// front and in the background.
func TestCloseKeepsScrollAndForms(t *testing.T) {
	const form = `<form><input id=field name=field></form><div style="height:9000px">`
	r := newRig(t)
	s := newSite(t, map[string]string{"/back": form, "/front": form})
	b := r.fresh()
	r.open(b, s.url+"/back")
	r.open(b, s.url+"/front")
	for _, path := range []string{"/back", "/front"} {
		r.eval(b, s.url+path, `scrollTo(0, 700); field.value = "typed"; 0`)
	}
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	back, _ := r.restored(b.dir, doc, Options{RestoreTabs: true})
	for _, path := range []string{"/back", "/front"} {
		await(t, path+" as it was", func() bool {
			return r.eval(back, s.url+path, `scrollY + " " + field.value`) == "700 typed"
		})
	}
}

// A page that is busy when Chrome closes keeps its scroll position and form input too, and
// runs its pagehide handlers.
func TestCloseOfABusyPage(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/busy": `<form><input id=field name=field></form><div style="height:9000px">
		<script>addEventListener("pagehide", () => { localStorage.left = "yes"; });</script>`})
	b := r.fresh()
	r.open(b, s.url+"/busy")
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	r.eval(b, s.url+"/busy", `scrollTo(0, 700); field.value = "typed";
		setTimeout(() => { for (const until = Date.now() + 1000; Date.now() < until;); }, 10); 0`)
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	back, _ := r.restored(b.dir, doc, Options{RestoreTabs: true})
	await(t, "the page is as it was", func() bool {
		return r.eval(back, s.url+"/busy", `scrollY + " " + field.value + " " + localStorage.left`) == "700 typed yes"
	})
}

// hungTab is a session of a page that hangs. The browser process answers for it.
type hungTab struct {
	cdp.Session
	states []page.SetWebLifecycleStateState
}

func (s *hungTab) Call(ctx context.Context, method string, params, _ any) error {
	if method != page.SetWebLifecycleState.Method {
		<-ctx.Done()
		return ctx.Err()
	}
	s.states = append(s.states, params.(page.SetWebLifecycleStateParams).State)
	return nil
}

// A page that hangs is active again when Chrome quits, and is waited for only once.
func TestFlushOfATabThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tab := time.Now(), &hungTab{}
		flushTab(t.Context(), tab)
		if len(tab.states) != 2 || tab.states[1] != page.SetWebLifecycleStateStateActive {
			t.Errorf("the page was set to %q", tab.states)
		}
		if took := time.Since(began); took != flushTabDeadline {
			t.Errorf("it took %s", took)
		}
	})
}
