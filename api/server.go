package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/budget"
)

// Options are the parameters of a [Server]. The fields up to Answers, and Logger and Now,
// are required. The rest have defaults.
type Options struct {
	// One interface for each domain of the API, documented where it is declared. One value
	// may implement several.
	Sessions       Sessions
	Inspector      Inspector
	Checkpoints    Checkpoints
	Controls       Controls
	Driver         Driver
	CDP            CDP
	Files          Files
	Sharing        Sharing
	History        History
	Streams        Streams
	Messenger      Messenger
	Notes          Notes
	Documents      Documents
	Snapshots      Snapshots
	Exports        Exports
	Importer       Importer
	Pruner         Pruner
	Defaults       Defaults
	Logins         Logins
	Settings       Settings
	Extensions     Extensions
	Keys           Keys
	SessionTickets SessionTickets
	Deliveries     Deliveries
	WebhookSecrets WebhookSecrets
	Readiness      Readiness
	Lease          func() Lease // of a node, for /readyz; nil: the daemon is none
	Audit          Audit
	Rates          Rates
	Answers        Answers
	Nodes          Nodes

	// HashKey is the key of the hashes that identify repeated requests. A body may contain
	// a password, which could be guessed from a hash without a key.
	HashKey []byte
	// Metrics answers a scrape; nil: there is no /metrics.
	Metrics http.Handler
	Logger  *slog.Logger
	Now     func() time.Time // the real clock: it also sets deadlines of sockets

	// PublicURL is the base of every URL in answers; nil takes the request's Host.
	// X-Forwarded-* headers count only if they come from TrustedProxies.
	PublicURL      *url.URL
	TrustedProxies []netip.Prefix

	// Cluster passes calls on to other nodes; nil: there are none.
	Cluster *Cluster
	// DirectURL is the base of cdp_url, instead of PublicURL, so that clients connect to this
	// node without a hop; nil: not set.
	DirectURL *url.URL

	// WarnUnknownFields ignores unknown names in bodies instead of refusing them. Answers
	// list them in ignored_fields.
	WarnUnknownFields bool
	Limits            bool           // whether control groups limit what each Chrome uses, for /readyz
	EgressLimited     bool           // whether the addresses that Chromes connect to are limited, for /readyz
	UploadsConfined   bool           // whether every restriction of the processes that read uploads holds, for /readyz
	Landlock          int            // ABI version of Landlock that restricts Chromes, for /readyz; 0: none
	MaxUpload         int64          // bytes of one file; default 100 MiB
	MaxImport         int64          // bytes of an imported environment; default 2 GiB
	MaxMessage        int64          // bytes of one CDP message from a client; default 32 MiB
	MaxConnections    int            // open at once; default 4,096
	Budget            *budget.Budget // of bodies and answers in memory; nil: not counted
	Patience          time.Duration  // with a client that sends or reads slowly; default 1 min
	Grace             time.Duration  // for requests that run when the daemon stops; default 30 s
	Heartbeat         time.Duration  // between two heartbeats of a stream; default 30 s
}

// Server serves the HTTP API. It is an http.Handler; [Server.Serve] runs it on a listener.
type Server struct {
	echo        *echo.Echo
	audit       Audit
	urls        origins
	log         *slog.Logger
	now         func() time.Time
	connections *connections
	rates       Rates
	cluster     *Cluster // nil: the daemon is no node
	budget      *budget.Budget
	patience    time.Duration
	grace       time.Duration

	// Every request holds a read lock on running, so that taking the write lock waits for
	// all of them, hijacked ones included.
	running sync.RWMutex
	close   context.CancelFunc // closes WebSockets and streams when the daemon stops
}

// New makes a Server. It opens nothing, so a Server that never serves needs no closing.
func New(o Options) *Server {
	o.setDefaults()
	closing, stop := context.WithCancel(context.Background())
	s := &Server{
		echo: echo.New(), log: o.Logger, now: o.Now, budget: o.Budget, patience: o.Patience, grace: o.Grace,
		connections: newConnections(o.MaxConnections), rates: o.Rates, cluster: o.Cluster, close: stop,
	}
	observe := &observer{now: o.Now, log: o.Logger, slow: newSlowdown()}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.IPExtractor = echo.ExtractIPDirect()
	s.echo.HTTPErrorHandler = observe.fail
	s.echo.JSONSerializer = serializer{}
	s.echo.Use(observe.observe)
	if s.cluster != nil {
		s.echo.Use(s.receive)
		context.AfterFunc(closing, s.cluster.Forwarder.Close)
	}
	urls := origins{public: o.PublicURL, direct: o.DirectURL, proxies: o.TrustedProxies}
	s.audit, s.urls = o.Audit, urls
	s.echo.Use(withConsole(s.newConsole(o, urls)))
	s.routes(newHandlers(closing, o, urls, s.passTo), &authenticator{keys: o.Keys, tickets: o.SessionTickets, urls: urls, attempts: newAttempts(o.Now), cluster: o.Cluster})
	return s
}

// setDefaults sets the fields that were left out.
func (o *Options) setDefaults() {
	o.MaxUpload = cmp.Or(o.MaxUpload, 100<<20)
	o.MaxImport = cmp.Or(o.MaxImport, 2<<30)
	o.MaxMessage = cmp.Or(o.MaxMessage, 32<<20)
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultConnections)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.Grace = cmp.Or(o.Grace, 30*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.RLock()
	defer s.running.RUnlock()
	to := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), budget: s.budget, pace: pace{now: s.now, most: s.patience}}
	to.arm(time.Time{}) // clears the deadline of the connection's previous request
	defer func() {
		// For what the server has not sent yet. It may read the rest of the body first.
		to.arm(s.now().Add(2 * s.patience))
	}()
	limited := *r
	s.limitBody(w, &limited)
	s.dispatch(to, &limited)
}

// dispatch passes a request to its route.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	// Echo matches on RawPath only if it is set, and gives parameters escaped or not
	// accordingly. With RawPath set, parameters are always escaped, and an encoded slash
	// stays within its parameter.
	u, routed := *r.URL, *r
	u.RawPath = r.URL.EscapedPath()
	routed.URL = &u
	s.echo.ServeHTTP(w, &routed)
}

// Serve answers requests from l until ctx ends. Then it accepts no more, closes WebSockets
// with 1001, and gives running requests the grace period. It cancels the contexts of those
// that have not finished, and returns when every handler has. The error is the listener's;
// a stop by ctx is none. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s,
		// Against clients that hold connections by being slow. Bodies and answers have
		// their own limits.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnState:         s.connections.connState,
		ConnContext:       withConnection,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.close()
	patience, done := context.WithTimeout(requests, s.grace)
	defer done()
	if server.Shutdown(patience) != nil {
		cancel()
		err = errors.Join(err, server.Close())
	}
	s.waitHandlers(patience, cancel)
	if err == nil {
		err = <-failed
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// waitHandlers waits for every handler. It cancels their contexts when patience ends.
func (s *Server) waitHandlers(patience context.Context, cancel context.CancelFunc) {
	stop := context.AfterFunc(patience, cancel)
	defer stop()
	s.running.Lock()
	s.running.Unlock() //nolint:staticcheck // taking the lock is the wait
}
