package e2e

import (
	"fmt"
	"net/http"
	"time"
)

// visits creates sessions and ends some of them with a save.
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
		if l.startOrResume(k) == "" || n%3 == 0 {
			return
		}
		var end ending
		k.unsaved = false // from here on it may be saved
		if _, answered := l.call(http.MethodDelete, at(k.id, "?", toFiles), nil, &end, http.StatusOK); answered {
			k.saved = append(k.saved, end.Snapshot.ID)
		}
	})
}

// discardOld resumes a session of an earlier life and ends it without a save.
func (l *life) discardOld(k *known) {
	if k.gone || l.startOrResume(k) == "" {
		return
	}
	k.unsaved, k.discard, k.saved = false, true, nil // its earlier saves are still there
	_, k.gone = l.call(http.MethodDelete, at(k.id, "?", throwAway), nil, nil, http.StatusOK)
}
