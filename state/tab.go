package state

import "net/url"

// SameOrigin reports whether an address has the origin of the tab's.
func (t Tab) SameOrigin(address string) bool {
	was, err := url.Parse(t.URL)
	is, ierr := url.Parse(address)
	return err == nil && ierr == nil && was.Host != "" && was.Scheme == is.Scheme && was.Host == is.Host
}

// At returns the tab after it has navigated to another address since it was read. It has
// its own name only within its origin, because another site gets a new one.
func (t Tab) At(address string) Tab {
	if t.URL == address {
		return t
	}
	if !t.SameOrigin(address) {
		t.Name = ""
	}
	t.URL = address
	return t
}
