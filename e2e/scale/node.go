package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stasisd/stasis/api"
	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/api/metrics"
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/auditlog"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/claims"
	membership "github.com/stasisd/stasis/session/cluster"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/events/webhook"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/snapshot"
)

// node is a daemon of a run: all layers of the binary, with simulated browsers.
type node struct {
	id        string
	url       string
	db        *sqldb.DB
	service   *session.Service
	audit     *auditlog.Log
	claims    *claims.Releases
	keeper    *membership.Keeper
	forwarder *forward.Forwarder
	stop      context.CancelFunc // of the lease, the webhooks and the listener
	work      sync.WaitGroup
}

// shared is what the nodes of a run have in common.
type shared struct {
	database     string         // its URL
	store        snapshot.Store // stands for a bucket
	keys         snapshot.Keys
	folder       string
	sessions     int // that may live on a node
	log          *slog.Logger
	level        *slog.LevelVar // of log
	renewals     *timings
	began        time.Time
	transactions *transactions
}

// uploads refuses imports, which a run does not make.
type uploads struct{}

func (uploads) Read(context.Context, importer.ReadRequest, *os.File, *browser.Dir) (importer.Found, error) {
	return importer.Found{}, errSimulated
}

// answers adapts the catalogue to [api.Answers], as the binary does.
type answers struct{ store profiles.AnswerStore }

func (a answers) ClaimAnswer(ctx context.Context, claim api.Answer) (known api.Answer, fresh bool, err error) {
	was, fresh, err := a.store.ClaimAnswer(ctx, profiles.Answer(claim))
	return api.Answer(was), fresh, err
}

func (a answers) FinishAnswer(ctx context.Context, done api.Answer) error {
	return a.store.FinishAnswer(ctx, profiles.Answer(done))
}

func (a answers) DropAnswer(ctx context.Context, scope, key string) error {
	return a.store.DropAnswer(ctx, scope, key)
}

// startNode connects the layers as cmd/stasis does, joins the cluster, and listens on
// loopback.
func startNode(ctx context.Context, s *shared, number int) (_ *node, err error) {
	n := &node{id: fmt.Sprintf("node-%03d", number)}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", n.id, err), n.close(ctx))
		}
	}()
	if n.db, err = sqldb.Open(ctx, sqldb.Options{Path: s.database, Now: time.Now, Node: true, Ended: s.transactions.ended}); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n.url = "http://" + listener.Addr().String()
	signer := forward.NewSigner(n.id, s.keys.Derive("calls between nodes"), time.Now)
	n.keeper, err = membership.Join(ctx, membership.Config{Store: timed{n.db.Nodes, s.renewals}, ID: n.id, URL: n.url, Facts: placement.Facts{
		Version: "scale", Engines: map[string]string{browser.EngineChrome: (*simulated).Version(nil)}, Sessions: s.sessions, URLMAC: signer.URLMAC(n.id, n.url)},
		Extend: func(time.Duration) {}, Clock: func() time.Duration { return time.Since(s.began) }, Now: time.Now, Log: s.log})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server, err := n.layers(running, s, signer)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	n.work.Go(func() {
		if err := server.Serve(running, listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("a node does not serve", "node", n.id, "error", err)
		}
	})
	return n, nil
}

// layers makes the session layer and the API.
func (n *node) layers(ctx context.Context, s *shared, signer *forward.Signer) (*api.Server, error) {
	folder := filepath.Join(s.folder, n.id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	extensions, err := extension.OpenStore(filepath.Join(folder, "extensions"), nil)
	if err != nil {
		return nil, err
	}
	db, now := n.db, time.Now
	n.claims = claims.NewReleases(db.Claims, 0)
	vault := snapshot.NewVault(s.store, s.keys, snapshot.Options{Now: now, Uses: n.claims})
	n.audit, err = auditlog.Open(ctx, auditlog.Config{Store: db.Audit, Owners: struct {
		*sqldb.Sessions
		*sqldb.Snapshots
	}{db.Sessions, db.Snapshots}, Now: now, Log: s.log})
	if err != nil {
		return nil, err
	}
	receivers := webhook.NewReceivers(webhook.ReceiversConfig{Store: db.Receivers, Sealer: vault, Now: now})
	sender := webhook.New(webhook.Options{Queue: db.Deliveries, Secrets: receivers, Now: now, Log: s.log})
	n.work.Go(func() { sender.Run(ctx) })
	keys := access.NewKeys(db.Keys, now)
	journal := events.NewJournal(db.Runs, vault, now, s.log)
	notices := events.NewNotices(events.NoticesConfig{Session: answer.HookSession, Wake: sender.Wake, Now: now})
	peers := placement.NewPeers(n.id, db.Nodes, now)
	line := placement.NewLine(peers, n.claims, 0, s.log)
	n.service = session.New(session.Config{MaxSessions: s.sessions, Parked: pool.Limits{}, RescueTTL: 24 * time.Hour,
		Unpack: snapshot.Limits{Entries: 1000, Bytes: 1 << 30}, Savers: 4}, session.Deps{
		Keys: keys, Browsers: simulator{filepath.Join(folder, "run")}, Datadirs: profile.Disk{}, Uploads: uploads{}, Vault: vault,
		Journal: journal, Notices: notices, Audit: n.audit, Catalogue: session.Catalogue{
			SessionStore: db.Sessions, SnapshotStore: db.Snapshots, RetentionStore: db.Snapshots, DefaultStore: db.Defaults,
			UserStore: db.Users, NoteWriter: db.Notes, UploadedExtensions: db.Extensions, RunRecords: db.Runs, AnswerRecords: db.Answers,
			DeliveryRecords: db.Deliveries, Database: db,
		}, Extensions: extensions, Node: n.keeper, Left: db.Left, Claims: claims.New(n.claims, 0, s.log), Line: line, TicketKey: s.keys.Derive("session tickets"), Now: now, Log: s.log})
	if err := n.service.Recover(ctx); err != nil {
		return nil, err
	}
	if err := firstKey(ctx, keys); err != nil {
		return nil, err
	}
	n.forwarder = forward.New(forward.Config{Signer: signer, Nodes: peers, Log: s.log, Idle: idleCalls})
	own := session.Nodes(n.service, takeovers{db.Nodes, db.Left}, nil)
	n.keeper.Begin(own)
	sessions, masks := n.service.Lookup(), capacity.NewTurns(events.MaxMasking)
	driver := drive.New(sessions)
	kept := library.New(library.Deps{Records: db.Snapshots, Defaults: db.Defaults, Snapshots: n.service.Snapshots(), Archives: vault,
		Sessions: n.service.ForLibrary(), Keys: keys, Readings: capacity.NewTurns(library.MaxReadings), Now: now, Log: s.log})
	return api.New(api.Options{
		HashKey: s.keys.Derive("request hashes"), Sessions: n.service, Inspector: n.service.Inspector(), Checkpoints: n.service, Controls: n.service,
		Driver: driver, CDP: n.service, Streams: n.service, Rates: n.service, Files: files.New(sessions, keys), Sharing: n.service,
		Snapshots: kept, Exports: kept, Importer: n.service.Importer(), Pruner: n.service.Pruner(), Defaults: kept, Logins: n.service.Checker(),
		Settings: n.service.Users(), Extensions: library.NewExtensions(library.ExtensionDeps{Records: db.Extensions, Files: extensions, Keys: keys,
			Checks: capacity.NewTurns(library.MaxExtensionChecks), Now: now}),
		Keys: keys, SessionTickets: access.NewTicketHolders(keys, sessions, now), Readiness: n.service, Answers: answers{db.Answers}, Audit: n.audit,
		Notes:      agent.NewNotes(sessions, db.Notes, now),
		Documents:  agent.NewDocuments(sessions, snapshot.NewDocuments(s.store, snapshot.Options{Now: now})),
		Messenger:  agent.NewMessenger(agent.MessengerConfig{Sessions: sessions, Driver: driver, Store: db.Messages, Tasks: db.Sessions, Notices: notices, Masks: masks, Now: now}),
		History:    events.NewReader(events.ReaderConfig{Journal: journal, Store: db.Runs, Sessions: sessions, Keys: keys, Masks: masks}),
		Deliveries: events.NewDeliveries(db.Deliveries, sender.Wake, now), WebhookSecrets: receivers,
		Nodes: placement.NewAdmin(db.Nodes, n.id),
		Cluster: &api.Cluster{Peers: peers, Line: line, Signer: signer, Forwarder: n.forwarder, Lives: sessions.Lives, Moving: sessions.Moving,
			Wants: sessions.Wants, Waiter: sessions.Waiter, Caller: keys.Caller, Take: own.Take},
		Metrics: metrics.New("scale").Handler(), Logger: slog.New(slog.DiscardHandler), Now: now}), nil
}

// secret is the key of the load.
const secret = "stasis_scale_0123456789012345"

// firstKey makes the key, unless another node has.
func firstKey(ctx context.Context, keys *access.Keys) error {
	if has, err := keys.Any(ctx); has || err != nil {
		return err
	}
	return keys.SetFirst(ctx, secret)
}

// timed times the renewals of leases.
type timed struct {
	profiles.NodeStore
	renewals *timings
}

// Renew implements [profiles.NodeStore].
func (t timed) Renew(ctx context.Context, status json.RawMessage) (profiles.Node, error) {
	began := time.Now()
	n, err := t.NodeStore.Renew(ctx, status)
	if ctx.Err() == nil {
		t.renewals.add(time.Since(began), err)
	}
	return n, err
}

// takeovers are the records of takeovers.
type takeovers struct {
	*sqldb.Nodes
	*sqldb.Left
}

// idleCalls is how long a node keeps an unused connection to another one. All nodes of a run are
// one process, which has a descriptor for both ends of each connection.
const idleCalls = 2 * time.Second

// close ends the node. Its sessions are ended without a save.
func (n *node) close(ctx context.Context) error {
	var errs []error
	if n.service != nil {
		now, cancel := context.WithCancel(ctx)
		cancel()
		errs = append(errs, n.service.Close(now))
	}
	n.stop()
	n.work.Wait()
	if n.audit != nil {
		errs = append(errs, n.audit.Close(ctx))
	}
	if n.claims != nil {
		errs = append(errs, n.claims.Close())
	}
	if n.keeper != nil {
		errs = append(errs, n.keeper.Close(ctx, true))
	}
	if n.forwarder != nil {
		n.forwarder.Close()
	}
	if n.db != nil {
		errs = append(errs, n.db.Close())
	}
	return errors.Join(errs...)
}
