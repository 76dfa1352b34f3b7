package report

// Code is the reason for a line of a report. Programs decide by the code alone. The codes
// are part of the API: a code is never renamed or reused, and openapi.yaml documents each
// one.
type Code string

// The codes of items left out on purpose. A line with one of these is not a loss.
const (
	LeftOut      Code = "left_out"      // a selection of origins left it out
	NotInShell   Code = "not_in_shell"  // the headless shell does not use it; it stays in the environment
	TabsUnwanted Code = "tabs_unwanted" // restore_tabs is false; also for what belongs to a tab
)

// The codes of what the saved environment or its archive lacks.
const (
	NotCounted     Code = "not_counted"      // it exists in a form that cannot be counted: neither restored nor lost
	NotRead        Code = "not_read"         // its items were not read
	Damaged        Code = "damaged"          // damaged on disk
	SettingsReset  Code = "settings_reset"   // Chrome's settings file could not be read
	NotInProfile   Code = "not_in_profile"   // not in the profile when Chrome closed it
	NotUnpacked    Code = "not_unpacked"     // not in the unpacked files
	FilesChanged   Code = "files_changed"    // an extension's files differ from those that were saved
	FileNotAllowed Code = "file_not_allowed" // a file that no profile may contain
	OtherKey       Code = "other_key"        // encrypted under a key that is not available here
	NewerProfile   Code = "newer_profile"    // a newer Chrome saved the profile
	NoPlace        Code = "no_place"         // a format cannot hold it
)

// The codes of what happened in Chrome.
const (
	NoTime           Code = "no_time"           // there was no time to apply it before the first page
	NotTaken         Code = "not_taken"         // Chrome did not load it from the profile
	NotOpened        Code = "not_opened"        // the tab was not restored
	ListNotRestored  Code = "list_not_restored" // the tab was restored without its whole back/forward list
	Refused          Code = "refused"           // Chrome refused it
	Unsettable       Code = "unsettable"        // no Chrome accepts such a cookie
	Unnamed          Code = "unnamed"           // its storage key or partition has no usable name
	NotWritten       Code = "not_written"       // it could not be written
	NotThere         Code = "not_there"         // it was missing when the page was first read
	ProcessDied      Code = "process_died"      // the page's process has died
	ErrorPage        Code = "error_page"        // the tab shows an error page
	FromDocument     Code = "from_document"     // the state document replaced the profile's own copy
	MergedAtSaves    Code = "merged_at_saves"   // Chrome runs with the spare's settings, and each save adds the session's changes to the saved ones
	NotLoaded        Code = "not_loaded"        // Chrome did not load the extension
	Disabled         Code = "disabled"          // Chrome has disabled the extension
	InstalledAnew    Code = "installed_anew"    // the extension was installed again, without its stored data
	OtherVersion     Code = "other_version"     // the extension has another version, as the create requested
	Replaced         Code = "replaced"          // the create sets its own
	PasskeysUnwanted Code = "passkeys_unwanted" // passkeys is false; they are kept for the next snapshot
	Differs          Code = "differs"           // pages see another value
	NotReadBack      Code = "not_read_back"     // it was given to Chrome but not read back
)

// The codes of added-up lines and of lines from older versions of Stasis.
const (
	AddedUp Code = "added_up" // the line adds up others; its text names their reasons
	Other   Code = "other"    // an older Stasis wrote the text without a code
)

// Reason is why items of a line were not simply restored. The zero Reason means that
// nothing needs saying.
type Reason struct {
	Code Code   `json:"reason_code,omitempty"`
	Text string `json:"reason,omitempty"` // for people
}

// With returns a Reason with the code and a text for people.
func (c Code) With(text string) Reason { return Reason{Code: c, Text: text} }

// Reason returns a Reason with the code and its usual text.
func (c Code) Reason() Reason { return c.With(c.Text()) }

// Text returns the usual text of a code that several places use, else "".
func (c Code) Text() string {
	switch c {
	case LeftOut:
		return "left out by origins"
	case NotInShell:
		return "the shell engine does not use it; it stays in the environment"
	case TabsUnwanted:
		return "restore_tabs is false"
	case NoTime:
		return "there was no time to apply it before the first page"
	case NotInProfile:
		return "not in the profile when Chrome closed it"
	case NotTaken:
		return "Chrome did not load it from the profile"
	case FromDocument:
		return "the profile's own copy was damaged or incomplete; it was applied from the snapshot's state document"
	case MergedAtSaves:
		return "Chrome runs with the spare's settings; each save adds the session's changes to these"
	default:
		return ""
	}
}

// OnPurpose reports whether items with this code were left out on purpose.
func (c Code) OnPurpose() bool { return c == LeftOut || c == NotInShell || c == TabsUnwanted }
