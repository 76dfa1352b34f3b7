package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// ReadRequest says how an upload is to be read.
type ReadRequest struct {
	Format    library.Format
	Profile   string          // as [Request.Profile]
	AsDefault bool            // the import is to become a default
	Limits    snapshot.Limits // of an archive
	Unpack    snapshot.Limits // what a restore unpacks at most
	Now       time.Time
}

// Found is what was read from an upload. Its files are in a user data directory, ready to
// be archived.
type Found struct {
	Document state.Document
	Import   save.Import
}

// Profiles is what reading an upload needs to know of Chrome's user data directories;
// browser/profile's Disk implements it.
type Profiles interface {
	save.Datadirs
	// ExclusionReason returns why a file of an archive may not be unpacked; "" if it may.
	ExclusionReason(name string) string
	// FindDesktop finds a profile of an ordinary Chrome among the names of an archive.
	// folder is the profile's folder; "" is the usual one. OriginOf reads where an
	// unpacked profile comes from.
	FindDesktop(names []string, folder string) (browser.Desktop, error)
	OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (browser.DesktopOrigin, error)
}

// Read reads an upload: it unpacks the files of a profile into the user data directory,
// which is empty, and does all that needs their contents. Everything that parses the upload
// is here. In a daemon it runs in a process without rights; see [Child].
func Read(ctx context.Context, profiles Profiles, r ReadRequest, upload *os.File, userDataDir string) (Found, error) {
	// A run directory has its user data directory in it.
	x := reader{profiles: profiles, ReadRequest: r, dir: &browser.Dir{Path: filepath.Dir(userDataDir)}}
	doc, err := x.read(ctx, upload)
	if err != nil {
		return Found{}, err
	}
	saver := save.New(save.Config{Datadirs: profiles, Unpack: r.Unpack, Log: slog.New(slog.DiscardHandler)})
	var files []browser.File
	if doc.Datadir != state.DatadirNone {
		if files, err = profiles.Select(ctx, userDataDir); err != nil {
			return Found{}, err
		}
	}
	if err := saver.CheckFits(files, doc); err != nil {
		return Found{}, fault.Wrap(err, fault.TooLarge, "session.import", fault.MessageOf(err))
	}
	examined, kept, _, err := saver.Examine(ctx, save.Job{Dir: x.dir, Import: &x.found}, doc, files)
	if err != nil {
		return Found{}, err
	}
	return Found{Document: decodable(examined, doc), Import: x.found}, writeKept(files, kept)
}

// decodable returns an examined document. If it has more objects than the daemon takes, its
// cookies and localStorage are those of the document before; the profile has them all.
func decodable(examined, before state.Document) state.Document {
	raw, err := json.Marshal(examined)
	if err != nil || state.CheckDocumentCount(raw) != nil {
		examined.Cookies, examined.Local, examined.FromDisk = before.Cookies, before.Local, nil
	}
	return examined
}

// writeKept makes the files on disk those that are kept, with their new contents.
func writeKept(files, kept []browser.File) error {
	keep := map[string]bool{}
	for _, f := range kept {
		keep[f.Name] = true
		if f.Data == nil {
			continue
		}
		if err := os.WriteFile(f.Path, f.Data, f.Mode); err != nil {
			return fault.Wrap(err, fault.Internal, "session.import", "")
		}
	}
	for _, f := range files {
		if keep[f.Name] {
			continue
		}
		if err := os.RemoveAll(f.Path); err != nil {
			return fault.Wrap(err, fault.Internal, "session.import", "")
		}
	}
	return nil
}

// reader reads one upload.
type reader struct {
	ReadRequest
	profiles Profiles
	dir      *browser.Dir
	found    save.Import
}

// read returns the document, and unpacks the files of a profile.
func (x *reader) read(ctx context.Context, upload *os.File) (state.Document, error) {
	switch x.Format {
	case library.FormatStasis:
		return x.readArchive(ctx, upload)
	case library.FormatDatadir:
		return x.readDesktop(ctx, upload)
	}
	raw, err := io.ReadAll(upload)
	if err != nil {
		return state.Document{}, fault.Wrap(err, fault.Internal, "session.import", "")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return state.Document{}, fault.New(fault.InvalidImport, "session.import", "the body is empty; with curl, send a file with --data-binary @FILE")
	}
	doc, lost, err := x.Format.ReadState(raw)
	if err != nil {
		return doc, err
	}
	doc.Chrome.Engine = browser.EngineChrome
	x.found.Lines = lost
	x.found.Warnings, err = checkContents(x.Format, doc, lost, x.AsDefault)
	return doc, err
}
