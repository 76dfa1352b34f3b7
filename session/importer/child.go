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
	// Read unpacks the upload into the user data directory of the run directory. What it
	// returns is as untrusted as the upload.
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

// Read reads an upload. A child that crashes or needs more than it may have is
// invalid_import.
func (c Child) Read(ctx context.Context, r ReadRequest, upload *os.File, dir *browser.Dir) (found Found, err error) {
	err = c.Confiner.Run(ctx, confine.Task{
		Work: ChildWork, Request: r, File: upload, Folder: dir.Profile(), UID: dir.UID,
		FileSize: cmp.Or(r.Limits.Bytes, snapshot.DefaultLimits.Bytes), MaxAnswer: maxFound, Refused: fault.InvalidImport,
	}, &found)
	return found, err
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
