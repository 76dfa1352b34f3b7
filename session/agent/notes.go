package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
)

// NoteEvents are the occasions on which notes are stored, as in the session-memory API.
var NoteEvents = []string{"pre_compact", "session_end", "checkpoint"}

// MaxNote is the most bytes of a note as JSON; it fits into a snapshot's document.
const MaxNote = 256 << 10

// NoteData is an agent's working state. It is the wire format, and what a snapshot keeps.
// What [PutNote] and the readers return has no nil list and no nil map.
type NoteData struct {
	ProjectPath   *string                    `json:"project_path"` // nil: unknown
	FilesModified []string                   `json:"files_modified"`
	CommandsRun   []string                   `json:"commands_run"`
	KeyDecisions  []string                   `json:"key_decisions"`
	OpenTasks     []string                   `json:"open_tasks"`
	Extra         map[string]json.RawMessage `json:"extra"` // fields that Stasis does not know
}

// NoteChange is a change of the note under a session ID. What is nil leaves the stored
// value, unless Replace is set: then the change is the whole note.
type NoteChange struct {
	SessionID string
	Event     string // one of [NoteEvents]; "": not given
	Replace   bool
	NoteData
}

// Note is the newest version of a note.
type Note struct {
	SessionID string
	Event     string
	Data      NoteData
	CreatedAt time.Time
	UpdatedAt time.Time
}

// merge adds a change to the data. Files, commands and decisions are added to the
// stored ones, in the order in which they were first named. Open tasks, the path and each
// extra field replace the stored ones.
func (d NoteData) merge(c NoteData) NoteData {
	if c.ProjectPath != nil {
		d.ProjectPath = c.ProjectPath
	}
	if c.OpenTasks != nil {
		d.OpenTasks = c.OpenTasks
	}
	d.FilesModified = union(d.FilesModified, c.FilesModified)
	d.CommandsRun = union(d.CommandsRun, c.CommandsRun)
	d.KeyDecisions = union(d.KeyDecisions, c.KeyDecisions)
	d.OpenTasks = append([]string{}, d.OpenTasks...)
	extra := map[string]json.RawMessage{}
	maps.Copy(extra, d.Extra)
	maps.Copy(extra, c.Extra)
	d.Extra = extra
	return d
}

// noteData decodes stored data. Earlier versions stored an unknown path as "".
func noteData(raw json.RawMessage) (NoteData, error) {
	var d NoteData
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &d); err != nil {
			return d, unreadableNote(err)
		}
	}
	if d.ProjectPath != nil && *d.ProjectPath == "" {
		d.ProjectPath = nil
	}
	return d.merge(NoteData{}), nil
}

func union(lists ...[]string) []string {
	all, seen := []string{}, map[string]bool{}
	for _, item := range slices.Concat(lists...) {
		if !seen[item] {
			seen[item] = true
			all = append(all, item)
		}
	}
	return all
}

// NoteReader reads notes; see [profiles.NoteStore].
type NoteReader interface {
	Note(ctx context.Context, userID, sessionID string) (profiles.Note, error) // the newest version; else note_not_found
}

// NoteStore stores the versions of notes; see [profiles.NoteStore].
type NoteStore interface {
	PutNote(ctx context.Context, n profiles.Note, change func(was json.RawMessage) (json.RawMessage, error)) (profiles.Note, error)
	Note(ctx context.Context, userID, sessionID string) (profiles.Note, error) // the newest version; else note_not_found
	LatestNote(ctx context.Context, userID string) (profiles.Note, error)
}

// Notes manages agents' notes. Its methods are safe for concurrent use.
type Notes struct {
	sessions Sessions
	store    NoteStore
	now      func() time.Time
}

// NewNotes makes Notes over a store.
func NewNotes(sessions Sessions, store NoteStore, now func() time.Time) *Notes {
	return &Notes{sessions, store, now}
}

// PutNote stores a note as a new version of the note with its session ID. Without Replace,
// the first note of a restored session continues the notes that were restored with it. A note that
// becomes larger than [MaxNote] is too_large.
func (n *Notes) PutNote(ctx context.Context, c access.Caller, change NoteChange) (Note, error) {
	rec, err := n.owner(ctx, c, change.SessionID, access.Drive)
	if err != nil {
		return Note{}, err
	}
	restored, err := RestoredNotes(rec)
	if err != nil {
		return Note{}, err
	}
	stored, err := n.store.PutNote(ctx, profiles.Note{UserID: rec.UserID, SessionID: change.SessionID, Event: change.Event, UpdatedAt: n.now().UTC()},
		func(was json.RawMessage) (json.RawMessage, error) {
			if was == nil && restored != nil {
				was = restored.Data
			}
			if change.Replace {
				was = nil
			}
			data, err := noteData(was)
			if err != nil {
				return nil, err
			}
			whole := profiles.JSON(data.merge(change.NoteData))
			if len(whole) > MaxNote {
				return nil, fault.New(fault.TooLarge, "agent.note",
					"the note would have %d bytes with the stored part; at most %d are allowed; continue under another session_id", len(whole), MaxNote)
			}
			return whole, nil
		})
	if err != nil {
		return Note{}, err
	}
	n.sessions.Report(ctx, rec.UserID, change.SessionID, events.Note, events.Fields{"version": stored.Version, "event": stored.Event})
	return noteOf(stored)
}

// Note returns the newest note of a session ID, with or without a browser.
func (n *Notes) Note(ctx context.Context, c access.Caller, sessionID string) (Note, error) {
	rec, err := n.owner(ctx, c, sessionID, access.Look)
	if err != nil {
		return Note{}, err
	}
	stored, err := n.store.Note(ctx, rec.UserID, sessionID)
	if err != nil {
		return Note{}, err
	}
	return noteOf(stored)
}

// LatestNote returns the note that a user stored last; userID "" is the key's user.
func (n *Notes) LatestNote(ctx context.Context, c access.Caller, userID string) (Note, error) {
	if err := c.Require(access.Look); err != nil {
		return Note{}, err
	}
	if userID == "" {
		userID = c.UserID
	}
	if !c.MayActFor(userID) {
		return Note{}, fault.New(fault.NoteNotFound, "agent.note", "%s", fault.NoteNotFound.Text())
	}
	stored, err := n.store.LatestNote(ctx, userID)
	if err != nil {
		return Note{}, err
	}
	return noteOf(stored)
}

// SessionNotes returns the notes of a browser session: its own, else those that it was
// restored with.
func (n *Notes) SessionNotes(ctx context.Context, c access.Caller, id string) (Note, error) {
	rec, err := n.sessions.Record(ctx, c, id, access.Look)
	if err != nil {
		return Note{}, err
	}
	stored, err := n.store.Note(ctx, rec.UserID, id)
	if err == nil {
		return noteOf(stored)
	}
	if !fault.Is(err, fault.NoteNotFound) {
		return Note{}, err
	}
	restored, rerr := RestoredNotes(rec)
	if rerr != nil || restored == nil {
		return Note{}, cmp.Or(rerr, err)
	}
	data, err := noteData(restored.Data)
	return Note{SessionID: restored.SessionID, Data: data, CreatedAt: restored.StoredAt, UpdatedAt: restored.StoredAt}, err
}

// owner returns the record whose UserID owns a note under a session ID.
func (n *Notes) owner(ctx context.Context, c access.Caller, sessionID string, p access.Permission) (profiles.Session, error) {
	return owner(ctx, n.sessions, c, sessionID, p, func() (bool, error) {
		_, err := n.store.Note(ctx, c.UserID, sessionID)
		if fault.Is(err, fault.NoteNotFound) {
			return false, nil
		}
		return err == nil, err
	})
}

func noteOf(n profiles.Note) (Note, error) {
	data, err := noteData(n.Data)
	return Note{SessionID: n.SessionID, Event: n.Event, Data: data, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}, err
}

func unreadableNote(err error) error {
	return fault.Wrap(err, fault.StoreFailed, "agent.note", "a stored note cannot be read")
}
