package e2e

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // authenticators use it (RFC 6238)
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/webapp"
	"github.com/stasisd/stasis/e2e/daemon"
)

// A person who has only the console logs in by hand: at DokuWiki, and at a site with a list, a
// pop-up, a second factor, an upload, a download and a dialog. The person saves both logins
// as the default. Playwright is logged in at both then. See clients/byhand.mjs.
func TestLoginByHand(t *testing.T) {
	t.Parallel()
	app := apps.Start(t, webapp.StartDokuWiki)
	site := &factorSite{secret: []byte("a secret of the site"), name: "Zoë 🦊"}
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "photo of Zoë.txt")
	if err := os.WriteFile(file, []byte("a photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	in, err := json.Marshal(obj{"url": d.URL, "key": daemon.Key, "user": "zoë", "wiki": app.URL + "/doku.php?id=start&do=login", "wiki_user": app.User,
		"wiki_password": app.Password, "site": server.URL, "secret": hex.EncodeToString(site.secret), "file": file, "timeout_ms": stepDeadline.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	node(t, in, "clients/byhand.mjs")
	site.mu.Lock()
	if site.uploaded != "a photo" || !site.trusted {
		t.Errorf("the site got %q, trusted is %t", site.uploaded, site.trusted)
	}
	site.mu.Unlock()
	s := create(t, d, body{"restore_default_environment_from_user_id": "zoë"})
	drive(t, playwright, s.CDP,
		visit(app.URL+"/doku.php?id=start"), await(`document.body.innerText.includes("Members only") && document.body.innerText.includes("Ada Lovelace")`),
		visit(server.URL+"/"), await(`document.title === "welcome Zoë 🦊"`))
	end(t, d, s.ID, "")
}

// factorSite is a site whose login needs a name, a country, the consent in a pop-up and a code
// of an authenticator. Every element is at a fixed place.
type factorSite struct {
	secret []byte
	name   string // of the only account

	mu       sync.Mutex
	uploaded string
	trusted  bool
}

// code returns the code of an authenticator (RFC 6238) at a time.
func (s *factorSite) code(at time.Time) string {
	mac := hmac.New(sha1.New, s.secret)
	_ = binary.Write(mac, binary.BigEndian, at.Unix()/30) // never fails (hash.Hash)
	sum := mac.Sum(nil)
	from := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[from:])&0x7fffffff)%1_000_000)
}

func (s *factorSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	has := func(name, value string) bool { c, err := r.Cookie(name); return err == nil && c.Value == value }
	page := func(title string, elements ...string) {
		_, _ = fmt.Fprintf(w, "<title>%s</title><form method=post enctype=multipart/form-data>", title)
		for i, e := range elements {
			_, _ = fmt.Fprintf(w, `<p style="position:absolute;margin:0;left:50px;top:%dpx">%s</p>`, 50+50*i, e)
		}
	}
	now := time.Now()
	in := has("session", "6d8c1f0a9b3e47d2")
	switch post := r.Method == http.MethodPost; {
	case r.URL.Path == "/consent" && post:
		http.SetCookie(w, &http.Cookie{Name: "consent", Value: "yes"})
		_, _ = fmt.Fprint(w, "<script>close()</script>")
	case r.URL.Path == "/consent":
		page("consent", "<button>I agree</button>")
	case r.URL.Path == "/factor" && post && (r.FormValue("code") == s.code(now) || r.FormValue("code") == s.code(now.Add(-30*time.Second))):
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "6d8c1f0a9b3e47d2", MaxAge: 3600, HttpOnly: true, Path: "/"})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case r.URL.Path == "/factor":
		page("second factor", "<input name=code autocomplete=one-time-code>")
	case r.URL.Path == "/codes" && in:
		w.Header().Set("Content-Disposition", `attachment; filename="codes.txt"`)
		_, _ = fmt.Fprint(w, "spare codes")
	case r.URL.Path == "/upload" && in:
		text, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.uploaded = string(text)
		s.mu.Unlock()
	case r.URL.Path == "/trust" && in:
		s.mu.Lock()
		s.trusted = true
		s.mu.Unlock()
	case in:
		page("welcome "+s.name,
			`<input type=file onchange="fetch('/upload',{method:'POST',body:this.files[0]}).then(()=>{document.title='uploaded'})">`,
			`<a href=/codes>Spare codes</a>`,
			`<button type=button onclick="if(confirm('Trust this browser?'))fetch('/trust').then(()=>{document.title='trusted'})">Trust</button>`)
	case post && r.FormValue("name") == s.name && r.FormValue("country") == "se" && has("consent", "yes"):
		http.Redirect(w, r, "/factor", http.StatusSeeOther)
	default:
		page("sign in", "<input name=name>", "<select name=country><option value=fi>Finland<option value=se>Sweden</select>",
			"<button type=button onclick=\"window.open('/consent')\">Terms</button>", "<button>Sign in</button>")
	}
}
