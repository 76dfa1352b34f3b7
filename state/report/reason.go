package report

// Code says why a line of a report is as it is. The code alone decides what the
// daemon does. The list is part of the wire: a code is never renamed or reused,
// and openapi.yaml documents each one.
type Code string

// The codes of what was not meant to come back. A line with one of these lost
// nothing.
const (
	LeftOut      Code = "left_out"      // a selection of origins left it out
	NotInShell   Code = "not_in_shell"  // the headless shell has no use for it; it stays in the environment
	TabsUnwanted Code = "tabs_unwanted" // restore_tabs is false; also what goes with a tab
)

// The codes of what the saved environment or its archive lacks.
const (
	NotCounted     Code = "not_counted"      // it is there in a form that cannot be counted: neither whole nor lost
	NotRead        Code = "not_read"         // nobody read which items there were
	Damaged        Code = "damaged"          // damaged on disk
	SettingsReset  Code = "settings_reset"   // Chrome's settings file could not be read
	NotInProfile   Code = "not_in_profile"   // not in the profile as Chrome closed it
	NotUnpacked    Code = "not_unpacked"     // not in the files as they were unpacked
	FilesChanged   Code = "files_changed"    // an extension's files are not those that were saved
	FileNotAllowed Code = "file_not_allowed" // a file that no profile may bring
	OtherKey       Code = "other_key"        // encrypted under a key that is not here
	NewerProfile   Code = "newer_profile"    // a newer Chrome saved the profile
	NoPlace        Code = "no_place"         // a format has no place for it
)

// The codes of what became of it in Chrome.
const (
	NoTime           Code = "no_time"           // there was no time to apply it before the first page
	NotTaken         Code = "not_taken"         // Chrome did not take it from the profile
	NotOpened        Code = "not_opened"        // the tab did not come back
	ListNotRestored  Code = "list_not_restored" // the tab came back without its whole back/forward list
	Refused          Code = "refused"           // Chrome refused it
	Unsettable       Code = "unsettable"        // no Chrome takes such a cookie
	Unnamed          Code = "unnamed"           // its storage key or partition has no name that can be used
	NotWritten       Code = "not_written"       // it could not be written
	NotThere         Code = "not_there"         // it was not there when the page was first read
	ProcessDied      Code = "process_died"      // the page's process has died
	FromDocument     Code = "from_document"     // the state document replaced the profile's own copy
	NotLoaded        Code = "not_loaded"        // Chrome did not load the extension
	Disabled         Code = "disabled"          // Chrome has disabled the extension
	InstalledAnew    Code = "installed_anew"    // the extension is there without what it stored
	OtherVersion     Code = "other_version"     // the extension has another version, as the create asks
	Replaced         Code = "replaced"          // the create names its own
	PasskeysUnwanted Code = "passkeys_unwanted" // passkeys is false; they are kept for the next snapshot
	Differs          Code = "differs"           // pages see another value
	NotReadBack      Code = "not_read_back"     // it was given to Chrome and not read back
)

// The codes of lines that stand for others, or for what an older Stasis wrote.
const (
	AddedUp Code = "added_up" // the line adds up others; its text names their reasons
	Other   Code = "other"    // an older Stasis wrote the text without a code
)

// Reason is why a line is not simply whole. The zero Reason says that there is
// nothing to tell.
type Reason struct {
	Code Code   `json:"reason_code,omitempty"`
	Text string `json:"reason,omitempty"` // for people
}

// With is the code with a text for people.
func (c Code) With(text string) Reason { return Reason{Code: c, Text: text} }

// Reason is the code with its usual text.
func (c Code) Reason() Reason { return c.With(c.Text()) }

// Text is the usual text of a code that several places give; "" of the others.
func (c Code) Text() string {
	switch c {
	case LeftOut:
		return "left out by origins"
	case NotInShell:
		return "the shell engine does not use it; it stays in the environment"
	case TabsUnwanted:
		return "restore_tabs is false"
	case NoTime:
		return "there was no time to lay it down before the first page"
	case NotInProfile:
		return "not in the profile as Chrome closed it"
	case NotTaken:
		return "Chrome did not take it from the profile"
	case FromDocument:
		return "the profile's own copy was damaged or short; it was laid down from the snapshot's other one"
	default:
		return ""
	}
}

// OnPurpose reports whether what was dropped for the reason was not meant to come
// back.
func (c Code) OnPurpose() bool { return c == LeftOut || c == NotInShell || c == TabsUnwanted }
