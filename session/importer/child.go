package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"os"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/confine"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Reader reads uploads; see [Read]. The daemon's is a [Child].
type Reader interface {
	// Read unpacks the upload into the user data directory of the run directory. The files
	// there, and what the document says, are as untrusted as the upload.
	Read(ctx context.Context, r ReadRequest, upload *os.File, dir *browser.Dir) (Found, error)
}

// ChildWork is the name of [Work] among the works of a child.
const ChildWork = "import"

// maxFound bounds what a child returns, in bytes of JSON: a document of [snapshot.MaxKept]
// bytes and the lines of a report.
const maxFound = 2 * snapshot.MaxKept

// Child reads each upload in a process without rights, which can write only the user data
// directory.
type Child struct{ Confiner *confine.Confiner }

// What a folder may have besides the upload's bytes and entries.
const (
	diskBlock  = 4 << 10 // bytes that a file takes at least on most disks
	ownEntries = 100     // files and folders that the reader makes itself
)

// Read reads an upload. A child that crashes or needs more than it may have is
// invalid_import, and so is an answer that [Read] cannot give.
func (c Child) Read(ctx context.Context, r ReadRequest, upload *os.File, dir *browser.Dir) (Found, error) {
	size := cmp.Or(r.Limits.Bytes, snapshot.DefaultLimits.Bytes)
	entries := cmp.Or(r.Limits.Entries, snapshot.DefaultLimits.Entries)
	answer, err := c.Confiner.Run(ctx, confine.Task{
		Work: ChildWork, Request: r, File: upload, Folder: dir.Profile(), UID: dir.UID, FileSize: size,
		FolderLimits: confine.FolderLimits{Bytes: size + diskBlock*int64(entries), Entries: entries + ownEntries},
		MaxAnswer:    maxFound, Refused: fault.InvalidImport,
	})
	if err != nil {
		return Found{}, knownError(err)
	}
	return decodeFound(answer, dir)
}

// knownError returns the error of a reading. An error with a code that [Read] does not
// return is internal.
func knownError(err error) error {
	switch fault.CodeOf(err) {
	case fault.InvalidImport, fault.TooLarge, fault.Unsupported, fault.InvalidField, fault.SaveFailed, fault.Timeout, fault.Internal:
		return err
	default:
		return fault.Wrap(err, fault.Internal, "session.import", "")
	}
}

// Work returns the work of a [Child]'s process.
func Work(profiles Profiles) confine.Work {
	return func(ctx context.Context, request json.RawMessage, upload *os.File, userDataDir string) (any, error) {
		var r ReadRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "session.import", "")
		}
		return Read(ctx, profiles, r, upload, userDataDir)
	}
}
