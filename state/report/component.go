// Package report holds the lines of restore and capture reports: how many items of one
// kind and origin were saved, restored or dropped, and why. Package state names the
// kinds.
package report

// Component is one line of a report: how many items of one kind and origin were saved,
// restored, dropped or expired, and why.
type Component struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"` // "" if the kind has no origins
	Saved    int    `json:"saved"`
	Restored int    `json:"restored"`
	Dropped  int    `json:"dropped"`
	Expired  int    `json:"expired"`
	Reason   Reason `json:"-"` // "reason_code" and "reason"
	// More is the number of lines of other origins that are added up in this one.
	More int `json:"more,omitempty"`
}

// OnPurpose reports whether the items that the line counts as dropped were left out on
// purpose: by a selection, by the create, or because the engine does not use them. That
// is not a loss.
func (c Component) OnPurpose() bool { return c.Reason.Code.OnPurpose() }

// purpose returns the code of a line that is OnPurpose, else "".
func (c Component) purpose() Code {
	if c.OnPurpose() {
		return c.Reason.Code
	}
	return ""
}
