package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// notebooks checks the notes of all sessions, each with its history.
func (l *life) notebooks(all []*known) {
	l.Helper()
	db, err := sqldb.Open(l.Context(), sqldb.Options{Path: filepath.Join(l.d.Dir, "stasis.db"), Now: time.Now, ReadOnly: true})
	if err != nil {
		l.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			l.Error(err)
		}
	}()
	for _, k := range all {
		history, err := db.Notes.NoteHistory(l.Context(), k.user, k.id, 0, 0)
		if err != nil {
			l.Fatal(err)
		}
		slices.Reverse(history)
		l.notebook(k, history)
	}
}

// notebook checks one session's notes: each version adds one decision, and the newest
// version is the one that is read.
func (l *life) notebook(k *known, history []profiles.Note) {
	l.Helper()
	type data struct {
		Decisions []string `json:"key_decisions"`
		Tasks     []string `json:"open_tasks"`
	}
	var all []string
	for i, n := range history {
		var d data
		if err := json.Unmarshal(n.Data, &d); err != nil {
			l.Fatal(err)
		}
		if n.Version != int64(i+1) || len(d.Decisions) != i+1 || !slices.Equal(d.Decisions[:i], all) || !slices.Equal(d.Tasks, d.Decisions[i:]) {
			l.Errorf("version %d of the note of %s is at position %d with %s", n.Version, k.id, i+1, n.Data)
			return
		}
		all = d.Decisions
	}
	answered := slices.DeleteFunc(slices.Clone(all), func(d string) bool { return k.noting[d] })
	if !slices.Equal(answered, k.noted) {
		l.Errorf("the note of %s has the answered decisions %q, want %q", k.id, answered, k.noted)
	}
	if len(all) == 0 {
		return
	}
	var newest struct {
		Data data `json:"session_data"`
	}
	if _, ok := l.call(http.MethodGet, noteAPI+"/"+k.id, nil, &newest, http.StatusOK); ok &&
		(!slices.Equal(newest.Data.Decisions, all) || !slices.Equal(newest.Data.Tasks, all[len(all)-1:])) {
		l.Errorf("the note of %s is %+v, with %d versions, the last of which adds %s", k.id, newest, len(all), all[len(all)-1])
	}
}
