package session

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
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Import asks for a snapshot of what was saved elsewhere.
type Import struct {
	Format        library.Format
	UserID        string // "" for the key's
	Profile       string // of a datadir: the profile's folder; "" for "Default"
	Label         string
	SaveAsDefault bool
	Conflict      Conflict
	Size          int64 // of the body as it was announced; -1 or 0 where it was not
}

// maxImports bounds how many are read and stored at once, one of each user: each may
// keep a state file of [snapshot.MaxKept] bytes in memory several times over.
const maxImports = 2

// The most that an imported archive lists: entries, and bytes of their names. It
// is less than a restore takes, for who made the archive is not known.
const (
	maxImportEntries = 1 << 18
	maxImportNames   = 32 << 20
)

// importLimits bound an archive that is imported.
func (s *Service) importLimits() snapshot.Limits {
	limits := s.cfg.Unpack
	if limits.Entries == 0 || limits.Entries > maxImportEntries {
		limits.Entries = maxImportEntries
	}
	if limits.Names == 0 || limits.Names > maxImportNames {
		limits.Names = maxImportNames
	}
	return limits
}

// ImportAnswer is the snapshot that an import made: its report tells what came
// in and what was left out, and why.
type ImportAnswer struct {
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *DefaultOutcome      `json:"default"`
}

// arrival is what an import brings beside its document and files.
type arrival struct {
	lines    []state.Component // of what was left out
	sealed   []state.Component // of what came in and only another machine's keyring opens
	warnings []string
}

// Import makes a snapshot of an environment, or of the state of one, that was
// saved elsewhere. It belongs to a user, and to a session of its own that has
// ended. On any error nothing is stored. What is not of the format named, or
// hostile, is invalid_import. What there is no room for, by its size, is refused
// before it is read; where as many are on their way as may it is too_many_imports.
// The body is read whole first; then the import waits for its turn. It ends
// with its key.
func (s *Service) Import(ctx context.Context, c access.Caller, r Import, body io.Reader) (ImportAnswer, error) {
	ctx, leave, err := s.Keys.While(ctx, c)
	if err != nil {
		return ImportAnswer{}, err
	}
	defer leave()
	a, err := s.importBy(ctx, c, r, access.Reader(ctx, body))
	return a, access.OrKeyDeleted(ctx, err)
}

func (s *Service) importBy(ctx context.Context, c access.Caller, r Import, body io.Reader) (ImportAnswer, error) {
	const op = "session.import"
	if err := c.Require(access.Manage); err != nil {
		return ImportAnswer{}, err
	}
	if r.UserID == "" {
		r.UserID = c.UserID
	}
	if !c.MayActFor(r.UserID) {
		return ImportAnswer{}, fault.New(fault.Forbidden, op, "the key does not act for this user")
	}
	left, err := s.uploads.take(c.UserID)
	if err != nil {
		return ImportAnswer{}, err
	}
	defer left()
	if err := s.Vault.CheckRoom(ctx, r.Size); err != nil {
		return ImportAnswer{}, err
	}
	dir, err := s.Browsers.NewDir()
	if err != nil {
		return ImportAnswer{}, err
	}
	defer s.clear(dir)
	// A slow upload takes no other's turn: it is read whole before.
	upload, err := s.receive(ctx, r, dir, body)
	if err != nil {
		return ImportAnswer{}, err
	}
	defer func() { _ = upload.Close() }() // it was only read, and may be closed already
	leave, err := s.imports.Take(ctx, c.UserID)
	if err != nil {
		return ImportAnswer{}, err
	}
	defer leave()
	j := job{dir: dir, mode: SaveFilesystem, arrived: &arrival{}, label: r.Label}
	if r.SaveAsDefault {
		// The version that is current now: of two imports at once one moves it.
		d, err := s.Catalogue.Default(ctx, r.UserID)
		if err != nil && !fault.Is(err, fault.DefaultNotFound) {
			return ImportAnswer{}, err
		}
		j.move = &profiles.Move{From: d.Version, Overwrite: r.Conflict == ConflictOverwrite}
	}
	set, err := s.settings(ctx, r.UserID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return ImportAnswer{}, err
	}
	var wanted *profiles.Move // that waits for the login check
	if set.LoginCheck != nil && set.LoginCheck.BeforeDefault {
		wanted, j.move = j.move, nil
	}
	doc, err := s.take(ctx, r, j.dir, j.arrived, upload)
	if err := errors.Join(err, upload.Close()); err != nil {
		return ImportAnswer{}, err
	}
	var files []browser.File
	if doc.Datadir != state.DatadirNone {
		if files, err = s.Datadirs.Select(ctx, j.dir.Profile()); err != nil {
			return ImportAnswer{}, err
		}
	}
	if r.SaveAsDefault && doc.Datadir == state.DatadirNone && doc.Empty() {
		return ImportAnswer{}, fault.New(fault.InvalidImport, op, "save_as_default: there is no cookie, item or database in the file; nothing is replaced by nothing")
	}
	now := s.Now().UTC()
	if doc.CapturedAt.IsZero() {
		doc.CapturedAt = now
	}
	j.rec = profiles.Session{ID: profiles.NewID(), UserID: r.UserID, KeyID: c.KeyID, AgentName: "import", Engine: cmp.Or(doc.Chrome.Engine, browser.EngineChrome),
		Status: profiles.StatusCompleted, Reason: profiles.ReasonImported.With("imported"), CreatedAt: now, ExpiresAt: now, EndedAt: now}
	if err := s.enters(ctx, files, doc); err != nil {
		return ImportAnswer{}, err
	}
	kept, _, err := s.keep(ctx, j, doc, files)
	s.Meter.Saved(SavedImport, saveOutcome(err))
	if err != nil {
		return ImportAnswer{}, saveFailed(err, "")
	}
	answer := ImportAnswer{Snapshot: *kept.Snapshot, Default: kept.Default}
	if wanted != nil {
		answer.Default, err = s.proveImport(ctx, answer.Snapshot.ID, *set.LoginCheck, *wanted)
	}
	return answer, err
}

// enters refuses what could be stored and not be restored, and what there is
// no room for.
func (s *Service) enters(ctx context.Context, files []browser.File, doc state.Document) error {
	if err := s.fits(files, doc); err != nil {
		return fault.Wrap(err, fault.TooLarge, "session.import", fault.MessageOf(err))
	}
	return s.Vault.CheckRoom(ctx, browser.Size(files))
}

// receive writes the body to the disk. A state file, which is read into memory later,
// may not have more than [snapshot.MaxKept] bytes.
func (s *Service) receive(ctx context.Context, r Import, dir *browser.Dir, body io.Reader) (*os.File, error) {
	tooLarge := fault.New(fault.TooLarge, "session.import", "the file is larger than %d bytes", snapshot.MaxKept)
	if !r.Format.IsState() {
		return s.spool(ctx, dir, body)
	}
	if r.Size > snapshot.MaxKept {
		return nil, tooLarge
	}
	file, err := s.spool(ctx, dir, io.LimitReader(body, snapshot.MaxKept+1))
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
func (s *Service) take(ctx context.Context, r Import, dir *browser.Dir, a *arrival, upload *os.File) (state.Document, error) {
	switch r.Format {
	case library.FormatStasis:
		return s.takeArchive(ctx, dir, a, upload)
	case library.FormatDatadir:
		return s.takeDesktop(ctx, r.Profile, dir, a, upload)
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
	a.lines = lost
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
