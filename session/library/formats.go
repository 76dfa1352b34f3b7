package library

import (
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/portable"
	"github.com/stasisd/stasis/state/report"
)

// Format is a file format for an environment, or for part of one, outside of Stasis.
type Format string

// The formats.
const (
	FormatStasis     Format = "stasis" // an archive; for state, its document
	FormatPlaywright Format = "playwright"
	FormatPuppeteer  Format = "puppeteer"
	FormatNetscape   Format = "netscape"
	FormatDatadir    Format = "datadir" // a packed user data directory; import only
)

// formats has the readers and writers of the formats that hold only state.
var formats = map[Format]struct {
	read  func([]byte) (state.Document, []portable.Loss, error)
	write func(state.Document) ([]byte, []portable.Loss)
}{
	FormatPlaywright: {portable.ReadPlaywright, portable.Playwright},
	FormatPuppeteer:  {portable.ReadPuppeteer, portable.Puppeteer},
	FormatNetscape:   {portable.ReadNetscape, portable.Netscape},
}

// NotExported is a part of an environment that a format cannot hold.
type NotExported = portable.Loss

// These are the components of report lines for fields that a format does not have.
const (
	UnknownField = portable.UnknownField
	MisspeltPart = portable.MisspeltPart // a whole part, because of its name
)

// ReadState reads a file in a format that holds only state (see [Format.IsState]). lost
// are report lines for what the file has and a document cannot hold. Errors have the code
// invalid_import.
func (f Format) ReadState(raw []byte) (doc state.Document, lost []state.Component, err error) {
	doc, losses, err := formats[f].read(raw)
	return doc, lossLines(losses), err
}

// IsState reports whether a format holds only state, and no profile.
func (f Format) IsState() bool {
	_, is := formats[f]
	return is
}

// lossLines converts losses to report lines.
func lossLines(lost []portable.Loss) []state.Component {
	lines := make([]state.Component, 0, len(lost))
	for _, l := range lost {
		lines = append(lines, state.Component{Name: l.Component, Origin: l.Origin, Saved: l.Count, Dropped: l.Count, Reason: report.NoPlace.With(l.Reason)})
	}
	return lines
}
