package session

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/journal"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
)

// NoteEvents are the occasions on which notes are stored, those of the
// session-memory API.
var NoteEvents = []string{"pre_compact", "session_end", "checkpoint"}

// MaxNote bounds a note, in bytes of JSON: a snapshot's document has room for it.
const MaxNote = 256 << 10

// NoteData is an agent's working state.
type NoteData struct {
	ProjectPath   string   `json:"project_path"`
	FilesModified []string `json:"files_modified"`
	CommandsRun   []string `json:"commands_run"`
	KeyDecisions  []string `json:"key_decisions"`
	OpenTasks     []string `json:"open_tasks"`
}

// NoteChange is what is to be noted under a session ID. Lists that are nil, and
// an empty path, leave what there is.
type NoteChange struct {
	SessionID string
	Event     string // one of [NoteEvents]; "": nobody said
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

// with merges a change into a state: files, commands and decisions are added
// to those that are there, in the order in which they were first named; open
// tasks and the path take the place of what was.
func (d NoteData) with(c NoteData) NoteData {
	if c.ProjectPath != "" {
		d.ProjectPath = c.ProjectPath
	}
	if c.OpenTasks != nil {
		d.OpenTasks = c.OpenTasks
	}
	d.FilesModified = union(d.FilesModified, c.FilesModified)
	d.CommandsRun = union(d.CommandsRun, c.CommandsRun)
	d.KeyDecisions = union(d.KeyDecisions, c.KeyDecisions)
	d.OpenTasks = append([]string{}, d.OpenTasks...) // never null
	return d
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

// PutNote stores a note, as a new version of the one that its session ID has.
// The first one of a restored session goes on from what was restored with it.
func (s *Service) PutNote(ctx context.Context, c access.Caller, n NoteChange) (Note, error) {
	rec, err := s.noted(ctx, c, n.SessionID, access.Drive)
	if err != nil {
		return Note{}, err
	}
	restored, err := restoredNotes(rec)
	if err != nil {
		return Note{}, err
	}
	stored, err := s.Catalogue.PutNote(ctx, profiles.Note{UserID: rec.UserID, SessionID: n.SessionID, Event: n.Event, UpdatedAt: s.Now().UTC()},
		func(was json.RawMessage) (json.RawMessage, error) {
			var data NoteData
			switch {
			case was != nil:
				if err := json.Unmarshal(was, &data); err != nil {
					return nil, unreadableNote(err)
				}
			case restored != nil:
				if err := json.Unmarshal(restored.Data, &data); err != nil {
					return nil, unreadableNote(err)
				}
			}
			whole := encode(data.with(n.NoteData))
			if len(whole) > MaxNote {
				return nil, fault.New(fault.TooLarge, "session.note",
					"the note would have %d bytes with what it has already, and may have %d; go on under another session_id", len(whole), MaxNote)
			}
			return whole, nil
		})
	if err != nil {
		return Note{}, err
	}
	if l := s.find(n.SessionID); l != nil && l.userID == rec.UserID {
		// A session that has ended meanwhile has no run to tell it in.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.writer.Record(journal.Note, journal.Fields{"version": stored.Version, "event": stored.Event})
			return nil
		})
		s.journal.Flush(ctx, n.SessionID) // it is told, whatever becomes of the daemon
	}
	return noteOf(stored)
}

// Note gives the newest note of a session ID, whether that had a browser or not.
func (s *Service) Note(ctx context.Context, c access.Caller, sessionID string) (Note, error) {
	rec, err := s.noted(ctx, c, sessionID, access.Look)
	if err != nil {
		return Note{}, err
	}
	n, err := s.Catalogue.Note(ctx, rec.UserID, sessionID)
	if err != nil {
		return Note{}, err
	}
	return noteOf(n)
}

// LatestNote gives the note that a user stored last; userID "" is the key's own.
func (s *Service) LatestNote(ctx context.Context, c access.Caller, userID string) (Note, error) {
	if err := c.Require(access.Look); err != nil {
		return Note{}, err
	}
	if userID == "" {
		userID = c.UserID
	}
	if !c.MayActFor(userID) {
		return Note{}, fault.New(fault.NoteNotFound, "session.note", "%s", fault.NoteNotFound.Text())
	}
	n, err := s.Catalogue.LatestNote(ctx, userID)
	if err != nil {
		return Note{}, err
	}
	return noteOf(n)
}

// SessionNotes gives what goes with a browser session: its own note, else what
// it was restored with.
func (s *Service) SessionNotes(ctx context.Context, c access.Caller, id string) (Note, error) {
	rec, err := s.record(ctx, c, id, access.Look)
	if err != nil {
		return Note{}, err
	}
	n, err := s.Catalogue.Note(ctx, rec.UserID, id)
	if err == nil {
		return noteOf(n)
	}
	if !fault.Is(err, fault.NoteNotFound) {
		return Note{}, err
	}
	restored, rerr := restoredNotes(rec)
	if rerr != nil || restored == nil {
		return Note{}, cmp.Or(rerr, err)
	}
	note := Note{SessionID: restored.SessionID, CreatedAt: restored.StoredAt, UpdatedAt: restored.StoredAt}
	return note, unreadableNote(json.Unmarshal(restored.Data, &note.Data))
}

// noted is the record that says whose a note under a session ID is; see
// [Service.keptUnder].
func (s *Service) noted(ctx context.Context, c access.Caller, sessionID string, p access.Permission) (profiles.Session, error) {
	return s.keptUnder(ctx, c, sessionID, p, func() (bool, error) {
		_, err := s.Catalogue.Note(ctx, c.UserID, sessionID)
		if fault.Is(err, fault.NoteNotFound) {
			return false, nil
		}
		return err == nil, err
	})
}

// notesOf are the notes that go into a session's snapshot: the newest of its ID,
// else those that it was restored with; nil where there are none.
func (s *Service) notesOf(ctx context.Context, rec profiles.Session) (*restore.Notes, error) {
	stored, err := s.Catalogue.Note(ctx, rec.UserID, rec.ID)
	if fault.Is(err, fault.NoteNotFound) {
		return restoredNotes(rec)
	}
	if err != nil {
		return nil, err
	}
	n, err := noteOf(stored)
	return &restore.Notes{SessionID: n.SessionID, StoredAt: n.UpdatedAt, Data: encode(n.Data)}, err
}

// restoredNotes are those that a session was restored with; nil: none.
func restoredNotes(rec profiles.Session) (*restore.Notes, error) {
	var report restore.Report
	if rec.Restored != nil {
		if err := json.Unmarshal(rec.Restored, &report); err != nil {
			return nil, unreadableNote(err)
		}
	}
	return report.Notes, unreadableNote(checkNotes(report.Notes))
}

// checkNotes brings notes into the shape that answers have, or returns an error where
// they have another one.
func checkNotes(n *restore.Notes) error {
	if n == nil {
		return nil
	}
	var data NoteData
	if len(n.Data) > 0 {
		if err := json.Unmarshal(n.Data, &data); err != nil {
			return err
		}
	}
	n.Data = encode(data)
	return nil
}

func noteOf(n profiles.Note) (Note, error) {
	note := Note{SessionID: n.SessionID, Event: n.Event, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}
	return note, unreadableNote(json.Unmarshal(n.Data, &note.Data))
}

func unreadableNote(err error) error {
	return fault.Wrap(err, fault.StoreFailed, "session.note", "a recorded note cannot be read")
}

// appData is what a snapshot keeps of what agents noted.
type appData struct {
	Notes *restore.Notes `json:"notes"`
}

// appDataOf is that of notes; nil where there are none.
func appDataOf(n *restore.Notes) json.RawMessage {
	if n == nil {
		return nil
	}
	return encode(appData{n})
}

// notesIn are the notes that a snapshot keeps; nil: none.
func notesIn(saved snapshot.Snapshot) (*restore.Notes, error) {
	var kept appData
	if saved.AppData == nil {
		return nil, nil
	}
	err := json.Unmarshal(saved.AppData, &kept)
	if err == nil {
		err = checkNotes(kept.Notes)
	}
	return kept.Notes, fault.Wrap(err, fault.ArchiveDamaged, "session.restore", "snapshot "+saved.ID+": its appData is not of the right shape")
}
