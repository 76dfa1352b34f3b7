package auditlog

import (
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Who acts.
const (
	ByKey      = "key"
	ByFirstKey = "first_key" // the key that the daemon makes from its configuration
	ByTicket   = "ticket"    // the ticket of a session, made with the key
	ByLink     = "link"      // a shared link, made with the key
	ByDaemon   = "daemon"
	ByUnknown  = "unknown" // no valid key or ticket
)

// The acts of the daemon. Acts of callers have the operationId of openapi.yaml.
const (
	Started       = "daemon_started"
	Stopped       = "daemon_stopped"
	Lost          = "audit_lost" // entries that could not be written; their count
	SessionEnded  = "session_ended"
	Checkpoint    = "checkpoint_saved"
	Rescued       = "session_rescued"
	LoginChecked  = "login_checked"
	EgressRefused = "egress_refused"
	PageBlocked   = "page_blocked"
	// CommandRefused is of a client of CDP. Each connection reports a method once.
	CommandRefused = "command_refused"
)

// OfEverybody is the object of a listing of all users' data.
const OfEverybody = profiles.AuditEverybody

// Act is what the log records. Texts that do not apply are empty.
type Act struct {
	By         string // "": the daemon
	KeyID      string
	KeyUser    string     // the user that the key acts for
	Address    netip.Addr // of the client
	Call       string
	UserID     string // whose data it is
	SessionID  string
	SnapshotID string
	Object     string
	Detail     string
	// Refused says that an error is the caller's fault. Err is nil if the act succeeded.
	Refused bool
	Err     error
	Code    fault.Code // of an answer that is not an error; "": that of Err
	Repeats *Repeats   // nil: each act has an entry
}

// maxText limits each text of an entry, in bytes.
const maxText = 256

// entry returns the act as an entry that is not chained yet.
func (a Act) entry(now time.Time, count int64) profiles.AuditEntry {
	e := profiles.AuditEntry{At: now.UTC().Truncate(time.Millisecond), By: a.By, KeyID: plain(a.KeyID), KeyUser: plain(a.KeyUser), Call: a.Call,
		UserID: plain(a.UserID), SessionID: plain(a.SessionID), SnapshotID: plain(a.SnapshotID), Object: plain(a.Object), Detail: plain(a.Detail),
		Outcome: profiles.AuditOK, Code: string(a.Code), Count: count}
	if e.By == "" {
		e.By = ByDaemon
	}
	if a.Address.IsValid() {
		e.Address = a.Address.String()
	}
	if a.Err != nil {
		e.Outcome, e.Code = profiles.AuditFailed, string(fault.CodeOf(a.Err))
		if a.Refused {
			e.Outcome = profiles.AuditRefused
		}
	}
	return e
}

// plain returns a text as an entry has it. Callers choose some of the texts, and could
// choose a key or a ticket by mistake, or a text with one in it.
func plain(text string) string {
	if access.IsTicket(text) {
		return "***"
	}
	text = withoutSecrets(strings.ToValidUTF8(text, "\uFFFD"))
	for len(text) > maxText {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text
}

// withoutSecrets replaces the words of a text that are keys or tickets.
func withoutSecrets(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		if access.IsNewSecret(word) || access.IsRandom(word) {
			word = "***"
		}
		_, separator := utf8.DecodeRuneInString(text[end:])
		b.WriteString(word + text[end:end+separator])
		text = text[end+separator:]
	}
	return b.String()
}
