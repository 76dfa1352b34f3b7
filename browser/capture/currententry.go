package capture

// useCurrentEntry sets the tab's address and title to the current entry of its
// back/forward list. While a tab is loading, its target shows the address that it is
// loading instead. A tab that has shown no page yet keeps that address.
func (r *reading) useCurrentEntry() {
	if r.tab.Current < 0 || r.tab.Current >= len(r.tab.History) {
		return
	}
	if at := r.tab.History[r.tab.Current]; at.URL != r.tab.URL && at.URL != "" && (at.URL != "about:blank" || r.tab.URL == "") {
		r.tab.URL, r.tab.Title = at.URL, at.Title
	}
}
