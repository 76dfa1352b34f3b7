package targetinit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// silent answers a mux like a Chrome whose pages never answer. It sends the targets of
// close commands to closed.
func silent(conn net.Conn, closed chan<- target.ID) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID      int64                    `json:"id"`
			Method  string                   `json:"method"`
			Session string                   `json:"sessionId"`
			Params  target.CloseTargetParams `json:"params"`
		}
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			return
		}
		result, on := `{}`, ""
		switch m.Method {
		case "Runtime.runIfWaitingForDebugger":
			continue
		case target.AttachToBrowserTarget.Method:
			result = `{"sessionId":"D"}`
		case target.CloseTarget.Method:
			closed <- m.Params.TargetID
		}
		if m.Session != "" {
			on = fmt.Sprintf(`,"sessionId":%q`, m.Session)
		}
		if _, err := fmt.Fprintf(conn, `{"id":%d,"result":%s%s}`+"\x00", m.ID, result, on); err != nil {
			return
		}
		if m.Method == target.SetAutoAttach.Method && m.Session == "D" {
			_, _ = fmt.Fprintf(conn, `{"method":"Target.attachedToTarget","sessionId":"D","params":{"sessionId":"P","targetInfo":{"targetId":"hangs","type":"page"},"waitingForDebugger":true}}`+"\x00")
		}
	}
}

// nothing is a setup for pages that sets nothing.
type nothing struct{}

func (nothing) Wants(kind string) bool                           { return kind == "page" }
func (nothing) Initialise(context.Context, *Target)              {}
func (nothing) Renew(context.Context, *Target)                   {}
func (nothing) TargetClosed(context.Context, *Target, []*Target) {}

// A client's page that does not become ready, because it hangs or because Chrome does not
// attach to it, is closed at the deadline. The client's command fails.
func TestPageNotReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, chrome := net.Pipe()
		closed := make(chan target.ID, 2)
		go silent(chrome, closed)
		m := mux.New(ours, mux.Options{})
		life, end := context.WithCancel(t.Context())
		driver, err := m.Driver(life)
		if err != nil {
			t.Fatal(err)
		}
		i := New(driver, nothing{})
		starting, cancel := context.WithCancel(t.Context())
		go func() { _ = i.Start(starting, life, m.Hooks) }() // its first page hangs
		synctest.Wait()
		cancel()
		synctest.Wait()
		for _, id := range []target.ID{"hangs", "unknown"} {
			answered := make(chan bool, 1)
			i.Open(life, id, "https://a.example/", func(ready bool) { answered <- ready })
			if <-answered {
				t.Errorf("%s: the client got the page", id)
			}
			if got := <-closed; got != id {
				t.Errorf("%q was closed, want %q", got, id)
			}
		}
		i.mu.Lock()
		if n := len(i.awaited); n != 0 {
			t.Errorf("%d targets are still waited for", n)
		}
		i.mu.Unlock()
		end()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		i.Wait()
		_ = chrome.Close()
	})
}

// A client's page runs when it has its setups. A page that is not attached to never gets them.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		attached bool
		after    time.Duration // 0: it never has its setups
		want     time.Duration
	}{
		"at once":              {true, time.Second, time.Second},
		"on a busy machine":    {true, 2 * resumeDeadline, 2 * resumeDeadline},
		"hangs":                {true, 0, appliedDeadline},
		"is never initialised": {false, 0, resumeDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, began := New(nil), time.Now()
				if c.attached {
					i.targets["P"] = &Target{info: &target.Info{TargetID: "page"}}
				}
				resumed := make(chan struct{})
				i.resume(t.Context(), "page", func() { close(resumed) })
				if c.after > 0 {
					time.AfterFunc(c.after, func() {
						i.mu.Lock()
						defer i.mu.Unlock()
						i.markInitialised("page")
					})
				}
				<-resumed
				if took := time.Since(began); took != c.want {
					t.Errorf("it ran after %s, want %s", took, c.want)
				}
			})
		})
	}
}
