package importer

import (
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
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Request describes an import of what was saved elsewhere.
type Request struct {
	Format        library.Format
	UserID        string // "": the key's user
	Profile       string // with format datadir: the profile's folder; "": "Default"
	Label         string
	SaveAsDefault bool
	Conflict      save.Conflict
	Size          int64 // of the body, as announced; -1 or 0 if not announced
}

// MaxImports is how many imports are read and stored at once, at most one for each user.
// Each may hold a state file of [snapshot.MaxKept] bytes in memory several times.
const MaxImports = 2

// The most entries, and bytes of their names, that an imported archive may list. It is
// less than a restore accepts, because the origin of the archive is unknown.
const (
	maxImportEntries = 1 << 18
	maxImportNames   = 32 << 20
)

// limits returns the limits of an imported archive.
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

// Answer is the wire format of an import's answer. The report of its snapshot says what
// was imported, what was left out, and why.
type Answer struct {
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *save.DefaultOutcome `json:"default"`
}

// Import makes a snapshot of an environment, or of its state, that was saved elsewhere.
// The snapshot belongs to a user, and to a new session that has ended. After an error
// nothing is stored. A file that does not have the named format, or is hostile, is
// invalid_import. A body that the store has no space for is refused before it is read. If
// too many imports are running, the error is too_many_imports. Import first reads the
// whole body, then waits for its turn. It is cancelled when its key is deleted.
func (i *Importer) Import(ctx context.Context, c access.Caller, r Request, body io.Reader) (Answer, error) {
	ctx, leave, err := i.cfg.Keys.CallContext(ctx, c)
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
		return Answer{}, fault.New(fault.Forbidden, op, "user_id: the key may not act for this user")
	}
	release, err := i.cfg.Quotas.Begin(ctx, c, r.UserID)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	admit, err := i.cfg.Quotas.Admission(ctx, r.UserID, c.KeyID)
	if err != nil {
		return Answer{}, err
	}
	left, err := i.uploads.take(r.UserID)
	if err != nil {
		return Answer{}, err
	}
	defer left()
	if err := i.cfg.Archives.CheckSpace(ctx, r.Size); err != nil {
		return Answer{}, err
	}
	dir, err := i.cfg.Dirs.NewDir()
	if err != nil {
		return Answer{}, err
	}
	defer browsers.Remove(dir, i.cfg.Log)
	// The whole upload is read before it takes a turn, so a slow upload delays no other
	// import.
	upload, err := i.receive(ctx, r, dir, body)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = upload.Close() }() // it was only read, and may be closed already
	leave, err := i.cfg.Turns.Take(ctx, r.UserID)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	j := save.Job{Dir: dir, Mode: save.Filesystem, Import: &save.Import{}, Examined: true, Label: r.Label, Admit: admit}
	if r.SaveAsDefault {
		// The current version: of two imports at once, only one moves the default.
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
	var wanted *profiles.Move // the move that waits for the login check
	if set.LoginCheck != nil && set.LoginCheck.BeforeDefault {
		wanted, j.Move = j.Move, nil
	}
	doc, err := i.read(ctx, r, dir, j.Import, upload)
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
		return Answer{}, fault.New(fault.InvalidImport, op, "save_as_default: the file has no cookie, item or database; an empty import must not replace a default")
	}
	now := i.cfg.Now().UTC()
	if doc.CapturedAt.IsZero() {
		doc.CapturedAt = now
	}
	j.Session = profiles.Session{ID: profiles.NewID(), UserID: r.UserID, KeyID: c.KeyID, AgentName: "import", Engine: cmp.Or(doc.Chrome.Engine, browser.EngineChrome),
		Status: profiles.StatusCompleted, Reason: profiles.ReasonImported.With("imported"), CreatedAt: now, ExpiresAt: now, EndedAt: now}
	if err := i.checkFits(ctx, files, doc); err != nil {
		return Answer{}, err
	}
	kept, _, err := i.cfg.Saver.Keep(ctx, j, doc, files)
	i.cfg.Meter.Saved(save.ForImport, save.ResultOf(err))
	if err != nil {
		return Answer{}, save.Failure(err, "")
	}
	answer := Answer{Snapshot: *kept.Snapshot, Default: kept.Default}
	if wanted != nil {
		answer.Default, err = i.checkLogin(ctx, c, answer.Snapshot.ID, *set.LoginCheck, *wanted)
	}
	return answer, err
}

// checkFits returns an error for what could be stored but not restored, and for what the
// store has no space for.
func (i *Importer) checkFits(ctx context.Context, files []browser.File, doc state.Document) error {
	if err := i.cfg.Saver.CheckFits(files, doc); err != nil {
		return fault.Wrap(err, fault.TooLarge, "session.import", fault.MessageOf(err))
	}
	return i.cfg.Archives.CheckSpace(ctx, browser.Size(files))
}

// receive writes the body to disk. A state file may have at most [snapshot.MaxKept]
// bytes, because it is read into memory later.
func (i *Importer) receive(ctx context.Context, r Request, dir *browser.Dir, body io.Reader) (*os.File, error) {
	tooLarge := fault.New(fault.TooLarge, "session.import", "the file is too large; a state file may have at most %d bytes", snapshot.MaxKept)
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

// read has an upload read: its files are then in the run directory. It returns the document.
func (i *Importer) read(ctx context.Context, r Request, dir *browser.Dir, a *save.Import, upload *os.File) (state.Document, error) {
	const op = "session.import"
	if r.Format != library.FormatStasis && r.Format != library.FormatDatadir && !r.Format.IsState() {
		return state.Document{}, fault.New(fault.InvalidField, op, "format: must be stasis, playwright, puppeteer, netscape or datadir")
	}
	plain, err := i.unsealed(ctx, r.Format, dir, upload)
	if err != nil {
		return state.Document{}, err
	}
	found, err := i.cfg.Reader.Read(ctx, ReadRequest{
		Format: r.Format, Profile: r.Profile, AsDefault: r.SaveAsDefault, Limits: i.limits(), Unpack: i.cfg.Unpack, Now: i.cfg.Now()}, plain, dir)
	if plain != upload {
		err = errors.Join(err, plain.Close())
	}
	if err != nil {
		return state.Document{}, err
	}
	*a = found.Import
	return found.Document, nil
}

// unsealed returns the upload, or what a sealed one holds, as another file. Its reader has
// no keys.
func (i *Importer) unsealed(ctx context.Context, format library.Format, dir *browser.Dir, upload *os.File) (*os.File, error) {
	if format.IsState() {
		return upload, nil
	}
	file, err := i.tempFile(dir)
	if err != nil {
		return nil, err
	}
	sealed, err := i.cfg.Archives.UnsealUpload(ctx, upload, i.writer(ctx, file))
	if err != nil || !sealed {
		return upload, errors.Join(err, file.Close())
	}
	return file, nil
}

// unreadable returns the error of a body that could not be read. An error that has a code
// keeps it.
func unreadable(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.InvalidRequest, "session.import", "the body could not be read")
}

// checkLogin makes the user's login check on the imported snapshot, in a separate Chrome, and
// then moves the default. The snapshot stays even if the check fails.
func (i *Importer) checkLogin(ctx context.Context, c access.Caller, id string, check settings.LoginCheck, m profiles.Move) (*save.DefaultOutcome, error) {
	snap, err := i.cfg.Records.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	outcome := i.cfg.Login.BeforeDefault(ctx, c, snap, check)
	if !outcome.LoggedIn {
		return &save.DefaultOutcome{Version: m.From, Reason: save.LoginCheckFailed, LoginCheck: &outcome}, nil
	}
	return i.cfg.Saver.MoveDefault(ctx, snap, m, &outcome)
}
