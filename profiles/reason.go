package profiles

import "strings"

// ReasonCode says why a session ended or failed. Programs decide by the code alone. The
// codes are part of the API: a code is never renamed or reused, and openapi.yaml
// documents each one.
type ReasonCode string

// The reason codes. A session that runs, or that a request ended, has none.
const (
	ReasonIdle         ReasonCode = "idle_timeout"    // no client was attached for too long
	ReasonLifetime     ReasonCode = "max_lifetime"    // it reached its lifetime limit
	ReasonShutdown     ReasonCode = "shutdown"        // the daemon was stopped
	ReasonCrashed      ReasonCode = "crashed"         // Chrome crashed
	ReasonCrashLoop    ReasonCode = "crash_loop"      // Chrome crashed and was restarted too often
	ReasonMemoryLimit  ReasonCode = "memory_limit"    // Chrome crashed because the session reached its limit of memory
	ReasonTaskLimit    ReasonCode = "processes_limit" // Chrome crashed because the session reached its limit of processes and threads
	ReasonDiskLimit    ReasonCode = "disk_limit"      // the session's files took more of the disk than they may; nothing was saved
	ReasonNotRestarted ReasonCode = "not_restarted"   // Chrome crashed and could not be restarted
	ReasonCrashKept    ReasonCode = "crash_kept"      // Chrome crashed and its data could not be saved; the data is kept
	ReasonSaveFailed   ReasonCode = "save_failed"     // a save failed and Chrome could not be reopened; the data is kept
	ReasonNotRestored  ReasonCode = "not_restored"    // the caches of its environment could not be restored; nothing was saved
	ReasonKilled       ReasonCode = "killed"          // the daemon was killed
	ReasonBeingRescued ReasonCode = "being_rescued"   // the daemon was killed and the data is being saved
	ReasonNotRescued   ReasonCode = "not_rescued"     // the daemon was killed and nothing could be saved
	ReasonNodeLost     ReasonCode = "node_lost"       // the node on which it lived died or lost its lease, and another one took over
	ReasonMoved        ReasonCode = "moved"           // its node was drained or stopped, and another one continues it
	ReasonNotMoved     ReasonCode = "not_moved"       // its node was drained or stopped, and no other could continue it
	ReasonImported     ReasonCode = "imported"        // no browser ran: an import made the session's record
	ReasonLoginCheck   ReasonCode = "login_check"     // no client connected: a scheduled login check made the session's record
	ReasonOther        ReasonCode = "other"           // an older Stasis wrote the text without a code
)

// Killed reports whether the session ended because its daemon was killed.
func (c ReasonCode) Killed() bool {
	return c == ReasonKilled || c == ReasonBeingRescued || c == ReasonNotRescued
}

// Reason is why a session ended or failed. The zero Reason means that nothing needs
// saying.
type Reason struct {
	Code ReasonCode
	Text string // for people
}

// With returns a Reason with the code and a text for people.
func (c ReasonCode) With(text string) Reason { return Reason{Code: c, Text: text} }

// StoredReason returns a reason from a catalogue. A reason stored before reasons had
// codes gets its code from its text. These texts never change, whatever today's texts
// are.
func StoredReason(code ReasonCode, text string) Reason {
	begins := func(with string) bool { return strings.HasPrefix(text, with) }
	switch {
	case code != "" || text == "":
	case text == "the daemon was killed; what the session left is being rescued":
		code = ReasonBeingRescued
	case text == "the daemon was killed; nothing could be rescued":
		code = ReasonNotRescued
	case begins("the daemon was killed"):
		code = ReasonKilled
	case text == "login_check":
		code = ReasonLoginCheck
	case text == "imported":
		code = ReasonImported
	case text == "idle_timeout":
		code = ReasonIdle
	case text == "max_lifetime":
		code = ReasonLifetime
	case text == "shutdown", text == "the daemon is shutting down":
		code = ReasonShutdown
	case begins("Chrome crashed, and what it left could not be saved"):
		code = ReasonCrashKept
	case begins("Chrome crashed, after"):
		code = ReasonCrashLoop
	case begins("Chrome crashed, and could not be started again"):
		code = ReasonNotRestarted
	case begins("Chrome crashed"):
		code = ReasonCrashed
	case begins("a save failed and Chrome could not be reopened"):
		code = ReasonSaveFailed
	default:
		code = ReasonOther
	}
	return code.With(text)
}
