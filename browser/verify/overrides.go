package verify

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// overrides reads back the saved overrides that Chrome reports to every page: user agent
// and time zone. Those that differ were not restored. The others are set on tabs or
// requests; the report line says that they were set and not read back. It returns nothing
// if no overrides were saved, or if the create replaces all of them.
func (e Environment) overrides(ctx context.Context, hidden *capture.HiddenReader, doc state.Document, report []state.Component) ([]state.Component, []state.Difference, error) {
	i := slices.IndexFunc(report, func(c state.Component) bool { return c.Name == state.ComponentOverrides })
	if i < 0 || report[i].Restored == 0 {
		return nil, nil, nil
	}
	identity, err := hidden.ReadIdentity(ctx, doc.Overrides.Timezone)
	if err != nil {
		return nil, nil, err
	}
	line, differs := checkOverrides(report[i], doc.Overrides, e.Overrides, identity)
	return []state.Component{line}, differs, nil
}

// checkOverrides corrects the report line of saved overrides by what Chrome reports to
// pages. overrides are the overrides with which the browser was started.
func checkOverrides(line state.Component, saved, overrides state.Overrides, identity capture.Identity) (state.Component, []state.Difference) {
	is := map[string]bool{
		"user_agent": strings.TrimSpace(saved.UserAgent) == identity.UserAgent,
		"timezone":   identity.CanonicalTimezone == identity.Timezone,
	}
	replaced := overrides.DifferingNames(saved)
	var lost, notReadBack []string
	for _, name := range saved.Names() {
		if slices.Contains(replaced, name) {
			continue
		}
		if equal, readBack := is[name]; !readBack {
			notReadBack = append(notReadBack, name)
		} else if !equal {
			lost = append(lost, name)
		}
	}
	code, reasons := line.Reason.Code, []string{}
	if line.Reason.Text != "" {
		reasons = append(reasons, line.Reason.Text)
	}
	if len(lost) > 0 {
		code = report.Differs // a loss is more important than the line's own reason
		reasons = append(reasons, "Chrome reports other values to pages: "+strings.Join(lost, ", "))
	}
	if len(notReadBack) > 0 {
		code = cmp.Or(code, report.NotReadBack)
		reasons = append(reasons, "set in Chrome and not read back: "+strings.Join(notReadBack, ", "))
	}
	line.Restored, line.Dropped, line.Reason = line.Restored-len(lost), line.Dropped+len(lost), code.With(strings.Join(reasons, "; "))
	if len(lost) == 0 {
		return line, nil
	}
	slices.Sort(lost)
	return line, []state.Difference{{Component: state.ComponentOverrides, By: state.ByRestore, Changed: len(lost), Names: lost}}
}
