package session

import (
	"fmt"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// loginsOver warns of the logins in a restored environment whose expected end
// is past: the sites will ask for them again. A parked Chrome comes without a
// document here; then what was told at the save counts.
func (s *Service) loginsOver(row profiles.Snapshot, doc state.Document) []string {
	now := s.Now()
	logins := captureReportOf(row).Logins
	if doc.Complete {
		logins = state.Logins(doc, now)
	}
	var warnings []string
	for _, l := range logins {
		if l = l.At(now); l.Expired {
			warnings = append(warnings, fmt.Sprintf("the login at %s has expired, since %s, as far as its %s tells",
				l.Site, l.ExpectedEnd.Format(time.RFC3339), l.Basis.Text()))
		}
	}
	return warnings
}
