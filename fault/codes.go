package fault

// Code names a kind of failure. The list is closed and part of the API: a code is never
// renamed or reused, and openapi.yaml documents each code.
type Code string

// The codes, grouped by the HTTP status that package api gives them.
const (
	InvalidRequest Code = "invalid_request" // 400: not JSON, wrong type, or too long
	Unauthorized   Code = "unauthorized"    // 401: no key, unknown key, or used ticket
	Forbidden      Code = "forbidden"       // 403: the key lacks the right, or a foreign Origin
	ScopeReserved  Code = "scope_reserved"  // 403: the scope ID is reserved for Stasis's own snapshots

	NotFound          Code = "not_found"           // 404: no such route or object
	SessionNotFound   Code = "session_not_found"   // 404: also another user's
	SnapshotNotFound  Code = "snapshot_not_found"  // 404: also another user's
	UserNotFound      Code = "user_not_found"      // 404
	DefaultNotFound   Code = "default_not_found"   // 404: the user has no default environment
	KeyNotFound       Code = "key_not_found"       // 404
	FileNotFound      Code = "file_not_found"      // 404
	ExtensionNotFound Code = "extension_not_found" // 404: also another user's
	RunNotFound       Code = "run_not_found"       // 404: the session has no such run
	NoteNotFound      Code = "note_not_found"      // 404: there are no notes under that session ID
	LinkNotFound      Code = "link_not_found"      // 404: the session has no such link, or it has ended
	NodeNotFound      Code = "node_not_found"      // 404

	MethodNotAllowed Code = "method_not_allowed" // 405, with Allow: the route has other methods

	NoSnapshot        Code = "no_snapshot"         // 409: the source was never saved
	SessionExists     Code = "session_exists"      // 409: the chosen ID is taken
	SessionEnding     Code = "session_ending"      // 409: another end of the session is running
	SessionNotRunning Code = "session_not_running" // 409: the session has ended or failed
	EnvironmentInUse  Code = "environment_in_use"  // 409: on_live=fail, and another session holds the environment
	VersionConflict   Code = "version_conflict"    // 409: if_version is not the current version
	SnapshotInUse     Code = "snapshot_in_use"     // 409: a user's default names it, or it is being read
	SnapshotExists    Code = "snapshot_exists"     // 409: another document has the ID
	NoLoginCheck      Code = "no_login_check"      // 409: the user's settings have no login check
	ExtensionInUse    Code = "extension_in_use"    // 409: a snapshot contains it
	NodeInUse         Code = "node_in_use"         // 409: the node has a lease, or sessions that have not ended
	RequestInProgress Code = "request_in_progress" // 409: the first request with the Idempotency-Key is still running
	IdempotencyReused Code = "idempotency_reused"  // 422: the Idempotency-Key was used with another body

	TooLarge         Code = "too_large"         // 413: the body exceeds the limit
	UnknownField     Code = "unknown_field"     // 422
	InvalidField     Code = "invalid_field"     // 422: a known field with a value out of range
	Unsupported      Code = "unsupported"       // 422: a known value that is not supported
	InvalidExtension Code = "invalid_extension" // 422: not an extension, or a damaged one
	UserMismatch     Code = "user_mismatch"     // 422: source and session name different users

	InvalidImport Code = "invalid_import" // 422: the file does not have its format, or is hostile

	TooManySessions Code = "too_many_sessions" // 429, with Retry-After
	TooManyImports  Code = "too_many_imports"  // 429, with Retry-After
	TooManyClients  Code = "too_many_clients"  // 429, with Retry-After: the session's limit of CDP clients is reached
	TooManyViewers  Code = "too_many_viewers"  // 429, with Retry-After: the session's limit of viewers is reached
	TooManyLinks    Code = "too_many_links"    // 429, with Retry-After: the session's limit of shared links is reached
	TooManyAttempts Code = "too_many_attempts" // 429, with Retry-After: wrong keys or tickets from one address

	QuotaExceeded   Code = "quota_exceeded"    // 429: the user has as much as the quota in the message allows
	TooManyRequests Code = "too_many_requests" // 429, with Retry-After: too many event streams or large bodies at once

	Internal             Code = "internal"              // 500
	SaveFailed           Code = "save_failed"           // 500: nothing was committed
	ArchiveDamaged       Code = "archive_damaged"       // 500: hash, length or structure is wrong
	IdentityMissing      Code = "identity_missing"      // 500: no identity can decrypt the archive
	StoreFailed          Code = "store_failed"          // 500: snapshot store or catalogue failed
	BrowserFailed        Code = "browser_failed"        // 502: Chrome did not start, does not answer, or has died
	ShuttingDown         Code = "shutting_down"         // 503
	CatalogueUnavailable Code = "catalogue_unavailable" // 503, with Retry-After: the database of the catalogue cannot be reached
	NodeLost             Code = "node_lost"             // 503, with Retry-After: another node has taken over this node's sessions
	NodeUnavailable      Code = "node_unavailable"      // 503, with Retry-After: the node of the session does not answer
	Timeout              Code = "timeout"               // 504: Chrome or a store was too slow
	StoreFull            Code = "store_full"            // 507: no space for the snapshot

	ChromeMissing Code = "chrome_missing" // start-up: no Chrome, or its version is too old
	SandboxFailed Code = "sandbox_failed" // start-up: Chrome's sandbox cannot start
	Config        Code = "config"         // start-up: a flag or file is wrong
	DataDirInUse  Code = "data_dir_in_use"
)

var texts = map[Code]string{
	InvalidRequest: "the request is malformed", Unauthorized: "a valid API key is needed",
	Forbidden: "the key does not allow this", ScopeReserved: "the scope is reserved; agents cannot store documents there", NotFound: "no such resource",
	SessionNotFound: "no such session", SnapshotNotFound: "no such snapshot",
	UserNotFound: "no such user", DefaultNotFound: "the user has no default environment",
	KeyNotFound: "no such key", FileNotFound: "no such file",
	RunNotFound:       "no such run",
	NoteNotFound:      "there are no notes",
	LinkNotFound:      "no such link",
	MethodNotAllowed:  "the route has other methods",
	ExtensionNotFound: "no such extension", ExtensionInUse: "a snapshot contains the extension",
	InvalidExtension: "the extension is not valid",
	NoSnapshot:       "nothing was saved yet", SessionExists: "the session ID is taken",
	SessionEnding: "the session is being ended", SessionNotRunning: "the session is not running",
	EnvironmentInUse: "another live session holds this environment",
	VersionConflict:  "another version is current", SnapshotInUse: "the snapshot is in use",
	SnapshotExists:    "the snapshot ID is taken",
	NoLoginCheck:      "no login check is set",
	RequestInProgress: "the first request with this Idempotency-Key is still running",
	IdempotencyReused: "the Idempotency-Key was used with another request",
	TooLarge:          "the request is too large", UnknownField: "unknown field",
	InvalidField: "a field has a value that is not allowed", Unsupported: "not supported",
	UserMismatch:    "the source belongs to another user",
	InvalidImport:   "the file to import does not have the named format",
	TooManySessions: "no slot is free for another session", TooManyImports: "too many imports", TooManyClients: "the session has reached its limit of CDP clients",
	TooManyViewers:  "the session has reached its limit of viewers",
	TooManyLinks:    "the session has reached its limit of shared links",
	QuotaExceeded:   "the user's quota is used up",
	TooManyRequests: "too many such requests are running; try again later",
	TooManyAttempts: "too many wrong keys or tickets came from this address; try again later",
	SaveFailed:      "the save failed; nothing was committed",
	ArchiveDamaged:  "the archive is damaged", IdentityMissing: "no identity can decrypt the archive",
	StoreFailed: "the store failed", BrowserFailed: "the browser failed",
	ShuttingDown: "the daemon is shutting down", Timeout: "the operation took too long",
	StoreFull:       "the store has no space left",
	NodeLost:        "another node has taken over the sessions of this node, because it did not renew its lease; try again",
	NodeUnavailable: "the node on which the session lives does not answer; try again",
	NodeNotFound:    "no such node", NodeInUse: "the node has a lease or sessions that have not ended",
	CatalogueUnavailable: "the database of the catalogue cannot be reached; live sessions continue, and saved data is safe; try again",
}

// Text returns the generic message of the code.
func (c Code) Text() string {
	if t, ok := texts[c]; ok {
		return t
	}
	return "internal error"
}
