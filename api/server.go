package api

import (
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

	"github.com/stasisd/stasis/api/live"
	"github.com/stasisd/stasis/budget"
)

// Options are what a [Server] is made of. All up to Answers, Logger and Now are needed;
// the rest has defaults.
type Options struct {
	Service    Service
	Files      Files
	Keys       Keys
	Library    Library
	Pruner     Pruner
	Extensions Extensions
	Notes      Notes
	Documents  Documents
	Messenger  Messenger
	History    History
	Deliveries Deliveries
	Answers    Answers
	// HashKey keys the hashes that repeated requests are known by: a body may
	// have a password, which a bare hash would let anybody try out.
	HashKey []byte
	// Metrics answers a scrape; nil: there are none.
	Metrics http.Handler
	Logger  *slog.Logger
	Now     func() time.Time // the real time: it also sets deadlines of sockets

	// PublicURL forms every URL that is handed out; nil takes the request's
	// Host. X-Forwarded-* count only from TrustedProxies.
	PublicURL      *url.URL
	TrustedProxies []netip.Prefix

	// WarnUnknownFields passes over unknown names in bodies and lists them in
	// ignored_fields of a create's answer, instead of refusing them.
	WarnUnknownFields bool
	Landlock          int            // ABI that Chromes run behind, told by /readyz; 0: none
	MaxUpload         int64          // bytes of one file; default 100 MiB
	MaxImport         int64          // bytes of an imported environment; default 2 GiB
	MaxMessage        int64          // bytes of one CDP message of a client's; default 32 MiB
	MaxConnections    int            // open at once; default 4,096
	Budget            *budget.Budget // of bodies and answers in memory; nil: they are not counted
	Patience          time.Duration  // for a client that sends or reads slowly; default 1 min
	Grace             time.Duration  // for requests at a stop; default 30 s
	Heartbeat         time.Duration  // of streams of events; default 30 s
}

// Server is the HTTP face; it is an http.Handler, and [Server.Serve] runs it.
type Server struct {
	echo        *echo.Echo
	service     Service
	files       Files
	library     Library
	pruner      Pruner
	extensions  Extensions
	keys        Keys
	notes       Notes
	documents   Documents
	history     History
	messenger   Messenger
	deliveries  Deliveries
	answers     Answers
	hashKey     []byte
	metrics     http.Handler
	log         *slog.Logger
	now         func() time.Time
	urls        origins
	warnUnknown bool
	maxUpload   int64
	maxImport   int64
	maxMessage  int64
	connections *connections
	budget      *budget.Budget
	parsing     chan struct{} // one for each large body of JSON that is parsed
	patience    time.Duration
	grace       time.Duration
	heartbeat   time.Duration
	landlock    int
	live        *live.Page
	claims      claims
	attempts    *attempts

	// Every request holds handlers for reading, so that taking it for writing
	// waits for all of them, hijacked ones included.
	handlers sync.RWMutex
	// closing ends when the daemon stops: WebSockets are closed then.
	closing context.Context
	close   context.CancelFunc
}

// New makes a Server. It opens nothing and needs no closing before Serve.
func New(o Options) *Server {
	s := &Server{
		service: o.Service, files: o.Files, keys: o.Keys, library: o.Library, pruner: o.Pruner, extensions: o.Extensions,
		notes: o.Notes, documents: o.Documents, history: o.History, messenger: o.Messenger, deliveries: o.Deliveries,
		answers: o.Answers, hashKey: o.HashKey, metrics: o.Metrics, log: o.Logger, now: o.Now,
		urls:        origins{public: o.PublicURL, proxies: o.TrustedProxies},
		warnUnknown: o.WarnUnknownFields, maxUpload: o.MaxUpload, maxImport: o.MaxImport, maxMessage: o.MaxMessage, grace: o.Grace, heartbeat: o.Heartbeat, landlock: o.Landlock,
		budget: o.Budget, patience: o.Patience, parsing: make(chan struct{}, maxParsing),
		live: live.New(), attempts: newAttempts(o.Now),
	}
	if s.maxUpload == 0 {
		s.maxUpload = 100 << 20
	}
	if s.maxImport == 0 {
		s.maxImport = 2 << 30
	}
	if s.maxMessage == 0 {
		s.maxMessage = 32 << 20
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
	s.connections = newConnections(o.MaxConnections)
	if s.patience == 0 {
		s.patience = defaultPatience
	}
	if s.grace == 0 {
		s.grace = 30 * time.Second
	}
	if s.heartbeat == 0 {
		s.heartbeat = defaultHeartbeat
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.echo = echo.New()
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.IPExtractor = echo.ExtractIPDirect()
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.observe)
	s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.RLock()
	defer s.handlers.RUnlock()
	to := &answer{ResponseWriter: w, control: http.NewResponseController(w), budget: s.budget, pace: pace{now: s.now, most: s.patience}}
	to.arm(time.Time{}) // that of the connection's last request
	defer func() {
		// For what the server has not sent yet; it may read what is left of the body first.
		to.arm(s.now().Add(2 * s.patience))
	}()
	// Echo matches on RawPath only where it is set, and gives parameters
	// escaped or not accordingly. Set, it always gives them escaped, and an
	// encoded slash stays within its parameter.
	u, routed := *r.URL, *r
	u.RawPath = r.URL.EscapedPath()
	routed.URL = &u
	s.bound(w, &routed)
	s.echo.ServeHTTP(to, &routed)
}

// Serve answers requests from l until ctx ends. Then it takes no more, closes
// WebSockets with 1001, gives requests the grace to finish, ends the contexts
// of those that have not, and returns when every handler has. The error is
// that of the listener; a stop by ctx is none. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s,
		// Against clients that hold connections by being slow. Bodies and answers
		// have their own limits.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnState:         s.connections.changed,
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

// waitHandlers waits for every handler, and ends their contexts when patience
// is over.
func (s *Server) waitHandlers(patience context.Context, cancel context.CancelFunc) {
	stop := context.AfterFunc(patience, cancel)
	defer stop()
	s.handlers.Lock()
	s.handlers.Unlock() //nolint:staticcheck // taking it is the waiting
}
