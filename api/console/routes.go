package console

import "net/http"

// routes registers the pages. Texts that a caller chose freely, such as a user's ID, are in
// queries: as a segment of a path, ".." would lead elsewhere.
func (c *Console) routes() {
	c.mux.HandleFunc("GET "+Root+"/style.css", c.serveStyle)
	c.mux.HandleFunc("GET "+Root+"/sign-in", c.showSignIn)
	c.mux.HandleFunc("POST "+Root+"/sign-in", c.doSignIn)
	c.mux.HandleFunc("POST "+Root+"/sign-out", c.signOut)
	for pattern, do := range map[string]func(*visit) error{
		"GET /{$}":                    listSessions,
		"GET /sessions/new":           newSession,
		"POST /sessions":              createSession,
		"GET /sessions/{id}":          showSession,
		"GET /sessions/{id}/picture":  sessionPicture,
		"POST /sessions/{id}/end":     endSession,
		"POST /sessions/{id}/save":    saveSession,
		"POST /sessions/{id}/pause":   pauseSession,
		"POST /sessions/{id}/resume":  resumeSession,
		"POST /sessions/{id}/message": sendMessage,
		"GET /sessions/{id}/file":     downloadFile,
		"POST /sessions/{id}/files":   uploadFile,
		"/":                           noPage,
	} {
		method, path, found := cutMethod(pattern)
		if found {
			method += " "
		}
		c.mux.HandleFunc(method+Root+path, c.page(do))
	}
}

// cutMethod splits a pattern into its method and its path.
func cutMethod(pattern string) (method, path string, found bool) {
	for i := range pattern {
		if pattern[i] == ' ' {
			return pattern[:i], pattern[i+1:], true
		}
	}
	return "", pattern, false
}

// noPage answers for paths that are no page.
func noPage(v *visit) error {
	return &apiError{Status: http.StatusNotFound, Code: "not_found", Message: "the console has no such page", RequestID: v.w.Header().Get("X-Request-Id")}
}
