package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/state"
)

// Datadirs is what a session needs of Chrome's user data directories at rest. A
// session knows no file of Chrome's by name: browser/profile does, and its Disk is
// this interface.
type Datadirs interface {
	// Select lists what belongs into an archive, sorted by name.
	Select(ctx context.Context, userDataDir string) ([]browser.File, error)
	// Unprepare takes out of files what Stasis wrote into them for itself.
	Unprepare(files []browser.File) ([]browser.File, error)
	// Inspect reads the profile that is being saved, for a document of it.
	Inspect(ctx context.Context, userDataDir string, doc state.Document) (browser.Survey, error)
	// Compare adds to the document of a closed profile what did not reach the disk.
	Compare(ctx context.Context, userDataDir string, doc state.Document) state.Document
	// Merge takes each part's newer copy, of a reading and of what Chrome left when it
	// died after that.
	Merge(ctx context.Context, userDataDir string, r browser.Reading) (state.Document, error)
	// LeftOut is why a file of an archive may not be unpacked; "" where it may.
	LeftOut(name string) string
	// FindDesktop finds a profile of an ordinary Chrome by its folder's name ("": the
	// usual one) among the names of an archive; OriginOf looks at it once it is unpacked.
	FindDesktop(names []string, folder string) (browser.Desktop, error)
	OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (browser.DesktopOrigin, error)
}

// accepts reports whether a file of an archive may be unpacked.
func (s *Service) accepts(name string) bool { return s.Datadirs.LeftOut(name) == "" }
