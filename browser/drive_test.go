package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"image/jpeg"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}

func TestDrive(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	b := r.fresh()
	if !strings.HasPrefix(b.Version(), "1") || !strings.Contains(b.UserAgent(), "Chrome/") ||
		strings.Contains(b.UserAgent(), "Headless") || b.Protocol() == "" {
		t.Errorf("version %q, user agent %q, protocol %q", b.Version(), b.UserAgent(), b.Protocol())
	}
	pages, err := b.Pages(within(t))
	if err != nil || len(pages) != 1 || pages[0].URL != "about:blank" {
		t.Fatalf("%+v, %v", pages, err)
	}

	// Open uses a lone blank tab, else a new tab in front.
	r.open(b, s.url+"/three")
	await(t, "the blank tab has closed", func() bool { pages, err := b.Pages(t.Context()); return err == nil && len(pages) == 1 })
	r.open(b, s.url+"/four")
	shot, url, title, err := b.Screenshot(within(t))
	if err != nil || url != s.url+"/four" || title != "title of /four" {
		t.Fatalf("a screenshot of %q %q, %v", url, title, err)
	}
	r.front(b, s.url+"/three")
	if _, url, _, err = b.Screenshot(within(t)); err != nil || url != s.url+"/three" {
		t.Errorf("a screenshot of %q, %v", url, err)
	}
	img, err := jpeg.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	red, green, _, _ := img.At(img.Bounds().Dx()-20, img.Bounds().Dy()-20).RGBA()
	if img.Bounds().Dx() < 1000 || red>>8 < 200 || green>>8 > 60 {
		t.Errorf("%v, its colour is not the page's: %d %d", img.Bounds(), red>>8, green>>8)
	}

	for _, path := range []string{"/one", "/two", "/two#part"} {
		if at, err := b.Navigate(within(t), s.url+path); err != nil || at != s.url+path {
			t.Errorf("it is at %s: %v", at, err)
		}
	}
	if at, err := b.Navigate(within(t), "about:blank"); err != nil || at != "about:blank" {
		t.Errorf("it is at %s: %v", at, err)
	}
	_, err = b.Navigate(within(t), "http://127.0.0.1:1/")
	wantCode(t, err, fault.BrowserFailed)
	if !strings.Contains(fault.MessageOf(err), "ERR_") {
		t.Errorf("it says %q", fault.MessageOf(err))
	}
	for _, url := range []string{"file:///etc/passwd", "chrome://version", "view-source:file:///etc/passwd"} {
		_, err = b.Navigate(within(t), url)
		wantCode(t, err, fault.Unsupported)
		wantCode(t, b.Open(within(t), url), fault.Unsupported)
	}
}

// A page that never yields delays a call until its deadline and a capture by a few seconds.
// It does not delay the end. The page waits for a site that does not answer, which needs no
// CPU time. In the long form it loops.
func TestPageThatBlocks(t *testing.T) {
	blocks := `const q = new XMLHttpRequest(); q.open("GET", "/never", false); q.send();`
	if long() {
		blocks = `for (;;);`
	}
	r := newRigOfEither(t)
	s := newSite(t, map[string]string{"/stay": `<script>addEventListener("beforeunload", e => { e.preventDefault(); e.returnValue = "stay" })</script>`})
	b := r.fresh()
	r.open(b, s.url+"/stay")
	r.open(b, s.url+"/well")
	r.eval(b, s.url+"/well", `sessionStorage.setItem("step", "well"); document.cookie = "kept=k1; max-age=3600"; 1`)
	r.open(b, s.url+"/busy")
	r.eval(b, s.url+"/busy", `sessionStorage.setItem("step", "busy"); setTimeout(() => { `+blocks+` }, 0); 1`)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _, _, err := b.Screenshot(ctx)
	wantCode(t, err, fault.Timeout)

	began := time.Now()
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*capture.TabDeadline {
		t.Errorf("the capture took %v", took)
	}
	missed := ""
	for _, m := range doc.Missed {
		if strings.HasPrefix(m.Origin, s.url+"/busy") {
			missed += m.Component + ": " + m.Reason
		}
	}
	if !strings.Contains(missed, "did not answer in time") || len(doc.Cookies) != 1 || len(doc.Tabs) != 3 {
		t.Errorf("missed %+v, %d cookies, %d tabs", doc.Missed, len(doc.Cookies), len(doc.Tabs))
	}
	for _, tab := range doc.Tabs {
		if tab.URL == s.url+"/well" && (len(tab.Session) != 1 || len(tab.Session[0].Items) != 1) {
			t.Errorf("the responsive tab: %+v", tab)
		}
	}
	how, err := b.Close(within(t))
	if err != nil || how != state.DatadirClean {
		t.Errorf("closed %s, %v", how, err)
	}
	select {
	case <-b.Done():
	default:
		t.Error("Chrome still runs")
	}
}

// Closing the last tab ends neither Chrome nor the session cookies. The next client finds
// a blank tab.
func TestLastTabClosed(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/one")
	r.eval(b, s.url+"/one", `document.cookie = "session=s1"; 1`)
	conn := newConn()
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), conn, mux.ServeOptions{Admission: b.Admission()}) }()
	conn.call(t, `{"id":1,"method":"Target.closeTarget","params":{"targetId":"`+string(r.page(b, s.url+"/one"))+`"}}`)
	await(t, "the tab has closed", func() bool {
		pages, err := b.Pages(t.Context())
		return err == nil && len(pages) > 0 && pages[0].URL != s.url+"/one" || err == nil && len(pages) == 0
	})
	if at, err := b.Navigate(within(t), s.url+"/two"); err != nil || at != s.url+"/two" {
		t.Fatalf("%s, %v", at, err)
	}
	if got := r.eval(b, s.url+"/two", "document.cookie"); got != "session=s1" {
		t.Errorf("cookies: %q", got)
	}
	// Browser.close closes only the client's own connection.
	conn.call(t, `{"id":2,"method":"Browser.close"}`)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if got := r.eval(b, s.url+"/two", "document.cookie"); got != "session=s1" {
		t.Errorf("cookies: %q", got)
	}
	other := newConn()
	go func() { served <- b.Serve(context.Background(), other, mux.ServeOptions{Admission: b.Admission()}) }()
	other.call(t, `{"id":1,"method":"Browser.getVersion"}`)
	if err := b.CloseClients(within(t), 4001, "session_ended"); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if other.code != 4001 {
		t.Errorf("closed with %d", other.code)
	}
	// No client is admitted before the browser is thawed, even if it was never frozen.
	late := newConn()
	if err := b.Serve(t.Context(), late, mux.ServeOptions{Admission: b.Admission()}); err != nil || late.code != 4001 {
		t.Errorf("a late client: %v, closed with %d", err, late.code)
	}
	if err := b.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	next := newConn()
	go func() { served <- b.Serve(context.Background(), next, mux.ServeOptions{Admission: b.Admission()}) }()
	next.call(t, `{"id":1,"method":"Browser.close"}`)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// conn is a client whose messages the test controls.
type conn struct {
	in, out chan []byte
	closed  chan struct{}
	code    int
}

func newConn() *conn {
	return &conn{in: make(chan []byte), out: make(chan []byte, 1000), closed: make(chan struct{})}
}

func (c *conn) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, context.Canceled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *conn) Write(_ context.Context, msg []byte) error { c.out <- msg; return nil }

func (c *conn) Close(code int, _ string) error {
	c.code = code
	close(c.closed)
	return nil
}

// call sends a command and returns its answer.
func (c *conn) call(t *testing.T, command string) (answer []byte) {
	t.Helper()
	var sent, got struct {
		ID    int
		Error any
	}
	if err := json.Unmarshal([]byte(command), &sent); err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	select {
	case c.in <- []byte(command):
	case <-ctx.Done():
		t.Fatal("the mux did not read the command")
	}
	for got.ID != sent.ID {
		select {
		case answer = <-c.out:
			if err := json.Unmarshal(answer, &got); err != nil {
				t.Fatal(err)
			}
		case <-ctx.Done():
			t.Fatalf("%s was not answered", command)
		}
	}
	if got.Error != nil {
		t.Fatalf("%s: %v", command, got.Error)
	}
	return answer
}

// Freeze stops everything, Thaw continues it, and Kill ends it in any state.
func TestFreezeThawKill(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/one")
	r.eval(b, s.url+"/one", `window.n = 0; setInterval(() => n++, 1); 1`)
	for range 2 {
		if err := b.Freeze(within(t)); err != nil || !b.Frozen() {
			t.Fatalf("%v, frozen %t", err, b.Frozen())
		}
	}
	if files, err := b.Environment(t.Context()); err != nil || len(files) == 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := cdp.Call(short, b.driver, target.GetTargets, target.GetTargetsParams{}); err == nil {
		t.Error("a frozen Chrome answers")
	}
	for range 2 {
		if err := b.Thaw(within(t)); err != nil || b.Frozen() {
			t.Fatalf("%v, frozen %t", err, b.Frozen())
		}
	}
	if r.eval(b, s.url+"/one", "n") == "0" {
		t.Error("the page does not run")
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	<-b.Done()
	_, err := b.Pages(within(t))
	wantCode(t, err, fault.BrowserFailed)
	wantCode(t, b.Freeze(within(t)), fault.BrowserFailed)
	if how, err := b.Close(within(t)); err != nil || how != state.DatadirCrash {
		t.Errorf("a dead Chrome was closed %s, %v", how, err)
	}
	// A frozen Chrome is also closed cleanly.
	b = r.shell()
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	if how, err := b.Close(within(t)); err != nil || how != state.DatadirClean {
		t.Errorf("closed %s, %v", how, err)
	}
}

// attach creates a session of a page.
func (c *conn) attach(t *testing.T, id target.ID) (session string) {
	t.Helper()
	var got struct {
		ID     int
		Result struct{ SessionID string }
	}
	ctx := within(t)
	c.in <- []byte(`{"id":77,"method":"Target.attachToTarget","params":{"flatten":true,"targetId":"` + string(id) + `"}}`)
	for got.ID != 77 {
		select {
		case m := <-c.out:
			if err := json.Unmarshal(m, &got); err != nil {
				t.Fatal(err)
			}
		case <-ctx.Done():
			t.Fatal("no answer")
		}
	}
	return got.Result.SessionID
}
