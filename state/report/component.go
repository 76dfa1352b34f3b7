// Package report has the lines of restore and capture reports: how many items of
// one kind and origin were saved, came back or were dropped, and why. It has no
// opinion on which kinds there are; package state names them.
package report

// Component is one line of a report: how many items of one kind and origin
// were saved, came back, were dropped, or had expired, and why.
type Component struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"` // "" where the kind has no origin
	Saved    int    `json:"saved"`
	Restored int    `json:"restored"`
	Dropped  int    `json:"dropped"`
	Expired  int    `json:"expired"`
	Reason   Reason `json:"-"` // "reason_code" and "reason"
	// More is how many lines of other origins are added up in this one.
	More int `json:"more,omitempty"`
}

// OnPurpose reports whether what the line counts as dropped was not meant to come
// back: a selection or the create left it out, or the engine has no use for it.
// That is no loss.
func (c Component) OnPurpose() bool { return c.Reason.Code.OnPurpose() }

// purpose is the code of such a line, "" of the others.
func (c Component) purpose() Code {
	if c.OnPurpose() {
		return c.Reason.Code
	}
	return ""
}
