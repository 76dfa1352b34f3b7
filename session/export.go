package session

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Export asks for the state of an environment in a format.
type Export struct {
	Format Format
	// IndexedDB starts a Chrome on the environment to read its databases.
	IndexedDB bool
}

// Exported is the state of an environment in a format, and what of the
// environment the format does not hold.
type Exported struct {
	Body       []byte
	NotCarried []NotCarried
}

// State gives the state of a snapshot in a format. It needs the right to
// secrets.
func (s *Service) State(ctx context.Context, c access.Caller, id string, r Export) (Exported, error) {
	row, err := s.secretSnapshot(ctx, c, id)
	if err != nil {
		return Exported{}, err
	}
	leave, err := s.readings.Take(ctx, c.UserID)
	if err != nil {
		return Exported{}, err
	}
	defer leave()
	return s.export(ctx, row, r)
}

// DefaultState gives the state of a user's default environment in a format.
func (s *Service) DefaultState(ctx context.Context, c access.Caller, userID string, r Export) (Exported, error) {
	d, err := s.Default(ctx, c, userID)
	if err != nil {
		return Exported{}, err
	}
	return s.State(ctx, c, d.SnapshotID, r)
}

// Archive gives a snapshot's archive, unsealed, as it streams. What was read is
// verified only when the reader has come to its end; damage is its error. The
// caller closes it.
func (s *Service) Archive(ctx context.Context, c access.Caller, id string) (io.ReadCloser, error) {
	row, err := s.secretSnapshot(ctx, c, id)
	if err != nil {
		return nil, err
	}
	release, err := s.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return nil, err
	}
	saved, err := s.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		release()
		return nil, err
	}
	archive, err := s.Vault.OpenArchive(ctx, saved)
	if err != nil {
		release()
		return nil, err
	}
	return s.held(ctx, c, archive, release)
}

// heldArchive keeps its snapshot from being removed until it is closed. It ends with
// its reader's key.
type heldArchive struct {
	io.Reader
	closer  io.Closer
	release func()
}

func (s *Service) held(ctx context.Context, c access.Caller, archive io.ReadCloser, release func()) (io.ReadCloser, error) {
	ctx, leave, err := s.Keys.While(ctx, c)
	if err != nil {
		release()
		return nil, errors.Join(err, archive.Close())
	}
	return &heldArchive{access.Reader(ctx, archive), archive, func() { leave(); release() }}, nil
}

// Close ends the reading.
func (a *heldArchive) Close() error {
	defer a.release()
	return a.closer.Close()
}

// SealedArchive is an archive as an age file, as it streams: whole only when it was
// read to its end.
type SealedArchive struct {
	io.ReadCloser
	Size          int64  // bytes
	PayloadSHA256 string // of what follows age's header, hex
}

// SealedArchive gives a snapshot's archive sealed to recipients ("age1…"), or to
// none: as it is stored, sealed to the daemon's own. The caller closes it.
func (s *Service) SealedArchive(ctx context.Context, c access.Caller, id string, to []string) (SealedArchive, error) {
	if _, err := snapshot.ParseRecipients(to); err != nil {
		return SealedArchive{}, fault.Wrap(err, fault.InvalidField, "session.archive", fault.MessageOf(err))
	}
	row, err := s.secretSnapshot(ctx, c, id)
	if err != nil {
		return SealedArchive{}, err
	}
	release, err := s.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return SealedArchive{}, err
	}
	saved, err := s.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		release()
		return SealedArchive{}, err
	}
	sealed, err := s.Vault.OpenSealed(ctx, saved, to)
	if err != nil {
		release()
		return SealedArchive{}, err
	}
	held, err := s.held(ctx, c, sealed, release)
	return SealedArchive{ReadCloser: held, Size: sealed.Size, PayloadSHA256: sealed.PayloadSHA256}, err
}

// secretSnapshot is a snapshot that the caller may read the secrets of.
func (s *Service) secretSnapshot(ctx context.Context, c access.Caller, id string) (profiles.Snapshot, error) {
	if err := c.Require(access.Secrets); err != nil {
		return profiles.Snapshot{}, err
	}
	row, err := s.ownSnapshot(ctx, c, id, access.Look)
	if err == nil {
		s.Log.Info("the secrets of a snapshot are read", "snapshot", id, "key", c.KeyID)
	}
	return row, err
}

func (s *Service) export(ctx context.Context, row profiles.Snapshot, r Export) (Exported, error) {
	release, err := s.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return Exported{}, err
	}
	defer release()
	saved, err := s.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		return Exported{}, err
	}
	files, err := s.Vault.Peek(ctx, saved, state.FileName)
	if err != nil {
		return Exported{}, err
	}
	// Each step takes a second or two of the largest document.
	if err := givenUp(ctx.Err()); err != nil {
		return Exported{}, err
	}
	doc, err := library.ParseDocument(row.ID, files[state.FileName])
	if err != nil {
		return Exported{}, err
	}
	if err := givenUp(ctx.Err()); err != nil {
		return Exported{}, err
	}
	if r.Format == FormatStasis {
		out := Exported{Body: files[state.FileName], NotCarried: []NotCarried{}}
		if told, secrets := doc.Overrides.WithoutPassword(); secrets {
			doc.Overrides = told
			out.Body = encode(doc)
			out.NotCarried = append(out.NotCarried, NotCarried{Component: state.ComponentOverrides, Count: 1,
				Reason: "the password of the proxy is in the archive alone"})
		}
		return out, nil
	}
	var lost []NotCarried
	// Of a profile that nobody read over CDP the document knows next to nothing.
	if read := !doc.Complete && doc.Datadir != state.DatadirNone; r.IndexedDB || read {
		if doc, lost, err = s.readOut(ctx, row, saved); err != nil {
			return Exported{}, err
		}
		if !r.IndexedDB {
			doc.IndexedDB = nil
		}
	}
	var out Exported
	out.Body, out.NotCarried = formats[r.Format].write(doc)
	for _, m := range doc.Missed {
		out.NotCarried = append(out.NotCarried, NotCarried{Component: m.Component, Origin: m.Origin, Count: 1, Reason: m.Reason})
	}
	// What of a format's own kinds the save or the import had to leave behind is
	// not in the body either, and nothing there tells.
	out.NotCarried = append(append(out.NotCarried, lost...), lostOfFormats(library.ReportOf(row).Components)...)
	return out, nil
}

// lostOfFormats is what a report says was lost of the kinds that formats hold.
func lostOfFormats(report []state.Component) []NotCarried {
	var lost []NotCarried
	for _, line := range report {
		if line.Dropped > 0 && slices.Contains([]string{state.ComponentCookies, state.ComponentLocalStorage, state.ComponentIndexedDB}, line.Name) {
			lost = append(lost, NotCarried{Component: line.Name, Origin: line.Origin, Count: line.Dropped, Reason: line.Reason.Text})
		}
	}
	return lost
}
