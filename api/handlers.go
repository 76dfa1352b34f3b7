package api

import (
	"context"
	"net/http"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/api/live"
	"github.com/stasisd/stasis/session/placement"
)

// handlers has one handler for each domain of the API. Each gets only what it needs of
// [Options].
type handlers struct {
	sessions    *sessionHandler
	checkpoints *checkpointHandler
	history     *historyHandler
	controls    *controlHandler
	messages    *messageHandler
	cdp         *cdpHandler
	oneShots    *oneShotHandler
	files       *fileHandler
	links       *linkHandler
	liveSaves   *liveSaver
	snapshots   *snapshotHandler
	exports     *exportHandler
	imports     *importHandler
	documents   *documentHandler
	notes       *noteHandler
	deliveries  *deliveryHandler
	hookSecrets *webhookSecretHandler
	settings    *settingsHandler
	defaults    *defaultHandler
	extensions  *extensionHandler
	keys        *keyHandler
	audit       *auditHandler
	operations  *operationsHandler
	nodes       *nodeHandler
}

// newHandlers makes the handlers from options whose defaults are set. WebSockets and event
// streams end when closing ends.
func newHandlers(closing context.Context, o Options, urls origins, passTo func(*call, placement.Node, forward.Hop, func(*http.Response) error) error) handlers {
	places := newPlacer(o.Cluster, urls, o.Now)
	bodies := newBodyDecoder(o.Budget, o.WarnUnknownFields)
	once := &idempotency{answers: o.Answers, hashKey: o.HashKey, now: o.Now, log: o.Logger}
	sockets := &cdpSockets{cdp: o.CDP, maxMessage: o.MaxMessage, now: o.Now, patience: o.Patience, closing: closing}
	return handlers{
		sessions:    &sessionHandler{sessions: o.Sessions, inspector: o.Inspector, bodies: bodies, idempotency: once, urls: urls, placer: places},
		checkpoints: &checkpointHandler{checkpoints: o.Checkpoints, bodies: bodies, idempotency: once},
		history:     &historyHandler{history: o.History, streams: o.Streams, heartbeat: o.Heartbeat, closing: closing},
		controls:    &controlHandler{controls: o.Controls, inspector: o.Inspector, driver: o.Driver, bodies: bodies, urls: urls, page: live.New(), placer: places},
		messages:    &messageHandler{messenger: o.Messenger, bodies: bodies, idempotency: once},
		cdp:         &cdpHandler{cdp: o.CDP, inspector: o.Inspector, driver: o.Driver, sockets: sockets, urls: urls},
		oneShots:    &oneShotHandler{sessions: o.Sessions, sockets: sockets, idempotency: once, placer: places, passTo: passTo, log: o.Logger},
		files:       &fileHandler{files: o.Files, maxUpload: o.MaxUpload},
		links:       &linkHandler{sharing: o.Sharing, bodies: bodies, urls: urls},
		liveSaves:   &liveSaver{sessions: o.Sessions, logins: o.Logins, bodies: bodies, now: o.Now},
		snapshots:   &snapshotHandler{snapshots: o.Snapshots, pruner: o.Pruner, bodies: bodies},
		exports:     &exportHandler{exports: o.Exports, log: o.Logger},
		imports:     &importHandler{importer: o.Importer, idempotency: once, maxImport: o.MaxImport},
		documents:   &documentHandler{documents: o.Documents, bodies: bodies},
		notes:       &noteHandler{notes: o.Notes, bodies: bodies, idempotency: once},
		deliveries:  &deliveryHandler{deliveries: o.Deliveries},
		hookSecrets: &webhookSecretHandler{secrets: o.WebhookSecrets, bodies: bodies},
		settings:    &settingsHandler{settings: o.Settings, bodies: bodies},
		defaults:    &defaultHandler{defaults: o.Defaults, logins: o.Logins, bodies: bodies},
		extensions:  &extensionHandler{extensions: o.Extensions, maxUpload: o.MaxUpload},
		keys:        &keyHandler{keys: o.Keys, use: o.Settings, bodies: bodies, idempotency: once, urls: urls},
		audit:       &auditHandler{o.Audit},
		nodes:       &nodeHandler{nodes: o.Nodes, bodies: bodies, cluster: o.Cluster},
		operations:  &operationsHandler{audit: o.Audit, readiness: o.Readiness, lease: o.Lease, metrics: o.Metrics, landlock: o.Landlock, egress: o.EgressLimited, limits: o.Limits, uploads: o.UploadsConfined},
	}
}
