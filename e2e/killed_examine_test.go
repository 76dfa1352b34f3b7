package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// examine compares everything that the next start reports about a session with what is
// known about it. The session has ended.
func (l *life) examine(k *known) {
	l.Helper()
	var now liveSession
	status, ok := l.call(http.MethodGet, at(k.id), nil, &now, http.StatusOK, http.StatusNotFound)
	if !ok || status == http.StatusNotFound {
		if k.made {
			l.Errorf("%s was created and is missing", k.id)
		}
		return
	}
	k.made = true
	if !ended(now.Status) {
		l.Errorf("%s is %s after a kill", k.id, now.Status)
	}
	all := l.record(k)
	for p, was := range k.listed {
		if all[p] != was {
			l.Errorf("event %v of %s is\n%q\nwant, as listed before\n%s", p, k.id, all[p], was)
		}
	}
	for p, was := range k.shown {
		if all[p] != was {
			l.Errorf("event %v of %s is\n%q\nwant, as a page showed it\n%s", p, k.id, all[p], was)
		}
	}
	k.listed, k.shown = all, map[place]string{}
	for status := http.StatusOK; status == http.StatusOK; { // a stream ends with each run that failed
		status = l.follow(k)
	}
	order := events(all)
	if len(k.stream) != len(order) {
		l.Errorf("the stream of %s sent %d events, want the %d stored ones", k.id, len(k.stream), len(order))
	}
	for i, sent := range k.stream[:min(len(order), len(k.stream))] {
		if sent.at != order[i] || sent.data != all[sent.at] {
			l.Errorf("the stream of %s sent %v\n%s\nbut %v is stored\n%s", k.id, sent.at, sent.data, order[i], all[order[i]])
		}
	}
	l.conversation(k, order)
	l.snapshots(k, order)
}

// record reads all events of a session. Each run must have ended, and its last event
// must say how.
func (l *life) record(k *known) map[place]string {
	l.Helper()
	all := map[place]string{}
	runs, _ := l.runs(k)
	for i, run := range runs {
		if run.Number != int64(i+1) || i < len(k.runs) && run != k.runs[i] && run.ID != k.runs[i].ID {
			l.Errorf("run %d of %s: wrong number or ID: %+v", i+1, k.id, run)
		}
		for turn := (turned{more: true}); turn.more; {
			var ok bool
			if turn, ok = l.page(k, run, turn.next, 1+l.random.IntN(900)); !ok {
				return all
			}
			for p, data := range turn.events {
				all[p] = data
			}
			if last := all[place{run.Number, turn.next}]; !turn.more {
				l.ends(k, run, last)
			}
		}
	}
	k.runs = runs
	return all
}

func (l *life) ends(k *known, run shownRun, last string) {
	var e struct {
		Type string
		Data struct{ Status, Cause string }
	}
	if err := json.Unmarshal([]byte(last), &e); err != nil || run.Cause == nil {
		l.Errorf("run %d of %s ends with %q: %v", run.Number, k.id, last, err)
		return
	}
	want := "failed"
	if *run.Cause == "asked" {
		want = "completed"
	}
	if e.Type != "ended" || e.Data.Status != run.Status || e.Data.Cause != *run.Cause || run.Status != want {
		l.Errorf("run %d of %s is %s (%s), but its last event is %s", run.Number, k.id, run.Status, *run.Cause, last)
	}
}

// conversation checks the messages, and that each has its event.
func (l *life) conversation(k *known, order []place) {
	l.Helper()
	var texts []string
	once := map[string]bool{}
	for more := true; more; {
		var page struct {
			Messages []struct {
				ID            int64
				Type, Content string
			}
			More bool `json:"has_more"`
		}
		if _, ok := l.call(http.MethodGet, at(k.id, fmt.Sprintf("/messages?after_id=%d", len(texts))), nil, &page, http.StatusOK); !ok {
			return
		}
		for _, m := range page.Messages {
			text := m.Type + " " + m.Content
			said, answered := k.said[m.ID]
			if m.ID != int64(len(texts)+1) || once[text] || answered && said != text || !answered && !k.saying[text] {
				l.Errorf("message %d of %s is %q after %d others; answered: %q", m.ID, k.id, text, len(texts), said)
			}
			once[text], texts = true, append(texts, text)
		}
		more = page.More
	}
	for id, text := range k.said {
		if id > int64(len(texts)) {
			l.Errorf("message %d of %s, %q, is lost", id, k.id, text)
		}
	}
	if len(texts) < len(k.messages) || !slices.Equal(texts[:len(k.messages)], k.messages) {
		l.Errorf("the %d earlier messages of %s have changed", len(k.messages), k.id)
	}
	k.messages = texts
	reported := map[int64]bool{}
	newest := int64(0)
	for _, p := range order {
		var e struct {
			Type string
			Data struct {
				ID            int64
				Type, Content string
			}
		}
		if err := json.Unmarshal([]byte(k.listed[p]), &e); err != nil {
			l.Error(err)
		}
		if e.Type != "message" {
			continue
		}
		if e.Data.ID <= newest || e.Data.ID > int64(len(texts)) || texts[e.Data.ID-1] != e.Data.Type+" "+e.Data.Content {
			l.Errorf("event %v of %s is for message %d, after that of %d: %s", p, k.id, e.Data.ID, newest, k.listed[p])
		}
		newest, reported[e.Data.ID] = e.Data.ID, true
	}
	for id := range k.said {
		if !reported[id] {
			l.Errorf("message %d of %s was answered, but has no event", id, k.id)
		}
	}
}

// snapshots checks that each answered snapshot is listed once and has one event, and
// that the newest can be read.
func (l *life) snapshots(k *known, order []place) {
	l.Helper()
	listed, reported := map[string]int{}, map[string]int{}
	for path := at(k.id, "/snapshots?limit=1000"); path != ""; {
		var page struct {
			Snapshots []struct{ ID string }
			Next      *string `json:"next_token"`
		}
		if _, ok := l.call(http.MethodGet, path, nil, &page, http.StatusOK); !ok {
			return
		}
		for _, s := range page.Snapshots {
			listed[s.ID]++
		}
		path = ""
		if page.Next != nil {
			path = at(k.id, "/snapshots?limit=1000&start_after="+*page.Next)
		}
	}
	for _, p := range order {
		var e struct {
			Type string
			Data struct {
				ID string `json:"snapshot_id"`
			}
		}
		if json.Unmarshal([]byte(k.listed[p]), &e) == nil && e.Type == "saved" {
			reported[e.Data.ID]++
		}
	}
	for _, id := range k.saved {
		if listed[id] != 1 || reported[id] != 1 {
			l.Errorf("snapshot %s of %s is listed %d times and has %d events, want 1 and 1", id, k.id, listed[id], reported[id])
		}
	}
	if n := len(k.saved); n > 0 {
		l.call(http.MethodPost, "/v1/snapshots/"+k.saved[n-1]+"/verify", nil, nil, http.StatusOK)
	}
}
