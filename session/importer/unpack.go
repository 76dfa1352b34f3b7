package importer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// readArchive unpacks an archive of Stasis.
func (x *reader) readArchive(ctx context.Context, file *os.File) (doc state.Document, err error) {
	archive, err := snapshot.OpenForeign(file)
	if err != nil {
		return doc, err
	}
	// An archive with too many names is refused before a file is written.
	if _, err := archive.Names(ctx, x.Limits); err != nil {
		return doc, err
	}
	left := skippedFiles{}
	got, err := archive.Unpack(ctx, x.dir.Profile(), snapshot.UnpackOptions{Limits: x.Limits, Keep: []string{state.FileName}},
		func(name string) string {
			if why := x.profiles.ExclusionReason(name); name != state.FileName && why != "" {
				left.add(why)
				return ""
			}
			return name
		})
	if err != nil {
		return doc, err
	}
	x.found.Lines = left.lines()
	raw, there := got.Kept[state.FileName]
	if !there {
		return doc, badArchive("the archive has no %s", state.FileName)
	}
	if doc, err = readDocument(raw); err != nil {
		return doc, err
	}
	return doc, checkDocument(doc, x.dir)
}

// readDocument reads the state document of an archive.
func readDocument(raw []byte) (doc state.Document, err error) {
	if err := state.CheckObjectCount(raw); err != nil {
		return doc, badArchive("%s: %s", state.FileName, err)
	}
	err = json.Unmarshal(raw, &doc)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		kind, _, _ := strings.Cut(mistyped.Value, " ") // for a number, the value follows
		return doc, badArchive("%s: %s: must not be a %s", state.FileName, mistyped.Field, kind)
	case err != nil:
		return doc, badArchive("%s: is not JSON", state.FileName)
	}
	return doc, nil
}

// checkDocument checks every value of an uploaded document that a restore relies on, and
// that the run directory has the files that it speaks of.
func checkDocument(doc state.Document, dir *browser.Dir) error {
	switch {
	case doc.SchemaVersion != state.SchemaVersion:
		return fault.New(fault.Unsupported, "session.import", "%s: schema_version: is not supported; this daemon reads %q", state.FileName, state.SchemaVersion)
	case doc.Overrides.Check() != nil:
		return badArchive("%s: overrides.%s", state.FileName, fault.MessageOf(doc.Overrides.Check()))
	case !chromeVersion.MatchString(doc.Chrome.Version):
		return badArchive("%s: chrome.version: must be numbers separated by dots", state.FileName)
	case !slices.Contains([]string{"", browser.EngineChrome, browser.EngineShell}, doc.Chrome.Engine):
		return badArchive("%s: chrome.engine: must be chrome or shell", state.FileName)
	case !slices.Contains([]state.Datadir{state.DatadirClean, state.DatadirLive, state.DatadirCrash, state.DatadirNone}, doc.Datadir):
		return badArchive("%s: datadir: must be clean, live, crash or none", state.FileName)
	case browser.HasProfile(dir) == (doc.Datadir == state.DatadirNone):
		return badArchive("%s: datadir: does not match the files in the archive", state.FileName)
	}
	return nil
}

// chromeVersion matches a version of Chrome, or "".
var chromeVersion = regexp.MustCompile(`^[0-9.]{0,32}$`)

func badArchive(format string, args ...any) error {
	return fault.New(fault.InvalidImport, "session.import", format, args...)
}

// readDesktop unpacks a profile of an ordinary Chrome. Its state was not read over CDP,
// so a restore can restore only what its files hold.
func (x *reader) readDesktop(ctx context.Context, file *os.File) (state.Document, error) {
	doc := save.UnreadDocument(browser.EngineChrome, x.Now)
	archive, err := snapshot.OpenForeign(file)
	if err != nil {
		return doc, err
	}
	names, err := archive.Names(ctx, x.Limits)
	if err != nil {
		return doc, err
	}
	desktop, err := x.profiles.FindDesktop(names, x.Profile)
	if err != nil {
		return doc, err
	}
	left := skippedFiles{}
	got, err := archive.Unpack(ctx, x.dir.Profile(), snapshot.UnpackOptions{Limits: x.Limits, Keep: desktop.KeptFiles()},
		func(name string) string {
			to, why := desktop.TargetName(name)
			if why != "" {
				left.add(why)
			}
			return to
		})
	if err != nil {
		return doc, err
	}
	origin, err := x.profiles.OriginOf(ctx, x.dir.Profile(), got.Kept)
	if err != nil {
		return doc, fault.Wrap(err, fault.InvalidImport, "session.import", fault.MessageOf(err))
	}
	if origin.Clean {
		doc.Datadir = state.DatadirClean
	} else {
		x.found.Warnings = append(x.found.Warnings, "Chrome was running or had crashed when this profile was packed; its last writes may be missing")
	}
	if chromeVersion.MatchString(origin.Version) {
		doc.Chrome.Version = origin.Version
	}
	x.found.Lines, x.found.Sealed = left.lines(), origin.Sealed
	return doc, nil
}

// skippedFiles counts the files that were left out, by reason.
type skippedFiles map[string]int

func (l skippedFiles) add(why string) { l[why]++ }

func (l skippedFiles) lines() []state.Component {
	lines := make([]state.Component, 0, len(l))
	for why, n := range l {
		lines = append(lines, state.Component{Name: state.ComponentDatadir, Saved: n, Dropped: n, Reason: report.FileNotAllowed.With(why)})
	}
	slices.SortFunc(lines, func(a, b state.Component) int { return strings.Compare(a.Reason.Text, b.Reason.Text) })
	return lines
}
