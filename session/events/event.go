package events

// The types of events. The list is part of the API: docs/sessions.md and openapi.yaml
// describe each type.
const (
	Started       = "started"  // a run began with an empty environment
	Restored      = "restored" // a run began with a restored environment
	Navigated     = "navigated"
	Dialog        = "dialog"
	Download      = "download"
	Console       = "console"
	PageCrashed   = "page_crashed"
	PageBlocked   = "page_blocked"   // a page went to an address that sessions may not open
	EgressRefused = "egress_refused" // the browser tried to connect to an address that it may not reach
	LimitReached  = "limit_reached"  // the session has reached a limit of what its browser may use
	EmptyContext  = "empty_context"  // a client created a browser context, which has nothing of the environment
	Screenshot    = "screenshot"
	Connected     = "client_connected"
	Disconnected  = "client_disconnected"
	Paused        = "paused"
	Resumed       = "resumed"
	Saved         = "saved"
	SaveFailed    = "save_failed"
	Message       = "message"
	Cancelled     = "cancelled" // the agent's task
	Note          = "note"
	Dropped       = "dropped" // counts events that were dropped
	Ended         = "ended"   // the last event of a run
)

// imageField is the field that holds an image. It is not searched for secrets: a match in
// image data would be an accident.
const imageField = "jpeg"

// Fields are an event's data. After recording them the caller must not change them. Byte
// slices, such as images, are neither cut nor searched for secrets.
type Fields map[string]any

// maxData is the most bytes of an event's data as JSON; a screenshot fits.
const maxData = 1 << 20

// maxText is the most bytes of each string in an event. Messages are not cut: they are
// limited when they are received.
const maxText = 8 << 10
