package session

import (
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// Create asks for a session; see [request.Create].
type Create = request.Create

// EndRequest asks for a session's end.
type EndRequest struct {
	Mode          save.Mode
	SaveAsDefault bool
	Conflict      save.Conflict
	Origins       state.Selection // whose state is saved; of SaveFilesystem alone
}

// EndAllRequest says whose sessions a DELETE /v1/sessions ends.
type EndAllRequest struct {
	EndRequest
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
}
