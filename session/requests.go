package session

import (
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

// Conflict says what a save does when the default has moved meanwhile.
type Conflict string

const (
	ConflictKeep      Conflict = "keep"      // keep the winner; the snapshot is kept too
	ConflictOverwrite Conflict = "overwrite" // move the default all the same
)

// SaveMode is what a delete does with the environment.
type SaveMode string

const (
	SaveNone       SaveMode = "none"
	SaveFilesystem SaveMode = "filesystem"
	SaveMemory     SaveMode = "memory"
)

// Create asks for a session; see [request.Create].
type Create = request.Create

// EndRequest asks for a session's end.
type EndRequest struct {
	Mode          SaveMode
	SaveAsDefault bool
	Conflict      Conflict
	Origins       state.Selection // whose state is saved; of SaveFilesystem alone
}

// ListRequest asks for a page of sessions.
type ListRequest struct {
	Status     string // "" for every status
	UserID     string // "" for all that the caller may see
	Limit      int
	StartAfter string
}

// EndAllRequest says whose sessions a DELETE /v1/sessions ends.
type EndAllRequest struct {
	EndRequest
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
}
