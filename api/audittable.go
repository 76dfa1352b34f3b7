package api

// auditClass says which calls of a route the audit log records.
type auditClass int

const (
	// auditAlways records every call.
	auditAlways auditClass = iota + 1
	// auditOthers records calls on data of another user than the key's, and those that a
	// right was missing for. A handler can ask for an entry ([auditedCall.secrets]).
	auditOthers
	// auditSeldom records one call of each key and object in an hour, and the count of the
	// others.
	auditSeldom
	// auditNever records no call: the route needs no key.
	auditNever
)

// auditRule is the line of a route in the table below.
type auditRule struct {
	call  string // the operationId in openapi.yaml
	class auditClass
}

// auditRules has a line for every route, by method and path as in routes.go. What creates,
// restores, saves, ends, deletes or changes what lasts is auditAlways, and so are exports.
// A client that drives or watches a browser can read its secrets, so sockets are too.
var auditRules = map[string]auditRule{
	"POST /v1/sessions":                                {"createSession", auditAlways},
	"GET /v1/sessions":                                 {"listSessions", auditOthers},
	"DELETE /v1/sessions":                              {"deleteSessions", auditAlways},
	"GET /v1/sessions/:session_id":                     {"getSession", auditOthers},
	"DELETE /v1/sessions/:session_id":                  {"deleteSession", auditAlways},
	"GET /v1/sessions/:session_id/restore-report":      {"restoreReport", auditOthers},
	"GET /v1/sessions/:session_id/runs":                {"listRuns", auditOthers},
	"GET /v1/sessions/:session_id/events":              {"streamEvents", auditOthers},
	"GET /v1/sessions/:session_id/status":              {"getStatus", auditOthers},
	"POST /v1/sessions/:session_id/pause":              {"pauseSession", auditOthers},
	"POST /v1/sessions/:session_id/resume":             {"resumeSession", auditAlways},
	"POST /v1/sessions/:session_id/cancel":             {"cancelSession", auditOthers},
	"POST /v1/sessions/:session_id/message":            {"postMessage", auditOthers},
	"GET /v1/sessions/:session_id/messages":            {"listMessages", auditOthers},
	"POST /v1/sessions/:session_id/navigate":           {"navigate", auditOthers},
	"GET /v1/sessions/:session_id/screenshot":          {"screenshot", auditOthers},
	"GET /v1/models":                                   {"listModels", auditOthers},
	"GET /v1/sessions/:session_id/live":                {"live", auditOthers}, // the page; what it shows comes from the socket
	"GET /v1/sessions/:session_id/live/socket":         {"liveSocket", auditAlways},
	"GET /v1/sessions/:session_id/live/files":          {"liveFiles", auditOthers},
	"POST /v1/sessions/:session_id/live/files":         {"addLiveFile", auditOthers},
	"POST /v1/sessions/:session_id/live/save":          {"saveLive", auditAlways},
	"POST /v1/sessions/:session_id/links":              {"createLink", auditAlways},
	"GET /v1/sessions/:session_id/links":               {"listLinks", auditOthers},
	"DELETE /v1/sessions/:session_id/links/:link_id":   {"revokeLink", auditAlways},
	"GET /v1/sessions/:session_id/cdp":                 {"cdp", auditAlways},
	"GET /v1/sessions/:session_id/cdp/page/:target_id": {"cdpPage", auditAlways},
	"GET /v1/sessions/:session_id/json/version":        {"browserVersion", auditOthers},
	"GET /v1/sessions/:session_id/json/version/":       {"browserVersion", auditOthers},
	"GET /v1/sessions/:session_id/json/list":           {"pages", auditOthers},
	"GET /v1/sessions/:session_id/json/list/":          {"pages", auditOthers},
	"GET /v1/connect":                                  {"connect", auditAlways},
	"POST /v1/tickets":                                 {"createTicket", auditAlways},

	"GET /v1/sessions/:session_id/runs/:run_id/events": {"listRunEvents", auditOthers},
	"GET /v1/sessions/:session_id/live/files/:name":    {"getLiveFile", auditAlways},
	"GET /v1/sessions/:session_id/files":               {"listFiles", auditOthers},
	"POST /v1/sessions/:session_id/files":              {"putFile", auditOthers},
	"GET /v1/sessions/:session_id/files/:name":         {"getFile", auditAlways},
	"DELETE /v1/sessions/:session_id/files/:name":      {"deleteFile", auditAlways},

	"POST /v1/sessions/:session_id/snapshots":       {"checkpoint", auditAlways},
	"GET /v1/sessions/:session_id/snapshots":        {"listSnapshots", auditOthers},
	"GET /v1/sessions/:session_id/snapshots/latest": {"latestSnapshot", auditOthers},
	"GET /v1/snapshots":                             {"allSnapshots", auditOthers},
	"POST /v1/snapshots":                            {"importSnapshot", auditAlways},
	"GET /v1/snapshots/:snapshot_id/state":          {"snapshotState", auditAlways},
	"GET /v1/snapshots/:snapshot_id/diff/:other_id": {"diffSnapshots", auditOthers},
	"GET /v1/snapshots/:snapshot_id/archive":        {"snapshotArchive", auditAlways},
	"POST /v1/snapshots/:snapshot_id/verify":        {"verifySnapshot", auditOthers},
	"GET /v1/snapshots/:snapshot_id":                {"getSnapshot", auditOthers},
	"DELETE /v1/snapshots/:snapshot_id":             {"deleteSnapshot", auditAlways},
	"POST /v1/prune":                                {"prune", auditAlways},

	"PUT /v1/sessions/:session_id/scopes/:scope/:scope_id/snapshots/:snapshot_id":    {"putDocument", auditAlways},
	"GET /v1/sessions/:session_id/scopes/:scope/:scope_id/snapshots/:snapshot_id":    {"getDocument", auditSeldom},
	"DELETE /v1/sessions/:session_id/scopes/:scope/:scope_id/snapshots/:snapshot_id": {"deleteDocument", auditAlways},
	"GET /v1/sessions/:session_id/scopes/:scope/:scope_id/snapshots":                 {"listDocuments", auditOthers},
	"GET /v1/sessions/:session_id/scopes/:scope/:scope_id/manifest":                  {"getManifest", auditSeldom},
	"PUT /v1/sessions/:session_id/scopes/:scope/:scope_id/manifest":                  {"putManifest", auditAlways},
	"DELETE /v1/sessions/:session_id/scopes":                                         {"deleteDocuments", auditAlways},

	"GET /v1/sessions/:session_id/notes":            {"sessionNotes", auditOthers},
	"POST /api/v1/public/memory/v2/session":         {"putNote", auditOthers},
	"GET /api/v1/public/memory/v2/session/latest":   {"latestNote", auditOthers},
	"GET /api/v1/public/memory/v2/session/:note_id": {"getNote", auditOthers},
	"POST /v1/memory/v2/session":                    {"putNoteShort", auditOthers},
	"GET /v1/memory/v2/session/latest":              {"latestNoteShort", auditOthers},
	"GET /v1/memory/v2/session/:note_id":            {"getNoteShort", auditOthers},
	"POST /memory/v2/session":                       {"putNotePlain", auditOthers},
	"GET /memory/v2/session/latest":                 {"latestNotePlain", auditOthers},
	"GET /memory/v2/session/:note_id":               {"getNotePlain", auditOthers},

	"GET /v1/webhooks/deliveries":                      {"listDeliveries", auditOthers},
	"POST /v1/webhooks/deliveries/:delivery_id/resend": {"resendDelivery", auditAlways},

	"GET /v1/webhooks/secrets":    {"listWebhookSecrets", auditOthers},
	"PUT /v1/webhooks/secrets":    {"setWebhookSecret", auditAlways},
	"DELETE /v1/webhooks/secrets": {"deleteWebhookSecret", auditAlways},

	"GET /v1/users/:user_id":                 {"getUser", auditOthers},
	"PATCH /v1/users/:user_id":               {"patchUser", auditAlways},
	"POST /v1/users/:user_id/default/check":  {"checkDefault", auditAlways},
	"GET /v1/users/:user_id/default":         {"getDefault", auditOthers},
	"PUT /v1/users/:user_id/default":         {"putDefault", auditAlways},
	"DELETE /v1/users/:user_id/default":      {"deleteDefault", auditAlways},
	"GET /v1/users/:user_id/default/history": {"defaultHistory", auditOthers},
	"GET /v1/users/:user_id/default/state":   {"defaultState", auditAlways},

	"POST /v1/extensions":                 {"putExtension", auditAlways},
	"GET /v1/extensions":                  {"listExtensions", auditOthers},
	"GET /v1/extensions/:extension_id":    {"getExtension", auditOthers},
	"DELETE /v1/extensions/:extension_id": {"deleteExtension", auditAlways},

	"GET /v1/me":                   {"me", auditOthers},
	"GET /v1/keys":                 {"listKeys", auditAlways},
	"POST /v1/keys":                {"createKey", auditAlways},
	"PATCH /v1/keys/:key_id":       {"changeKey", auditAlways},
	"POST /v1/keys/:key_id/rotate": {"rotateKey", auditAlways},
	"DELETE /v1/keys/:key_id":      {"deleteKey", auditAlways},
	"GET /v1/audit":                {"listAudit", auditSeldom},

	"GET /v1/nodes":                   {"listNodes", auditOthers},
	"POST /v1/nodes/:node_id/drain":   {"drainNode", auditAlways},
	"DELETE /v1/nodes/:node_id/drain": {"undrainNode", auditAlways},
	"DELETE /v1/nodes/:node_id":       {"removeNode", auditAlways},

	"GET /healthz":      {"health", auditNever},
	"GET /readyz":       {"ready", auditNever},
	"GET /metrics":      {"metrics", auditNever},
	"GET /openapi.yaml": {"openapi", auditNever},
}

// queriesUser has the calls, by operationId, whose query may name a user for whom they are. In
// that of listAudit a user_id only filters.
var queriesUser = map[string]bool{
	"listSessions":        true,
	"deleteSessions":      true,
	"connect":             true,
	"latestNote":          true,
	"latestNoteShort":     true,
	"latestNotePlain":     true,
	"allSnapshots":        true,
	"importSnapshot":      true,
	"listWebhookSecrets":  true,
	"deleteWebhookSecret": true,
}
