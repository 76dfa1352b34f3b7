package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stasisd/stasis/state"
)

// Chrome connects only to the sites of its pages: not to others at its start, for a page
// with a login form, at its close or in a restore.
func TestChromeConnectsOnlyToSites(t *testing.T) {
	t.Parallel()
	const own = "http://own.example"
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked = append(asked, req.Host)
		mu.Unlock()
		if req.Host != "own.example" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if req.Method == http.MethodPost {
			http.Redirect(w, req, "/in", http.StatusSeeOther)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<title>own</title><form action=/in method=post><input name=name autocomplete=name><input name=email autocomplete=email>
			<input name=street autocomplete=street-address><input name=password type=password autocomplete=current-password><textarea name=words></textarea></form>`)
	}))
	t.Cleanup(proxy.Close)
	r := newRig(t)
	o := Options{RestoreTabs: true, Overrides: state.Overrides{Proxy: &state.Proxy{Server: proxy.URL, Bypass: "<-loopback>"}}}
	b, err := r.Fresh(within(t), r.dir(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, own+"/login")
	r.eval(b, own+"/login", `for (const field of document.forms[0]) { field.focus(); document.execCommand("insertText", false, "wrods of a fiedl") }
		document.forms[0].submit()`)
	r.eval(b, own+"/in", "1")
	doc := r.closed(b)
	back, _ := r.restored(r.copied(b), doc, o)
	r.eval(back, own+"/in", "1")
	r.open(back, own+"/later")
	r.closed(back)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(asked)
	if hosts := slices.Compact(asked); !slices.Equal(hosts, []string{"own.example"}) {
		t.Errorf("Chrome connected to %q", hosts)
	}
}
