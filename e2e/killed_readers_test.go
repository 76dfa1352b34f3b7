package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// follows reads the stream of a session that runs, from where its last reader stopped.
// The stream must not report the end of the session.
func (l *life) follows(k *known) {
	l.use(50*time.Millisecond, func() {
		if status := l.follow(k); status == http.StatusNoContent {
			l.Errorf("life %d: the stream of %s after %q: status %d, although the session runs", l.number, k.id, k.last, status)
		}
	})
}

// follow reads one stream to its end and returns the status of the answer; 0 if there
// was none.
func (l *life) follow(k *known) (status int) {
	header := http.Header{}
	if k.last != "" {
		header.Set("Last-Event-ID", k.last)
	}
	res, err := l.open(http.MethodGet, at(k.id, "/events"), nil, header)
	if err != nil {
		if !l.killing.Load() && l.ctx.Err() == nil {
			l.Errorf("life %d: the stream of %s: %v", l.number, k.id, err)
		}
		return 0
	}
	defer func() { _ = res.Body.Close() }() // the rest of the body is of no use
	if res.StatusCode != http.StatusOK {
		if res.StatusCode != http.StatusNoContent {
			l.Errorf("life %d: the stream of %s after %q: %s", l.number, k.id, k.last, res.Status)
		}
		return res.StatusCode
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	var id, data string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			data = value
		case "": // the end of an event; an event that was cut off does not count
			if id != "" {
				k.receive(l, id, data)
			}
			id = ""
		}
	}
	return res.StatusCode
}

// receive records an event of a stream. It must be the one that comes next.
func (k *known) receive(l *life, id, data string) {
	run, sequence, _ := strings.Cut(id, "-")
	var p place
	p.run, _ = strconv.ParseInt(run, 10, 64)
	p.sequence, _ = strconv.ParseInt(sequence, 10, 64)
	k.do(func() {
		was := place{}
		if n := len(k.stream); n > 0 {
			was = k.stream[n-1].at
		}
		if !p.after(was) {
			l.Errorf("life %d: the stream of %s sent %s after %v", l.number, k.id, id, was)
		}
		k.stream, k.last = append(k.stream, sentEvent{p, data}), id
	})
}

// turns reads the pages of the session's newest run while events are added.
func (l *life) turns(k *known) {
	var now shownRun
	after := int64(0)
	l.use(50*time.Millisecond, func() {
		if now.ID == "" {
			runs, ok := l.runs(k)
			if !ok || len(runs) == 0 {
				return
			}
			now = runs[len(runs)-1]
		}
		page, ok := l.page(k, now, after, 1+l.number%100)
		if !ok {
			return
		}
		k.do(func() {
			for p, data := range page.events {
				if was, there := k.shown[p]; there && was != data {
					l.Errorf("life %d: event %v of %s is\n%s\nwant, as before\n%s", l.number, p, k.id, data, was)
				}
				k.shown[p] = data
			}
		})
		after = page.next
	})
}

func (l *life) runs(k *known) ([]shownRun, bool) {
	var list struct{ Runs []shownRun }
	_, ok := l.call(http.MethodGet, at(k.id, "/runs"), nil, &list, http.StatusOK)
	return list.Runs, ok
}

// turned is a page of events whose sequence numbers were checked.
type turned struct {
	events map[place]string
	next   int64
	more   bool
}

// page reads a page of a run: the events directly after an event, without a gap.
func (l *life) page(k *known, run shownRun, after int64, limit int) (turned, bool) {
	var page struct {
		Events []json.RawMessage
		First  int64 `json:"first_available_sequence"`
		Latest int64 `json:"latest_sequence_exclusive"`
		Next   int64 `json:"next_after_sequence"`
		Gap    bool  `json:"retention_gap"`
		More   bool  `json:"has_more"`
	}
	path := at(k.id, fmt.Sprintf("/runs/%s/events?after=%d&limit=%d", run.ID, after, limit))
	if _, ok := l.call(http.MethodGet, path, nil, &page, http.StatusOK); !ok {
		return turned{}, false
	}
	got := turned{map[place]string{}, page.Next, page.More}
	for _, raw := range page.Events {
		after++
		var e struct {
			RunID    string `json:"run_id"`
			Sequence int64
		}
		var compact bytes.Buffer
		if err := json.Unmarshal(raw, &e); err != nil || json.Compact(&compact, raw) != nil {
			l.Error(err)
		}
		if e.Sequence != after || e.RunID != run.ID {
			l.Errorf("life %d: run %d of %s: got event %d of run %s, want %d of %s", l.number, run.Number, k.id, e.Sequence, e.RunID, after, run.ID)
		}
		got.events[place{run.Number, e.Sequence}] = compact.String()
	}
	if page.Gap || page.First != 1 || page.Next != after || page.More != (after+1 < page.Latest) {
		l.Errorf("life %d: run %d of %s: a page that ends with event %d has wrong bounds: %+v", l.number, run.Number, k.id, after, page)
	}
	return got, true
}
