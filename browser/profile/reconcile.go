package profile

import (
	"time"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

// Source is one of two copies.
type Source int

// These are the two copies of a part of an environment.
const (
	FromProfile  Source = iota // the files: Chrome restores the part from them
	FromDocument               // the reading over CDP: a restore applies it
)

// Copies are the two copies of an environment.
type Copies struct {
	// Document is what was read over CDP. Its Datadir says how the profile was left.
	Document state.Document
	// Found is what the profile has on disk.
	Found inspect.Profile
	// Crash is the evidence about a profile whose Chrome died some time after the
	// reading. It is nil if Chrome closed the profile, or if profile and reading are of
	// the same time.
	Crash *Crash
}

// Crash is the evidence for which copy is newer after a crash. All times are of the same
// machine.
type Crash struct {
	// What Chrome last wrote before From is older than the reading; what it wrote after
	// Until is newer. In between, the order is unknown.
	From, Until time.Time
	// Now is the time of the decision. A reading in the future shows that the clock was
	// set back.
	Now time.Time
	// Written is when Chrome last wrote the files of each part.
	Written struct{ Cookies, LocalStorage, SessionStorage, Tabs time.Time }
	// Sessions is the content of the session files, read if their time does not decide.
	Sessions inspect.Tabs
	// SessionStorageAtReading is the tabs' sessionStorage on disk at the time of the
	// reading. Chrome records no times there.
	SessionStorageAtReading sessionstorage.Contents
}

// Verdict says which copy of each part is taken.
type Verdict struct {
	Cookies Source
	// Jar is the profile's cookie jar plus the cookies that Chrome keeps in memory only;
	// nil if it cannot be read or is older than the document's.
	Jar []state.Cookie
	// Local is the source of each storage key of the document's localStorage.
	Local map[string]Source
	// Unwritten lists the storage keys whose localStorage Chrome had not written when it
	// closed the profile.
	Unwritten []string
	// Unstored lists the tabs' sessionStorage that Chrome had not written when it closed
	// the profile.
	Unstored []state.Unstored
	// Session is the sessionStorage that each tab of the document gets from the document,
	// after a crash.
	Session [][]state.Area
	// Forget lists the storage keys whose sessionStorage in the profile is older than the
	// document's and must be removed.
	Forget map[string]bool
	Tabs   Source
	// Broken marks the stores of a closed profile that are damaged, or lack what was read
	// from that profile. The document replaces them.
	Broken struct{ Cookies, LocalStorage, SessionStorage bool }
	// Truncated lists the components whose last write is incomplete, if the content of that
	// write is unknown.
	Truncated []string
	// Doubts lists what could not be decided.
	Doubts []state.Missed
}

// Reconcile decides for each part of an environment which of two copies is taken. Saves,
// rescues after a crash and restores all use it; no other function decides this.
//
//   - Nothing was read: the profile.
//   - Chrome closed the profile: the profile, because Chrome wrote it after the reading.
//     The document replaces what did not reach the disk, and stores that are damaged or
//     lack what was read there.
//   - Chrome ran on, or the reading was made when it died: the document.
//   - Chrome died some time after the reading: of each part the newer copy, by the
//     times at which Chrome wrote. If the times do not decide, the document, and Doubts
//     list the part.
func Reconcile(c Copies) Verdict {
	v := Verdict{Local: map[string]Source{}, Forget: map[string]bool{}}
	v.cookies(c)
	v.localStorage(c)
	v.tabs(c)
	v.sessionStorage(c) // depends on where the tabs come from
	return v
}

// closed reports whether Chrome closed the profile after the document was read.
func (c Copies) closed() bool { return c.Crash == nil && c.Document.Datadir == state.DatadirClean }

// unread reports whether Chrome died and the document has no reading of its state.
func (c Copies) unread() bool {
	return c.Crash == nil && c.Document.Datadir == state.DatadirCrash && !c.Document.Complete
}

// defaultSource returns the source in cases that do not depend on the copies' contents.
func (c Copies) defaultSource() Source {
	if c.Document.Complete {
		return FromDocument
	}
	return FromProfile
}

func (v *Verdict) doubt(component, origin, reason string) {
	v.Doubts = append(v.Doubts, state.Missed{Component: component, Origin: origin, Reason: reason})
}

// clockSetBack is the reason of a doubt if the clock was set back.
const clockSetBack = "the clock was set back after Stasis last read the state over CDP, so it is unknown which copy is newer; Stasis kept Chrome's files"

// unproven reports whether the time at which Chrome wrote something proves nothing. That
// is so if the reading is in the future, so the clock was set back, and the write is not:
// it may have come before or after that.
func (c *Crash) unproven(written time.Time) bool {
	return c.Until.After(c.Now) && !written.IsZero() && !written.After(c.Now)
}
