package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
)

// wire is a client that sends plain messages.
type wire struct {
	t    *testing.T
	in   chan []byte
	over chan struct{}
	once sync.Once
	mu   sync.Mutex
	id   int
	got  []map[string]any
}

func (w *wire) Read(ctx context.Context) ([]byte, error) {
	select {
	case msg := <-w.in:
		return msg, nil
	case <-w.over:
		return nil, context.Canceled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *wire) Write(_ context.Context, msg []byte) error {
	var m map[string]any
	err := json.Unmarshal(msg, &m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, m)
	return err
}

func (w *wire) Close(int, string) error {
	w.once.Do(func() { close(w.over) })
	return nil
}

// send sends a command and returns its ID.
func (w *wire) send(session, method, params string) int {
	w.mu.Lock()
	w.id++
	id := w.id
	w.mu.Unlock()
	msg := fmt.Sprintf(`{"id":%d,"method":%q,"params":%s`, id, method, params)
	if session != "" {
		msg += fmt.Sprintf(`,"sessionId":%q`, session)
	}
	w.in <- []byte(msg + "}")
	return id
}

// answer waits for the answer to a command.
func (w *wire) answer(id int) map[string]any {
	w.t.Helper()
	var result map[string]any
	await(w.t, fmt.Sprint("the answer to ", id), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.IndexFunc(w.got, func(m map[string]any) bool { return m["id"] == float64(id) })
		if i >= 0 {
			result, _ = w.got[i]["result"].(map[string]any)
		}
		return i >= 0
	})
	return result
}

// connect connects a client until the test ends.
func (r *rig) connect(b *Browser) *wire {
	w := &wire{t: r.t, in: make(chan []byte, 16), over: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), w, mux.ServeOptions{Admission: b.Admission()}) }()
	r.t.Cleanup(func() {
		_ = w.Close(mux.CloseNormal, "")
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	})
	return w
}

// Events in pages are reported in order, each once even if several clients get it. Events
// that need no domain are reported without a client too.
func TestListen(t *testing.T) {
	r := newRigOfEither(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="report.txt"`)
			_, _ = w.Write([]byte("twelve bytes"))
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<title>Not here</title>"))
		default:
			_, _ = fmt.Fprintf(w, "<!doctype html><title>Title of %s</title>", req.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	b := r.fresh()
	r.open(b, s.URL+"/before")
	var mu sync.Mutex
	var reported []string
	stop := b.Listen(func(h PageEvent) {
		mu.Lock()
		defer mu.Unlock()
		line := h.Kind
		for _, name := range []string{"url", "title", "status", "dialog", "level", "text", "state", "name", "bytes"} {
			if v, ok := h.Data[name]; ok {
				line += fmt.Sprintf(" %s=%v", name, v)
			}
		}
		reported = append(reported, line)
	}, false)
	has := func(want ...string) {
		t.Helper()
		await(t, fmt.Sprint(want), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(reported) >= len(want)
		})
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(reported, want) {
			t.Fatalf("got\n %q\nwant\n %q", reported, want)
		}
		reported = nil
	}
	has("navigated url=" + s.URL + "/before title=Title of /before")
	if _, err := b.Navigate(within(t), s.URL+"/after#top"); err != nil {
		t.Fatal(err)
	}
	has("navigated url=" + s.URL + "/after#top title=Title of /after")

	// Two clients get all following events.
	var first *wire
	var at string
	for range 2 {
		w := r.connect(b)
		id := w.answer(w.send("", "Target.getTargets", "{}"))["targetInfos"].([]any)[0].(map[string]any)["targetId"]
		session := w.answer(w.send("", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, id)))["sessionId"].(string)
		for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
			w.answer(w.send(session, domain+".enable", "{}"))
		}
		if first == nil {
			first, at = w, session
		}
	}
	first.answer(first.send(at, "Page.navigate", fmt.Sprintf(`{"url":%q}`, s.URL+"/missing")))
	// Chrome logs the failed request before the page has loaded.
	has("console url="+s.URL+"/after#top level=error text=Failed to load resource: the server responded with a status of 404 (Not Found)", "navigated url="+s.URL+"/missing title=Not here status=404")
	first.answer(first.send(at, "Runtime.evaluate", `{"expression":"console.log('quiet'); console.error('loud', 1, {}); setTimeout(() => { throw new Error('thrown') }); 0"}`))
	await(t, "two entries", func() bool { mu.Lock(); defer mu.Unlock(); return len(reported) >= 2 })
	mu.Lock()
	reported[1] = reported[1][:len("console url=")+len(s.URL)+len("/missing level=error text=Uncaught Error: thrown")]
	mu.Unlock()
	has("console url="+s.URL+"/missing level=error text=loud 1 Object", "console url="+s.URL+"/missing level=error text=Uncaught Error: thrown")
	asked := first.send(at, "Runtime.evaluate", `{"expression":"confirm('sure?'); alert('sure?'); 0"}`)
	for range 2 {
		await(t, "a dialog", func() bool {
			return first.answer(first.send(at, "Page.handleJavaScriptDialog", `{"accept":true}`)) != nil
		})
	}
	first.answer(asked)
	has("dialog url="+s.URL+"/missing dialog=confirm text=sure?", "dialog url="+s.URL+"/missing dialog=alert text=sure?")
	first.answer(first.send(at, "Runtime.evaluate", `{"expression":"location='/file'; 0"}`))
	has("download url="+s.URL+"/file state=started name=report.txt", "download state=completed name=report.txt bytes=12")
	first.send(at, "Page.crash", "{}")
	has("page_crashed url=" + s.URL + "/missing")
	stop()
}
