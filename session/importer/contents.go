package importer

import (
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// maxReasons is how many reasons the error for an empty import names.
const maxReasons = 3

// checkContents returns the warnings of a state document that was read from a file: the
// fields that the format does not have, and the parts that the file lacks. lost has what the
// document could not hold. If nothing would be imported, or a default would silently lack a
// part, the error is invalid_import.
func checkContents(format library.Format, doc state.Document, lost []state.Component, asDefault bool) (warnings []string, err error) {
	stored := len(doc.Local)+len(doc.IndexedDB) > 0
	if len(doc.Cookies) == 0 && !stored {
		return nil, nothingToImport(format, lost)
	}
	for _, line := range lost {
		switch {
		case line.Name == library.MisspeltPart && asDefault:
			return nil, fault.New(fault.InvalidImport, "session.import", "save_as_default: %s; the default would lack this part, so correct its name or leave it out", line.Reason.Text)
		case line.Name == library.MisspeltPart, line.Name == library.UnknownField:
			warnings = append(warnings, "unknown field: "+line.Reason.Text)
		}
	}
	if len(doc.Cookies) == 0 {
		warnings = append(warnings, "the file has no cookies")
	}
	if !stored && format == library.FormatPlaywright {
		warnings = append(warnings, "the file has no localStorage and no IndexedDB")
	}
	return warnings, nil
}

func nothingToImport(format library.Format, lost []state.Component) error {
	what := "no cookies"
	if format == library.FormatPlaywright {
		what = "no cookies, no localStorage and no IndexedDB"
	}
	var reasons []string
	for _, line := range lost[:min(len(lost), maxReasons)] {
		reasons = append(reasons, line.Reason.Text)
	}
	if len(reasons) == 0 {
		return fault.New(fault.InvalidImport, "session.import", "the file has %s; nothing would be imported", what)
	}
	return fault.New(fault.InvalidImport, "session.import", "the file has %s that can be imported: %s", what, strings.Join(reasons, "; "))
}
