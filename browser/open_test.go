package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/targetinit"
)

// pagesOnly is a setup for pages that sets nothing.
type pagesOnly struct{}

func (pagesOnly) Wants(kind string) bool                                                 { return kind == "page" }
func (pagesOnly) Initialise(context.Context, *targetinit.Target)                         {}
func (pagesOnly) Renew(context.Context, *targetinit.Target)                              {}
func (pagesOnly) TargetClosed(context.Context, *targetinit.Target, []*targetinit.Target) {}

// A tab at start_url has its navigation before the create answers. Otherwise it would
// abort the first navigation of a client.
func TestOpenReadyNavigatesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, chrome := net.Pipe()
		ready, methods := make(chan struct{}), make(chan string, 64)
		go pageReadyAt(chrome, ready, methods)
		m := mux.New(ours, mux.Options{})
		life, end := context.WithCancel(t.Context())
		driver, err := m.Driver(life)
		if err != nil {
			t.Fatal(err)
		}
		b := &Browser{ctx: life, targets: targetinit.New(driver, pagesOnly{})}
		go func() { _ = b.targets.Start(life, life, m.Hooks) }()
		returned := make(chan error, 1)
		go func() { returned <- b.openReady(t.Context(), "P", "https://a.example/") }()
		synctest.Wait()
		if len(returned) > 0 {
			t.Error("it returned before the page was ready")
		}
		close(ready)
		if err := <-returned; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		var got []string
		for len(methods) > 0 {
			got = append(got, <-methods)
		}
		if !slices.Contains(got, page.Navigate.Method) {
			t.Errorf("Chrome got no navigation: %q", got)
		}
		end()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		b.targets.Wait()
		_ = chrome.Close()
	})
}

// pageReadyAt answers a mux like a Chrome with one page, which answers once ready is
// closed. It sends the methods that it receives to methods.
func pageReadyAt(conn net.Conn, ready <-chan struct{}, methods chan<- string) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var q struct {
			ID      int64  `json:"id"`
			Method  string `json:"method"`
			Session string `json:"sessionId"`
		}
		if json.Unmarshal(line[:len(line)-1], &q) != nil {
			return
		}
		select {
		case methods <- q.Method:
		default: // the test has seen enough
		}
		result, on := `{}`, ""
		if q.Session != "" {
			on = fmt.Sprintf(`,"sessionId":%q`, q.Session)
		}
		if q.Method == target.AttachToBrowserTarget.Method {
			result = `{"sessionId":"D"}`
		}
		if q.Method == runtime.RunIfWaitingForDebugger.Method {
			<-ready
		}
		_, _ = fmt.Fprintf(conn, `{"id":%d,"result":%s%s}`+"\x00", q.ID, result, on)
		if q.Method == target.SetAutoAttach.Method && q.Session == "D" {
			_, _ = fmt.Fprintf(conn, `{"method":"Target.attachedToTarget","sessionId":"D","params":{"sessionId":"S","targetInfo":{"targetId":"P","type":"page"},"waitingForDebugger":true}}`+"\x00")
		}
	}
}
