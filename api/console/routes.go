package console

import (
	"net/http"
	"strings"

	"github.com/stasisd/stasis/client"
)

// routes registers the pages. Texts that a caller chose freely, such as a user's ID, are in
// queries: as a segment of a path, ".." would lead elsewhere.
func (c *Console) routes() {
	c.mux.HandleFunc("GET "+Root+"/style.css", c.serveStyle)
	c.mux.HandleFunc("GET "+Root+"/sign-in", c.showSignIn)
	c.mux.HandleFunc("POST "+Root+"/sign-in", c.doSignIn)
	c.mux.HandleFunc("POST "+Root+"/sign-out", c.signOut)
	for pattern, do := range map[string]func(*visit) error{
		"GET /{$}":                      listSessions,
		"GET /sessions/new":             newSession,
		"POST /sessions":                createSession,
		"GET /sessions/{id}":            showSession,
		"GET /sessions/{id}/picture":    sessionPicture,
		"POST /sessions/{id}/end":       endSession,
		"POST /sessions/{id}/save":      saveSession,
		"POST /sessions/{id}/pause":     pauseSession,
		"POST /sessions/{id}/resume":    resumeSession,
		"POST /sessions/{id}/message":   sendMessage,
		"GET /sessions/{id}/file":       downloadFile,
		"POST /sessions/{id}/files":     uploadFile,
		"GET /sessions/{id}/runs/{run}": showRun,

		"GET /users":                listUsers,
		"GET /user":                 showUser,
		"POST /user/check":          checkUser,
		"POST /user/login":          logInByHand,
		"POST /user/login-check":    setLoginCheck,
		"POST /user/default":        setDefault,
		"GET /user/default/remove":  askRemoveDefault,
		"POST /user/default/remove": removeDefault,

		"GET /snapshots":              listSnapshots,
		"GET /snapshots/import":       newImport,
		"POST /snapshots/import":      importSnapshot,
		"GET /snapshots/{id}":         showSnapshot,
		"POST /snapshots/{id}/verify": verifySnapshot,
		"GET /snapshots/{id}/diff":    diffSnapshots,
		"GET /snapshots/{id}/archive": downloadArchive,
		"GET /snapshots/{id}/state":   downloadState,
		"GET /snapshots/{id}/delete":  askDeleteSnapshot,
		"POST /snapshots/{id}/delete": deleteSnapshot,

		"GET /extensions":              listExtensions,
		"POST /extensions":             uploadExtension,
		"GET /extensions/{id}/delete":  askDeleteExtension,
		"POST /extensions/{id}/delete": deleteExtension,
		"GET /keys":                    listKeys,
		"POST /keys":                   makeKey,
		"GET /keys/{id}/delete":        askDeleteKey,
		"POST /keys/{id}/delete":       deleteKey,
		"GET /webhooks":                listDeliveries,
		"POST /webhooks/{id}/resend":   resendDelivery,
		"GET /daemon":                  showDaemon,
		"POST /daemon/prune":           prune,

		"/": noPage,
	} {
		c.mux.HandleFunc(strings.Replace(pattern, "/", Root+"/", 1), c.page(do))
	}
}

// noPage answers for paths that are no page.
func noPage(v *visit) error {
	return &client.Error{Status: http.StatusNotFound, Code: "not_found", Message: "the console has no such page", RequestID: v.w.Header().Get("X-Request-Id")}
}
