package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Request asks for a snapshot of what was saved elsewhere.
type Request struct {
	Format        library.Format
	UserID        string // "" for the key's
	Profile       string // of a datadir: the profile's folder; "" for "Default"
	Label         string
	SaveAsDefault bool
	Conflict      save.Conflict
	Size          int64 // of the body as it was announced; -1 or 0 where it was not
}

// MaxImports bounds how many imports are read and stored at once, one per user: each may
// keep a state file of [snapshot.MaxKept] bytes in memory several times.
const MaxImports = 2

// The most that an imported archive may list: entries, and bytes of their names. It is
// less than a restore takes, because nobody knows who made the archive.
const (
	maxImportEntries = 1 << 18
	maxImportNames   = 32 << 20
)

// limits bound an archive that is imported.
func (i *Importer) limits() snapshot.Limits {
	limits := i.cfg.Unpack
	if limits.Entries == 0 || limits.Entries > maxImportEntries {
		limits.Entries = maxImportEntries
	}
	if limits.Names == 0 || limits.Names > maxImportNames {
		limits.Names = maxImportNames
	}
	return limits
}

// Answer is the answer of an import, on the wire. The report of its snapshot says what
// was imported, what was left out, and why.
type Answer struct {
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *save.DefaultOutcome `json:"default"`
}

// Import makes a snapshot of an environment, or of its state, that was saved elsewhere.
// The snapshot belongs to a user, and to a session of its own that has ended. After an
// error nothing is stored. What does not have the named format, or is hostile, is
// invalid_import. A body that the store has no room for is refused before it is read;
// with too many imports under way the error is too_many_imports. The body is read whole
// first; then the import waits for its turn. It is cancelled when its key is deleted.
func (i *Importer) Import(ctx context.Context, c access.Caller, r Request, body io.Reader) (Answer, error) {
	ctx, leave, err := i.cfg.Keys.While(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	a, err := i.importBy(ctx, c, r, access.Reader(ctx, body))
	return a, access.OrKeyDeleted(ctx, err)
}

func (i *Importer) importBy(ctx context.Context, c access.Caller, r Request, body io.Reader) (Answer, error) {
	const op = "session.import"
	if err := c.Require(access.Manage); err != nil {
		return Answer{}, err
	}
	if r.UserID == "" {
		r.UserID = c.UserID
	}
	if !c.MayActFor(r.UserID) {
		return Answer{}, fault.New(fault.Forbidden, op, "the key does not act for this user")
	}
	left, err := i.uploads.take(c.UserID)
	if err != nil {
		return Answer{}, err
	}
	defer left()
	if err := i.cfg.Archives.CheckRoom(ctx, r.Size); err != nil {
		return Answer{}, err
	}
	dir, err := i.cfg.Dirs.NewDir()
	if err != nil {
		return Answer{}, err
	}
	defer browsers.Remove(dir, i.cfg.Log)
	// The upload is read whole before it takes a turn, so a slow one holds up nobody.
	upload, err := i.receive(ctx, r, dir, body)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = upload.Close() }() // it was only read, and may be closed already
	leave, err := i.cfg.Turns.Take(ctx, c.UserID)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	j := save.Job{Dir: dir, Mode: save.Filesystem, Arrived: &save.Arrival{}, Label: r.Label}
	if r.SaveAsDefault {
		// The version that is current now: of two imports at once one moves it.
		d, err := i.cfg.Records.Default(ctx, r.UserID)
		if err != nil && !fault.Is(err, fault.DefaultNotFound) {
			return Answer{}, err
		}
		j.Move = &profiles.Move{From: d.Version, Overwrite: r.Conflict == save.Overwrite}
	}
	set, err := i.cfg.Users.For(ctx, r.UserID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return Answer{}, err
	}
	var wanted *profiles.Move // that waits for the login check
	if set.LoginCheck != nil && set.LoginCheck.BeforeDefault {
		wanted, j.Move = j.Move, nil
	}
	doc, err := i.take(ctx, r, j.Dir, j.Arrived, upload)
	if err := errors.Join(err, upload.Close()); err != nil {
		return Answer{}, err
	}
	var files []browser.File
	if doc.Datadir != state.DatadirNone {
		if files, err = i.cfg.Datadirs.Select(ctx, j.Dir.Profile()); err != nil {
			return Answer{}, err
		}
	}
	if r.SaveAsDefault && doc.Datadir == state.DatadirNone && doc.Empty() {
		return Answer{}, fault.New(fault.InvalidImport, op, "save_as_default: there is no cookie, item or database in the file; nothing is replaced by nothing")
	}
	now := i.cfg.Now().UTC()
	if doc.CapturedAt.IsZero() {
		doc.CapturedAt = now
	}
	j.Session = profiles.Session{ID: profiles.NewID(), UserID: r.UserID, KeyID: c.KeyID, AgentName: "import", Engine: cmp.Or(doc.Chrome.Engine, browser.EngineChrome),
		Status: profiles.StatusCompleted, Reason: profiles.ReasonImported.With("imported"), CreatedAt: now, ExpiresAt: now, EndedAt: now}
	if err := i.enters(ctx, files, doc); err != nil {
		return Answer{}, err
	}
	kept, _, err := i.cfg.Saver.Keep(ctx, j, doc, files)
	i.cfg.Meter.Saved(save.ForImport, save.ResultOf(err))
	if err != nil {
		return Answer{}, save.Failure(err, "")
	}
	answer := Answer{Snapshot: *kept.Snapshot, Default: kept.Default}
	if wanted != nil {
		answer.Default, err = i.prove(ctx, answer.Snapshot.ID, *set.LoginCheck, *wanted)
	}
	return answer, err
}

// enters refuses what could be stored but not restored, and what the store has no
// room for.
func (i *Importer) enters(ctx context.Context, files []browser.File, doc state.Document) error {
	if err := i.cfg.Saver.Fits(files, doc); err != nil {
		return fault.Wrap(err, fault.TooLarge, "session.import", fault.MessageOf(err))
	}
	return i.cfg.Archives.CheckRoom(ctx, browser.Size(files))
}

// receive writes the body to the disk. A state file may not have more than
// [snapshot.MaxKept] bytes, because it is read into memory later.
func (i *Importer) receive(ctx context.Context, r Request, dir *browser.Dir, body io.Reader) (*os.File, error) {
	tooLarge := fault.New(fault.TooLarge, "session.import", "the file is larger than %d bytes", snapshot.MaxKept)
	if !r.Format.IsState() {
		return i.spool(ctx, dir, body)
	}
	if r.Size > snapshot.MaxKept {
		return nil, tooLarge
	}
	file, err := i.spool(ctx, dir, io.LimitReader(body, snapshot.MaxKept+1))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() > snapshot.MaxKept {
		err = tooLarge
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// take reads what is imported: the document, and the files of a profile into
// the run directory.
func (i *Importer) take(ctx context.Context, r Request, dir *browser.Dir, a *save.Arrival, upload *os.File) (state.Document, error) {
	switch r.Format {
	case library.FormatStasis:
		return i.takeArchive(ctx, dir, a, upload)
	case library.FormatDatadir:
		return i.takeDesktop(ctx, r.Profile, dir, a, upload)
	}
	if !r.Format.IsState() {
		return state.Document{}, fault.New(fault.InvalidField, "session.import", "format: is not known")
	}
	raw, err := io.ReadAll(upload)
	if err != nil {
		return state.Document{}, fault.Wrap(err, fault.Internal, "session.import", "")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return state.Document{}, fault.New(fault.InvalidImport, "session.import", "the body is empty; with curl: --data-binary @FILE")
	}
	doc, lost, err := r.Format.ReadState(raw)
	doc.Chrome.Engine = browser.EngineChrome
	a.Lines = lost
	return doc, err
}

// unreadable keeps the code of a body that could not be read.
func unreadable(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.InvalidRequest, "session.import", "the body could not be read")
}

// prove runs the user's login check on the imported snapshot, in a Chrome of its own,
// and then moves the default. The snapshot stays, whatever the outcome is.
func (i *Importer) prove(ctx context.Context, id string, check settings.LoginCheck, m profiles.Move) (*save.DefaultOutcome, error) {
	snap, err := i.cfg.Records.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	outcome, err := i.cfg.Login.CheckSnapshot(ctx, snap, check)
	if err != nil {
		outcome = login.NotAsked(i.cfg.Now(), err)
		i.cfg.Log.Warn("a login check of an import could not be run", "snapshot", id, "error", err)
	}
	if !outcome.LoggedIn {
		return &save.DefaultOutcome{Version: m.From, Reason: save.LoginCheckFailed, LoginCheck: &outcome}, nil
	}
	return i.cfg.Saver.MoveDefault(ctx, snap, m, &outcome)
}
