package events

// The types of events. The list is part of the wire: docs/sessions.md and openapi.yaml
// describe each one.
const (
	Started      = "started"  // a run on an empty environment
	Restored     = "restored" // a run on a restored one
	Navigated    = "navigated"
	Dialog       = "dialog"
	Download     = "download"
	Console      = "console"
	PageCrashed  = "page_crashed"
	PageBlocked  = "page_blocked" // a page turned to what a session may not show
	Screenshot   = "screenshot"
	Connected    = "client_connected"
	Disconnected = "client_disconnected"
	Paused       = "paused"
	Resumed      = "resumed"
	Saved        = "saved"
	SaveFailed   = "save_failed"
	Message      = "message"
	Cancelled    = "cancelled" // the agent's task
	Note         = "note"
	Dropped      = "dropped" // events that were too many to keep
	Ended        = "ended"   // the last one of a run
)

// picture is the field that holds a picture. It is not searched for secrets, for one
// found there would be chance.
const picture = "jpeg"

// Fields are an event's data. The caller that records them must not change them any more.
// Bytes, such as those of a picture, are neither cut nor searched for secrets.
type Fields map[string]any

// maxData bounds an event's data, in bytes of JSON: a screenshot has room in it.
const maxData = 1 << 20

// maxText bounds each of an event's strings, in bytes. Messages are whole: they
// are bounded where they come in.
const maxText = 8 << 10
