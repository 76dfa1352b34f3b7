package profile

import (
	"context"

	"github.com/stasisd/stasis/state"
)

// Disk has the functions of this package that work on user data directories at rest as
// methods, for callers that take them as an interface.
type Disk struct{}

// Select is [Select].
func (Disk) Select(ctx context.Context, userDataDir string) ([]File, error) {
	return Select(ctx, userDataDir)
}

// Unprepare is [Unprepare].
func (Disk) Unprepare(files []File) ([]File, error) { return Unprepare(files) }

// Inspect is [Inspect].
func (Disk) Inspect(ctx context.Context, userDataDir string, doc state.Document) (Survey, error) {
	return Inspect(ctx, userDataDir, doc)
}

// Compare is [Compare].
func (Disk) Compare(ctx context.Context, userDataDir string, doc state.Document) state.Document {
	return Compare(ctx, userDataDir, doc)
}

// Merge is [Merge].
func (Disk) Merge(ctx context.Context, userDataDir string, r Reading) (state.Document, error) {
	return Merge(ctx, userDataDir, r)
}

// ExclusionReason returns why a file of an archive may not be unpacked into a user data
// directory; "" if it may.
func (Disk) ExclusionReason(name string) string {
	if Accept(name) {
		return ""
	}
	return ExclusionReason(name)
}

// InTail is [InTail].
func (Disk) InTail(name string) bool { return InTail(name) }

// FindDesktop is [FindDesktop].
func (Disk) FindDesktop(names []string, folder string) (Desktop, error) {
	return FindDesktop(names, folder)
}

// OriginOf is [OriginOf].
func (Disk) OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (DesktopOrigin, error) {
	return OriginOf(ctx, userDataDir, kept)
}
