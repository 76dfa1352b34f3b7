package importer

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// What a child's report may have. [save.Saver.Keep] bounds the lines of each component.
const (
	maxNames = 100     // components
	maxText  = 1 << 10 // bytes of a text; the rest is cut off
)

// decodeFound decodes a child's answer. The upload may have taken the child over, so the
// answer can be anything. What it could do to the daemon is refused: more objects than may be
// decoded, and whatever later code relies on. That it is true cannot be checked. A false
// answer harms only the user who uploaded the file.
func decodeFound(answer []byte, dir *browser.Dir) (found Found, err error) {
	var parts struct{ Document, Import json.RawMessage }
	if json.Unmarshal(answer, &parts) != nil {
		return Found{}, badAnswer("is not JSON")
	}
	for _, part := range []struct {
		raw json.RawMessage
		to  any
	}{{parts.Document, &found.Document}, {parts.Import, &found.Import}} {
		if len(part.raw) > snapshot.MaxKept {
			return Found{}, badAnswer("a document may have at most %d bytes", snapshot.MaxKept)
		}
		if err := state.CheckDocumentCount(part.raw); err != nil {
			return Found{}, badAnswer("%s", err)
		}
		if json.Unmarshal(part.raw, part.to) != nil {
			return Found{}, badAnswer("is not JSON")
		}
	}
	if err := checkDocument(found.Document, dir); err != nil {
		return Found{}, err
	}
	// Other files make the daemon read settings when it lists the profile.
	if only, err := browser.OnlyProfile(dir); err != nil || !only {
		return Found{}, badAnswer("there are other files than those of a profile")
	}
	if err := checkExtensions(found.Document.Extensions, dir); err != nil {
		return Found{}, err
	}
	if found.Document.Datadir != state.DatadirClean { // a survey finds it nowhere else
		found.Document = found.Document.WithoutFindings()
	}
	if err := checkFindings(found.Document); err != nil {
		return Found{}, err
	}
	return found, checkReport(&found)
}

func badAnswer(format string, args ...any) error {
	return fault.New(fault.InvalidImport, "session.import", "the file could not be read: "+format, args...)
}

// What documents have of an extension.
var (
	extensionID = regexp.MustCompile(`^[a-p]{32}$`)
	sha256Hex   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// checkExtensions refuses extensions that are not in the profile: the catalogue records
// them, and IDs are folders.
func checkExtensions(list []state.Extension, dir *browser.Dir) error {
	there := browser.ExtensionIDs(dir)
	for _, e := range list {
		at := slices.Index(there, e.ID)
		if at < 0 || !extensionID.MatchString(e.ID) || !sha256Hex.MatchString(e.SHA256) {
			return badAnswer("the list of extensions does not match the files")
		}
		there = slices.Delete(there, at, at+1) // each is listed once
	}
	return nil
}

// checkFindings refuses findings that a survey cannot have. It names components and keys of
// the document.
func checkFindings(doc state.Document) error {
	surveyed := []string{state.ComponentCookies, state.ComponentLocalStorage}
	for i, component := range doc.FromDisk {
		if !slices.Contains(surveyed, component) || slices.Contains(doc.FromDisk[:i], component) {
			return badAnswer("from_disk: %q cannot be in it", component[:min(len(component), maxText)])
		}
	}
	keys := map[string]bool{}
	add := func(areas []state.Area) {
		for _, area := range areas {
			keys[area.StorageKey] = true
		}
	}
	add(doc.Local)
	for _, key := range doc.Unwritten {
		if !keys[key] {
			return badAnswer("unwritten: a storage key is not in the document")
		}
	}
	clear(keys)
	for _, tab := range doc.Tabs {
		add(tab.Session)
	}
	for _, u := range doc.Unstored {
		if !keys[u.StorageKey] || u.Items < 0 {
			return badAnswer("unstored: a storage key is not in the document, or has a negative count")
		}
	}
	for _, m := range doc.Missed {
		if m.InProfile != nil && *m.InProfile < 0 {
			return badAnswer("missed: has a negative count")
		}
	}
	for _, h := range doc.Inventory {
		if h.Items < 0 {
			return badAnswer("inventory: has a negative count")
		}
	}
	return nil
}

// checkReport bounds the lines of the report, which has no other bound.
func checkReport(found *Found) error {
	names := map[string]bool{}
	for _, lines := range [][]state.Component{found.Import.Lines, found.Import.Sealed} {
		for i := range lines {
			line := &lines[i]
			if min(line.Saved, line.Restored, line.Dropped, line.Expired, line.More) < 0 {
				return badAnswer("the report has a negative count")
			}
			line.Name, line.Origin, line.Reason.Text = cut(line.Name), cut(line.Origin), cut(line.Reason.Text)
			line.Reason.Code = line.Reason.Code[:min(len(line.Reason.Code), maxText)]
			names[line.Name] = true
		}
	}
	if len(names) > maxNames {
		return badAnswer("the report has too many components")
	}
	for i, warning := range found.Import.Warnings {
		found.Import.Warnings[i] = cut(warning)
	}
	return nil
}

// cut returns the beginning of a text.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
