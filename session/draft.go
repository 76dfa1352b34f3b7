package session

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

type jsonRaw = json.RawMessage

// private is the sealed part of a snapshot's document: what would tell whose
// environment it is and where it has been.
type private struct {
	UserID  string        `json:"user_id"`
	Tabs    []string      `json:"tabs"`    // URLs
	Origins []string      `json:"origins"` // storage keys and cookie domains
	Logins  []state.Login `json:"logins"`
}

// maxListedURL bounds a tab's URL in a document's sealed part, in bytes: a data:
// URL may have megabytes. The state document has it whole.
const maxListedURL = 2048

// fits refuses what could be saved and not be restored, before Chrome is
// closed for it.
func (s *Service) fits(files []browser.File, doc state.Document) error {
	const op = "session.save"
	if n := browser.Size(files); s.cfg.Unpack.Bytes > 0 && n > s.cfg.Unpack.Bytes {
		return fault.New(fault.SaveFailed, op, "the environment has %d bytes, more than the %d that a restore takes (--max-unpack)", n, s.cfg.Unpack.Bytes)
	}
	if err := s.cfg.Unpack.Lists(func(yield func(string) bool) {
		for _, f := range files {
			if !yield(f.Name) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return fitsDocument(doc, snapshot.MaxKept-surveyed)
}

// surveyed is room, in bytes, for what is only known when Chrome is closed: the
// names of what did not reach the disk.
const surveyed = 1 << 20

// fitsDocument refuses a state document that is larger than some bytes, of which
// a restore takes [snapshot.MaxKept]. One with that much in it is not encoded to
// learn its size.
func fitsDocument(doc state.Document, most int) error {
	n := doc.Strings()
	if n <= most {
		n = len(encode(doc))
	}
	if n > most {
		return fault.New(fault.SaveFailed, "session.save", "what its pages keep has %d bytes as a document, more than the %d that a save takes", n, most)
	}
	return nil
}

// draft makes the snapshot that is to be saved: the files of the datadir and
// the state document.
func draft(loc snapshot.Location, j job, doc state.Document, files []browser.File, at time.Time) snapshot.Draft {
	entries := make([]snapshot.Entry, 0, len(files)+1)
	for _, f := range files {
		e := snapshot.Entry{Name: f.Name, Path: f.Path, Mode: f.Mode}
		if f.Data != nil {
			e.Path, e.Data = "", f.Data
		}
		entries = append(entries, e)
	}
	entries = append(entries, snapshot.Entry{Name: state.FileName, Data: encode(doc), Mode: 0o600})
	p := private{UserID: j.rec.UserID, Tabs: []string{}, Origins: []string{}, Logins: state.Logins(doc, at)}
	for _, t := range doc.Tabs {
		p.Tabs = append(p.Tabs, t.URL[:min(len(t.URL), maxListedURL)])
	}
	for _, line := range state.Captured(doc) {
		if line.Origin != "" {
			p.Origins = append(p.Origins, line.Origin)
		}
	}
	slices.Sort(p.Origins)
	p.Origins = slices.Compact(p.Origins) // an origin has many kinds of state
	mode := snapshot.Filesystem
	if j.mode == SaveMemory {
		mode = snapshot.Memory
	}
	return snapshot.Draft{
		ID: profiles.NewID(), Location: loc, Mode: mode, CreatedAt: at, Entries: entries,
		Facts: map[string]any{
			"chrome": doc.Chrome.Version, "engine": j.rec.Engine, "datadir": string(doc.Datadir),
			"state_schema": doc.SchemaVersion, "cookies": len(doc.Cookies), "tabs": len(doc.Tabs),
			"files": len(files), "bytes": browser.Size(files),
		},
		Private: encode(p), AppData: agent.AppData(j.notes),
	}
}

// endAnswer is the answer of an end that saved.
func endAnswer(row profiles.Snapshot, j job, m profiles.Moved) EndAnswer {
	info := library.InfoOf(row, row.CreatedAt)
	done := "session ended, environment saved"
	if j.goesOn {
		done = "environment saved, the session runs on"
	}
	answer := EndAnswer{Success: true, Deleted: !j.goesOn, Message: done, Snapshot: &info, LeftOut: report.Bounded(j.left)}
	if j.move == nil && j.held == "" {
		return answer
	}
	answer.Default = &DefaultOutcome{Moved: m.Moved, Version: m.Version, Reason: m.Reason, LoginCheck: j.checked}
	if j.held != "" {
		answer.Default.Reason = j.held
	}
	if !m.Moved {
		answer.Message = done + "; the default was not moved: " + answer.Default.Reason
	}
	return answer
}
