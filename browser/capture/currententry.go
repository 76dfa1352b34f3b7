package capture

const blankURL = "about:blank"

// useCurrentEntry sets the tab's address and title to the current entry of its
// back/forward list. While a tab is loading, its target shows the address that it is
// loading instead. A tab that has shown no page yet keeps that address. A tab that has
// neither is blank: Chromium gives no address to a tab whose first navigation was a download.
func (r *reading) useCurrentEntry() {
	if r.tab.Current < 0 || r.tab.Current >= len(r.tab.History) {
		return
	}
	at := r.tab.History[r.tab.Current]
	switch {
	case r.tab.URL == "" && at.URL == "":
		r.tab.URL = blankURL
	case at.URL != "" && at.URL != r.tab.URL && (at.URL != blankURL || r.tab.URL == ""):
		r.tab.URL, r.tab.Title = at.URL, at.Title
	}
}
