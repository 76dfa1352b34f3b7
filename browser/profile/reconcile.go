package profile

import (
	"time"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

// Source is one of two copies.
type Source int

// The two copies of a part of an environment.
const (
	FromProfile  Source = iota // the files: Chrome brings it back by itself
	FromDocument               // what was read over CDP: a restore applies it
)

// Copies are the two copies of an environment.
type Copies struct {
	// Document is what was read over CDP. Its Datadir says how the profile was left.
	Document state.Document
	// Found is what the profile has on disk.
	Found inspect.Profile
	// Crash is the evidence on a profile whose Chrome died some time after the
	// reading; nil: Chrome closed the profile, or the two are of one moment.
	Crash *Crash
}

// Crash is what tells which copy is newer after a crash. All times are of one
// machine.
type Crash struct {
	// What Chrome wrote last before From is older than the reading, and what it
	// wrote after Until is newer. Between the two it cannot be told.
	From, Until time.Time
	// Now is when this is decided. A reading in the future shows that the clock
	// was set back.
	Now time.Time
	// Written says when Chrome last wrote the files of a part.
	Written struct{ Cookies, LocalStorage, SessionStorage, Tabs time.Time }
	// Sessions are the session files, where their time does not tell enough.
	Sessions inspect.Tabs
	// Was is the tabs' sessionStorage on disk when the reading was made. Chrome
	// notes no time there.
	Was sessionstorage.Contents
}

// Verdict says which copy of each part is taken.
type Verdict struct {
	Cookies Source
	// Jar is the profile's jar with what Chrome keeps in memory alone; nil where it
	// cannot be read or is older than the document's.
	Jar []state.Cookie
	// Local has the source of each storage key of the document's localStorage.
	Local map[string]Source
	// Unwritten are the storage keys whose localStorage Chrome had not written when
	// it closed the profile.
	Unwritten []string
	// Unstored is what of the tabs' sessionStorage Chrome had not written when it
	// closed the profile.
	Unstored []state.Unstored
	// Session has the sessionStorage that each tab of the document gets from the
	// document, after a crash.
	Session [][]state.Area
	// Forget are the storage keys whose sessionStorage in the profile is older than
	// the document's, and would be in its way.
	Forget map[string]bool
	Tabs   Source
	// Broken are the stores of a closed profile that are damaged, or lack what was
	// read in that very profile. The document stands in for them.
	Broken struct{ Cookies, LocalStorage, SessionStorage bool }
	// Cut are the components whose last write is not whole, where it is not known
	// what that write had.
	Cut []string
	// Doubts name what cannot be told.
	Doubts []state.Missed
}

// Reconcile decides for each part of an environment which of two copies is taken.
// It is the one place that decides this: for a save, after a crash, and for a
// restore.
//
//   - Nothing was read: the profile.
//   - Chrome closed the profile: the profile, for Chrome wrote it after the reading.
//     The document stands in for what did not reach the disk, and for stores that are
//     damaged or lack what was read there.
//   - Chrome ran on, or the reading was made when it died: the document.
//   - Chrome died some time after the reading: of each part the newer copy, by the
//     times at which Chrome wrote. Where times do not tell, the document, and
//     Doubts say so.
func Reconcile(c Copies) Verdict {
	v := Verdict{Local: map[string]Source{}, Forget: map[string]bool{}}
	v.cookies(c)
	v.localStorage(c)
	v.tabs(c)
	v.sessionStorage(c) // depends on where the tabs come from
	return v
}

// closed reports whether Chrome closed the profile after the reading.
func (c Copies) closed() bool { return c.Crash == nil && c.Document.Datadir == state.DatadirClean }

// unread reports whether the document has nothing to set against a dead Chrome's
// profile.
func (c Copies) unread() bool {
	return c.Crash == nil && c.Document.Datadir == state.DatadirCrash && !c.Document.Complete
}

// otherwise is the source where neither copy has to be looked at.
func (c Copies) otherwise() Source {
	if c.Document.Complete {
		return FromDocument
	}
	return FromProfile
}

func (v *Verdict) doubt(component, origin, reason string) {
	v.Doubts = append(v.Doubts, state.Missed{Component: component, Origin: origin, Reason: reason})
}

// setBack is the doubt about times of a clock that was set back.
const setBack = "the clock was set back since it was read last, so which is newer cannot be told, and it is as Chrome left it"

// unproven reports whether the time at which Chrome wrote something proves nothing:
// the reading is in the future, so the clock was set back, and that time is not, so
// it may be from before as well as from after that.
func (c *Crash) unproven(written time.Time) bool {
	return c.Until.After(c.Now) && !written.IsZero() && !written.After(c.Now)
}
