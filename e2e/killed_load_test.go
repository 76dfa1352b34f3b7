package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// noteAPI is the path of the session-memory API.
const noteAPI = "/v1/memory/v2/session"

// startOrResume creates or resumes the session and returns its cdp_url; "" if the daemon was
// killed meanwhile.
func (l *life) startOrResume(k *known) string {
	var s struct {
		CDP string `json:"cdp_url"`
	}
	if k.made {
		want := http.StatusOK
		if k.unsaved {
			want = http.StatusConflict
		}
		statuses := []int{want}
		if k.discard && !k.unsaved && len(k.saved) == 0 { // a save may have succeeded without an answer
			statuses = []int{http.StatusOK, http.StatusConflict}
		}
		status, answered := l.call(http.MethodPost, at(k.id, "/resume"), nil, &s, statuses...)
		if !answered || status == http.StatusOK {
			return s.CDP
		}
		k.do(func() { k.visits, k.kept = 0, 0 })
	}
	if _, answered := l.call(http.MethodPost, "/v1/sessions", k.asked, &s, http.StatusOK, http.StatusCreated); answered {
		k.do(func() { k.made = true })
	}
	return s.CDP
}

// says posts messages of a type.
func (l *life) says(k *known, kind string) {
	n := 0
	l.use(20*time.Millisecond, func() {
		n++
		content := fmt.Sprintf("%s %d of life %d", kind, n, l.number)
		k.do(func() { k.saying[kind+" "+content] = true })
		var made struct{ ID int64 }
		if _, answered := l.call(http.MethodPost, at(k.id, "/message"), obj{"type": kind, "message": content}, &made, http.StatusOK); answered {
			k.do(func() {
				if was, there := k.said[made.ID]; there {
					l.Errorf("message %d is %q, want %q as before", made.ID, kind+" "+content, was)
				}
				k.said[made.ID] = kind + " " + content
				delete(k.saying, kind+" "+content)
			})
		}
	})
}

// notes stores notes. Each adds a decision.
func (l *life) notes(k *known) {
	n := 0
	l.use(40*time.Millisecond, func() {
		n++
		decision := fmt.Sprintf("%d.%d", l.number, n)
		k.do(func() { k.noting[decision] = true })
		body := obj{"session_id": k.id, "key_decisions": []string{decision}, "open_tasks": []string{decision}, "event": "checkpoint"}
		if _, answered := l.call(http.MethodPost, noteAPI, body, nil, http.StatusOK); answered {
			k.do(func() { k.noted = append(k.noted, decision); delete(k.noting, decision) })
		}
	})
}

// saves makes checkpoints.
func (l *life) saves(k *known) {
	l.use(200*time.Millisecond, func() {
		var before int
		k.do(func() { before = k.visits })
		var made struct{ Snapshot struct{ ID string } }
		status, answered := l.call(http.MethodPost, at(k.id, "/snapshots"), obj{}, &made, http.StatusCreated, http.StatusOK, http.StatusGatewayTimeout)
		if answered && status != http.StatusGatewayTimeout { // on a busy machine a checkpoint may time out: nothing was stored
			k.do(func() {
				k.kept = before
				if status == http.StatusCreated {
					k.saved = append(k.saved, made.Snapshot.ID)
				}
			})
		}
	})
}

// drives visits the site over CDP. Each visit sets a cookie in the browser.
func (l *life) drives(k *known, cdp string) {
	conn, err := rig.Dial(l.ctx, cdp)
	if err != nil {
		if !l.killing.Load() {
			l.Errorf("life %d: %s: %v", l.number, k.id, err)
		}
		return
	}
	page := l.tab(k, conn)
	var n int
	k.do(func() { n = k.visits })
	if page != "" {
		l.use(100*time.Millisecond, func() {
			n++
			var gone struct{ ErrorText string }
			err := conn.Call(l.ctx, page, "Page.navigate", obj{"url": l.site + "/?visit=" + strconv.Itoa(n)}, &gone)
			if err == nil && gone.ErrorText == "" {
				k.do(func() { k.visits = n })
			}
		})
	}
	l.users.Go(func() {
		<-l.ctx.Done()
		conn.Close()
	})
}

// tab attaches to the session's first tab, and compares its cookie with the newest one
// that is known to be saved.
func (l *life) tab(k *known, conn *rig.Conn) (page string) {
	var all struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	var attached struct{ SessionID string }
	var jar struct {
		Cookies []struct{ Name, Value string }
	}
	err := conn.Call(l.ctx, "", "Target.getTargets", nil, &all)
	for _, info := range all.TargetInfos {
		if err == nil && info.Type == "page" && page == "" {
			err = conn.Call(l.ctx, "", "Target.attachToTarget", obj{"targetId": info.TargetID, "flatten": true}, &attached)
			page = attached.SessionID
		}
	}
	if err == nil {
		err = conn.Call(l.ctx, "", "Storage.getCookies", nil, &jar)
	}
	if err != nil || page == "" {
		if !l.killing.Load() {
			l.Errorf("life %d: the tabs of %s: %v", l.number, k.id, err)
		}
		return ""
	}
	newest := 0
	for _, c := range jar.Cookies {
		if c.Name == "visit" {
			newest, _ = strconv.Atoi(c.Value)
		}
	}
	k.do(func() {
		if newest < k.kept {
			l.Errorf("life %d: %s has the cookie of visit %d, but a snapshot has that of visit %d", l.number, k.id, newest, k.kept)
		}
		k.visits = max(k.visits, newest)
	})
	return page
}

// site answers each visit with a cookie that has the visit's number.
func site(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	if n := r.URL.Query().Get("visit"); n != "" {
		http.SetCookie(w, &http.Cookie{Name: "visit", Value: url.QueryEscape(n), MaxAge: 86400})
	}
	_, _ = w.Write([]byte("<title>a visit</title>")) // fails if the browser has died
}
