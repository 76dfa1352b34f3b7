package view

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/budget"
)

// fakeBrowser is a Browser whose tabs the test opens. It has one session for each
// attachment, "<tab>-<number>".
type fakeBrowser struct {
	memory  *budget.Budget
	events  chan mux.Event
	hang    chan struct{}     // if set, Tabs waits for it
	asleep  chan struct{}     // if set, calls of worldScript wait for it
	hidden  atomic.Bool       // the tabs are at an address that a session may not show
	gone    target.SessionID  // a session that Chrome has ended
	client  bool              // a CDP client answers dialogs and file choosers
	answers map[string]string // of the frames to calls of worldScript

	mu       sync.Mutex
	tabs     []*target.Info
	front    target.ID
	attached int
	posts    []string // "<session> <method>", and the parameters of answers to dialogs
}

func newBrowser(tabs ...target.ID) *fakeBrowser {
	b := &fakeBrowser{memory: budget.New(0), events: make(chan mux.Event), front: tabs[0]}
	for _, id := range tabs {
		b.tabs = append(b.tabs, &target.Info{TargetID: id, Title: string(id), URL: "https://" + string(id) + ".example/"})
	}
	return b
}

func (b *fakeBrowser) Call(ctx context.Context, method string, params, result any) error {
	if _, ok := params.(runtime.EvaluateParams); ok && b.asleep != nil {
		select {
		case <-b.asleep:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch p := params.(type) {
	case runtime.EvaluateParams:
		answer := b.answers[strings.TrimPrefix(p.Expression, callWorld(""))]
		return json.Unmarshal(fmt.Appendf(nil, `{"result":{"type":"object","value":%s}}`, cmp.Or(answer, "null")), result)
	case input.DispatchKeyEventParams:
		b.posts = append(b.posts, "call "+p.Key)
		return nil
	case page.CreateIsolatedWorldParams:
		return json.Unmarshal([]byte(`{"executionContextId":7}`), result)
	}
	if method == page.GetFrameTree.Method {
		return json.Unmarshal([]byte(`{"frameTree":{"frame":{"id":"F"},"childFrames":[{"frame":{"id":"G"}}]}}`), result)
	}
	p, ok := params.(target.AttachToTargetParams)
	if method != target.AttachToTarget.Method || !ok {
		return nil
	}
	b.attached++
	id := target.SessionID(fmt.Sprintf("%s-%d", p.TargetID, b.attached))
	return json.Unmarshal(fmt.Appendf(nil, `{"sessionId":%q}`, id), result)
}

func (b *fakeBrowser) Subscribe(string) (<-chan jsonv2.Value, func()) { return nil, func() {} }

func (b *fakeBrowser) Session(target.SessionID) cdp.Session { return b }

func (b *fakeBrowser) Post(_ context.Context, id target.SessionID, method string, params any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone != "" && id == b.gone {
		return &cdproto.Error{Code: noSession}
	}
	post := fmt.Sprintf("%s %s", id, method)
	switch p := params.(type) {
	case page.HandleJavaScriptDialogParams:
		post += fmt.Sprintf(" %v %s", p.Accept, p.PromptText)
	case runtime.EvaluateParams:
		post += " " + strings.TrimPrefix(p.Expression, callWorld(""))
	case dom.SetFileInputFilesParams:
		post += fmt.Sprintf(" %d %s", p.BackendNodeID, strings.Join(p.Files, " "))
	case input.DispatchKeyEventParams:
		post += " " + p.Key
	case target.DetachFromTargetParams:
		post += " " + string(p.SessionID)
	}
	b.posts = append(b.posts, post)
	return nil
}

func (b *fakeBrowser) Tabs(ctx context.Context) ([]*target.Info, error) {
	if b.hang != nil {
		select {
		case <-b.hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tabs), nil
}

func (b *fakeBrowser) Front(context.Context) (target.ID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.front, nil
}

func (b *fakeBrowser) MayShow(target.ID) bool                        { return !b.hidden.Load() }
func (b *fakeBrowser) AllowedURL(string) bool                        { return true }
func (b *fakeBrowser) ClientAnswers(target.ID) (dialogs, files bool) { return b.client, b.client }
func (b *fakeBrowser) FilePath(name string) (string, error) {
	if name == "gone" {
		return "", io.EOF
	}
	return "/files/" + name, nil
}
func (b *fakeBrowser) OpenTab(context.Context) error               { return nil }
func (b *fakeBrowser) Now() time.Time                              { return time.Now() }
func (b *fakeBrowser) Events(...string) (<-chan mux.Event, func()) { return b.events, func() {} }
func (b *fakeBrowser) Account(evict func()) *budget.Account        { return b.memory.Open(b, evict) }

// emit sends an event, and waits until it was processed.
func (b *fakeBrowser) emit(id target.SessionID, method, params string) {
	b.events <- mux.Event{SessionID: id, Method: method, Params: []byte(params)}
	synctest.Wait()
}

// posted reports whether the browser got a command.
func (b *fakeBrowser) posted(post string) bool { return b.count(post) > 0 }

// answer sets what the frames answer to a call of worldScript.
func (b *fakeBrowser) answer(call, json string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers == nil {
		b.answers = map[string]string{}
	}
	b.answers[call] = json
}

// given returns the commands that gave files to a page.
func (b *fakeBrowser) given() (posts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.posts {
		if strings.Contains(p, dom.SetFileInputFiles.Method) {
			posts = append(posts, p)
		}
	}
	return posts
}

func (b *fakeBrowser) count(post string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.posts {
		if p == post {
			n++
		}
	}
	return n
}

// fakeConn is the connection of a viewer. It counts the memory of commands as a socket does.
type fakeConn struct {
	commands chan string
	unread   chan struct{} // if set, writes wait for it, as for a viewer that does not read
	take     func(int) bool

	mu     sync.Mutex
	texts  []string // what the viewer got
	bytes  int      // of pictures
	closed []int
}

func newConn() *fakeConn { return &fakeConn{commands: make(chan string)} }

func (c *fakeConn) Meter(take func(int) bool) { c.take = take }

func (c *fakeConn) Read(ctx context.Context) ([]byte, error) {
	select {
	case text, ok := <-c.commands:
		msg := make([]byte, len(text))
		if !ok || !c.take(cap(msg)) {
			return nil, io.EOF
		}
		copy(msg, text)
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *fakeConn) Write(ctx context.Context, text []byte) error {
	return c.write(ctx, func() { c.texts = append(c.texts, string(text)) })
}

func (c *fakeConn) WriteBinary(ctx context.Context, data []byte) error {
	return c.write(ctx, func() { c.bytes += len(data) })
}

func (c *fakeConn) write(ctx context.Context, done func()) error {
	if c.unread != nil {
		select {
		case <-c.unread:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	done()
	return nil
}

func (c *fakeConn) Close(code int, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, code)
	return nil
}

// serve serves a viewer in a bubble of synctest, and waits until it has all that is there.
// The viewer leaves at the end of the test.
func serve(t *testing.T, b *fakeBrowser, c *fakeConn, control bool) {
	t.Helper()
	served := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		served <- Serve(ctx, c, b, Viewer{Control: control, Clients: func() int { return 0 }, Viewers: func() int { return 1 }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if held, _ := b.memory.Use(); held != 0 {
			t.Errorf("%d bytes are held after the viewer has left", held)
		}
	})
	synctest.Wait()
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
