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

// withArchive opens an upload as an archive and calls use with it.
func (i *Importer) withArchive(file *os.File, use func(*snapshot.Foreign) error) error {
	archive, err := i.cfg.Archives.OpenForeign(file)
	if err != nil {
		return err
	}
	return use(archive)
}

// readArchive unpacks an archive of Stasis.
func (i *Importer) readArchive(ctx context.Context, dir *browser.Dir, a *save.Import, file *os.File) (doc state.Document, err error) {
	left := skippedFiles{}
	err = i.withArchive(file, func(archive *snapshot.Foreign) error {
		// An archive with too many names is refused before a file is written.
		if _, err := archive.Names(ctx, i.limits()); err != nil {
			return err
		}
		got, err := archive.Unpack(ctx, dir.Profile(), snapshot.UnpackOptions{Limits: i.limits(), Keep: []string{state.FileName}},
			func(name string) string {
				if why := i.cfg.Datadirs.ExclusionReason(name); name != state.FileName && why != "" {
					left.add(why)
					return ""
				}
				return name
			})
		if err != nil {
			return err
		}
		raw, there := got.Kept[state.FileName]
		if !there {
			return badArchive("the archive has no %s", state.FileName)
		}
		doc, err = readDocument(raw)
		return err
	})
	if err == nil && browser.HasProfile(dir) == (doc.Datadir == state.DatadirNone) {
		err = badArchive("%s: datadir: does not match the files in the archive", state.FileName)
	}
	a.Lines = left.lines()
	return doc, err
}

// readDocument reads the state document of an archive and checks every value that a
// restore relies on.
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
	case doc.SchemaVersion != state.SchemaVersion:
		return doc, fault.New(fault.Unsupported, "session.import", "%s: schema_version: is not supported; this daemon reads %q", state.FileName, state.SchemaVersion)
	case doc.Overrides.Check() != nil:
		return doc, badArchive("%s: overrides.%s", state.FileName, fault.MessageOf(doc.Overrides.Check()))
	case !chromeVersion.MatchString(doc.Chrome.Version):
		return doc, badArchive("%s: chrome.version: must be numbers separated by dots", state.FileName)
	case !slices.Contains([]string{"", browser.EngineChrome, browser.EngineShell}, doc.Chrome.Engine):
		return doc, badArchive("%s: chrome.engine: must be chrome or shell", state.FileName)
	case !slices.Contains([]state.Datadir{state.DatadirClean, state.DatadirLive, state.DatadirCrash, state.DatadirNone}, doc.Datadir):
		return doc, badArchive("%s: datadir: must be clean, live, crash or none", state.FileName)
	}
	return doc, nil
}

// chromeVersion matches a version of Chrome, or "".
var chromeVersion = regexp.MustCompile(`^[0-9.]{0,32}$`)

func badArchive(format string, args ...any) error {
	return fault.New(fault.InvalidImport, "session.import", format, args...)
}

// readDesktop unpacks a profile of an ordinary Chrome. Its state was not read over CDP,
// so a restore can restore only what its files hold.
func (i *Importer) readDesktop(ctx context.Context, folder string, dir *browser.Dir, a *save.Import, file *os.File) (state.Document, error) {
	doc := save.UnreadDocument(browser.EngineChrome, i.cfg.Now())
	left := skippedFiles{}
	var kept map[string][]byte
	err := i.withArchive(file, func(archive *snapshot.Foreign) error {
		names, err := archive.Names(ctx, i.limits())
		if err != nil {
			return err
		}
		desktop, err := i.cfg.Datadirs.FindDesktop(names, folder)
		if err != nil {
			return err
		}
		got, err := archive.Unpack(ctx, dir.Profile(), snapshot.UnpackOptions{Limits: i.limits(), Keep: desktop.KeptFiles()},
			func(name string) string {
				to, why := desktop.TargetName(name)
				if why != "" {
					left.add(why)
				}
				return to
			})
		kept = got.Kept
		return err
	})
	if err != nil {
		return doc, err
	}
	origin, err := i.cfg.Datadirs.OriginOf(ctx, dir.Profile(), kept)
	if err != nil {
		return doc, fault.Wrap(err, fault.InvalidImport, "session.import", fault.MessageOf(err))
	}
	if origin.Clean {
		doc.Datadir = state.DatadirClean
	} else {
		a.Warnings = append(a.Warnings, "Chrome was running or had crashed when this profile was packed; its last writes may be missing")
	}
	doc.Chrome.Version = origin.Version
	a.Lines, a.Sealed = left.lines(), origin.Sealed
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
