package capture

// settle puts a tab that is on its way elsewhere where it is: as a target it has the
// address that it has been sent to. One that was nowhere yet stays on its way.
func (r *reading) settle() {
	if r.tab.Current < 0 || r.tab.Current >= len(r.tab.History) {
		return
	}
	if at := r.tab.History[r.tab.Current]; at.URL != r.tab.URL && at.URL != "" && at.URL != "about:blank" {
		r.tab.URL, r.tab.Title = at.URL, at.Title
	}
}
