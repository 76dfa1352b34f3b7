package e2e

import (
	"fmt"
	"net/http"
	"time"
)

// visits has sessions come and go: each is made, and perhaps ended with a save.
func (l *life) visits(came *[]*known) {
	n := 0
	l.use(100*time.Millisecond, func() {
		n++
		asked := obj{"engine": "shell"}
		if n%2 == 0 {
			asked["on_timeout"] = "discard"
		}
		k := newKnown(fmt.Sprintf("visit-%d-%d", l.number, n), "eve", asked)
		k.unsaved = k.discard
		*came = append(*came, k)
		if l.rouse(k) == "" || n%3 == 0 {
			return
		}
		var end ending
		k.unsaved = false // from here on it may have been saved
		if _, answered := l.call(http.MethodDelete, at(k.id, "?", toFiles), nil, &end, http.StatusOK); answered {
			k.saved = append(k.saved, end.Snapshot.ID)
		}
	})
}

// away resumes a session of an earlier life and ends it for good.
func (l *life) away(k *known) {
	if k.gone || l.rouse(k) == "" {
		return
	}
	k.unsaved, k.discard, k.saved = false, true, nil // what was saved of it before is there still
	_, k.gone = l.call(http.MethodDelete, at(k.id, "?", throwAway), nil, nil, http.StatusOK)
}
