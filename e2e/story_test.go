package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// storyInput is the input of the story in any language. A session logs in to real
// applications, its user and agent exchange messages, and the agent takes notes. A tab
// is loading when the session's daemon or Chrome dies. Then the session continues
// unchanged.
type storyInput struct {
	URL     string     `json:"url"` // of the daemon
	Key     string     `json:"key"`
	Session string     `json:"session"`
	User    string     `json:"user"`
	Restart string     `json:"restart"` // restart in the create
	Cause   string     `json:"cause"`   // of the first run's end
	Apps    []storyApp `json:"apps"`
	Calm    string     `json:"calm"`  // the address of the last tab
	Held    string     `json:"held"`  // address that the tab is loading, and that never answers
	Asked   string     `json:"asked"` // answers when a request for Held has been received
}

// storyApp is an application with the steps that log in and those that prove the login.
type storyApp struct {
	URL    string `json:"url"`
	Login  []step `json:"login"`
	Proof  []step `json:"proof"`
	Secret string `json:"secret"`
}

// storyRunner runs the story in two parts. Between them the daemon or Chrome is killed.
type storyRunner interface {
	beforeKill(t *testing.T)
	afterKill(t *testing.T)
}

// A session survives the death of its Chrome or its daemon: it keeps its logins to real
// applications, its tabs, its messages and notes, and a history of two runs. After the
// kill, a client resumes the session, or it restarts automatically. The story runs in Go
// and in Node. make test has each death, each continuation and each language once,
// make test-long four combinations of them. It is not parallel: its scripts would wait for
// the parts of other tests longer than they may run.
func TestStory(t *testing.T) {
	applications := []webApp{wiki(t), nodeRED(t)}
	held := slowSite(t)
	dying, lasting := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()}), daemon.Start(t, daemon.Options{NoSpares: true})
	runners := map[string]storyRunner{}
	for _, e := range []struct {
		name     string
		d        *daemon.Daemon
		restart  string
		cause    string
		language string
		short    bool // make test has it too
	}{
		{"daemon-go", dying, "never", "the daemon was killed", "go", false},
		{"daemon-node", dying, "never", "the daemon was killed", "node", true},
		{"chrome-node", lasting, "never", "Chrome crashed", "node", false},
		{"restart-go", lasting, "on_crash", "Chrome crashed", "go", true},
	} {
		if !e.short && !storetest.Long() {
			continue
		}
		x := storyInput{Key: daemon.Key, Session: e.name, User: "of " + e.name, Restart: e.restart, Cause: e.cause,
			Calm: held.URL + "/calm", Held: held.URL + "/held/" + e.name, Asked: held.URL + "/asked/" + e.name}
		for _, app := range applications {
			x.Apps = append(x.Apps, storyApp{app.url, app.login, app.proof, app.secret})
		}
		if e.language == "go" {
			runners[e.name] = &inGo{storyInput: x, whole: t, d: e.d}
		} else {
			runners[e.name] = &inNode{storyInput: x, d: e.d, script: startScript(t, "clients/story.mjs")}
		}
	}
	each := func(part string, run func(storyRunner, *testing.T)) {
		t.Run(part, func(t *testing.T) {
			for name, runner := range runners {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					run(runner, t)
				})
			}
		})
	}

	each("before the kill", storyRunner.beforeKill)
	if t.Failed() {
		return
	}
	logs := []int{applications[0].log.Len(), applications[1].log.Len()}
	for _, pid := range mains(lasting) {
		kill9(t, pid)
	}
	dying.Kill(t)
	dying.Restart(t)
	each("after the kill", storyRunner.afterKill)

	for i, app := range applications {
		for _, r := range app.log.Since(logs[i]) {
			if app.isForm(r) {
				t.Errorf("%s: there was another login request", app.name)
			}
		}
	}
	nothingLeft(t, dying)
	nothingLeft(t, lasting)
}

// slowSite has one page that answers at once, and pages at /held/ that never answer. A
// request below /asked/ is answered when a page of that name has been requested.
func slowSite(t testing.TB) *httptest.Server {
	var mu sync.Mutex
	asked := map[string]chan struct{}{}
	of := func(name string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if asked[name] == nil {
			asked[name] = make(chan struct{}, 1)
		}
		return asked[name]
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, held := strings.CutPrefix(r.URL.Path, "/held/"); held {
			of(name) <- struct{}{}
			<-r.Context().Done()
			return
		}
		if name, wait := strings.CutPrefix(r.URL.Path, "/asked/"); wait {
			select {
			case <-of(name):
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>calm</title>")
	}))
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	return site
}
