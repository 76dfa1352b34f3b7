package forward

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

const (
	dialPatience = 3 * time.Second
	// leaseLook is how often the lease of the other node is looked at while a call lasts.
	leaseLook = 2 * time.Second
	// maxAnswer bounds an answer that is read into memory, in bytes.
	maxAnswer = 4 << 20
)

// Nodes looks up the nodes of the cluster; see [placement.Peers].
type Nodes interface {
	Node(ctx context.Context, id string) (placement.Node, error)
}

// Config is what a Forwarder needs.
type Config struct {
	Signer *Signer
	Nodes  Nodes
	// Roots are the certificate authorities of nodes with https URLs; nil: the system's.
	Roots *x509.CertPool
	Log   *slog.Logger
	// Idle is how long an unused connection to another node is kept; 0: a minute.
	Idle time.Duration
}

// Forwarder passes calls on. Its methods are safe for concurrent use. The caller calls Close.
type Forwarder struct {
	cfg       Config
	transport *http.Transport
	buffers   buffers

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New makes a Forwarder.
func New(cfg Config) *Forwarder {
	f := &Forwarder{cfg: cfg}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.transport = &http.Transport{
		DialContext:           dialer().DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialPatience,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       cmp.Or(cfg.Idle, time.Minute), // less than a server keeps an idle connection
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // answers are passed on as they are
	}
	return f
}

// Close ends what has no end by itself, because the daemon stops: WebSockets are closed with 1012,
// so that clients connect again, and answers that are streams end. Other calls are not cut off.
func (f *Forwarder) Close() {
	f.cancel()
	f.transport.CloseIdleConnections()
}

// ErrElsewhere says that the node does not have the session: it has moved.
var ErrElsewhere = errors.New("the node does not have the session")

// Pass answers a request with the answer of a node. If nothing was answered, it returns an
// error: ErrElsewhere, an error of refuses, or node_unavailable. refuses may look at the
// answer and return an error, so that it is not passed on; nil: each answer is.
func (f *Forwarder) Pass(w http.ResponseWriter, r *http.Request, to placement.Node, h Hop, refuses func(*http.Response) error) error {
	if err := f.cfg.Signer.checkURL(to); err != nil {
		return err
	}
	target, err := url.Parse(to.URL)
	if err != nil {
		return fault.Wrap(err, fault.NodeUnavailable, "forward.pass", "the URL of node "+to.ID+" is malformed")
	}
	ctx, stop := f.whileLeased(r.Context(), to)
	defer stop()
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: f.transport, FlushInterval: -1, BufferPool: &f.buffers,
		ErrorLog: slog.NewLogLogger(f.cfg.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = target.Scheme, target.Host, ""
			p.Out.URL.RawQuery = p.In.URL.RawQuery // unchanged, also what cannot be parsed
			sendOnce(p.Out.Header)
			h.To = to.ID
			failed = f.cfg.Signer.Sign(p.Out, h)
		},
		ModifyResponse: func(a *http.Response) error {
			if a.StatusCode == http.StatusMisdirectedRequest {
				return ErrElsewhere
			}
			if err := hopRefused(a.Header, to); err != nil {
				return err
			}
			if refuses != nil {
				if err := refuses(a); err != nil {
					return err
				}
			}
			if kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind == streamType {
				a.Body = newStream(f.ctx, a.Body)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(&answerWriter{ResponseWriter: w, header: http.Header{}, ctx: ctx, closing: f.ctx}, r.WithContext(ctx))
	return f.failure(r.Context(), to, failed)
}

// sendOnce prevents that [http.Transport] sends a call again whose connection ends without an
// answer: the node may have carried it out. The transport does so if a call without a body has one
// of these headers, whatever the method, and then reports the error of the second try. Most calls
// do nothing for these headers. The transport only finds names that are spelled as here; their
// receiver reads any.
func sendOnce(h http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, has := h[name]; has {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// Answer is the whole answer of a node.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Fault returns the error that an answer says; nil if it says none.
func (a Answer) Fault() error {
	if a.Status < http.StatusBadRequest {
		return nil
	}
	var said struct {
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
	}
	if json.Unmarshal(a.Body, &said) != nil || said.Code == "" {
		return fault.New(fault.NodeUnavailable, "forward.answer", "another node answered %d", a.Status)
	}
	return fault.New(said.Code, "forward.answer", "%s", said.Message)
}

// Ask sends a request to a node and returns its answer. path is the path and the query.
// Credentials and the type of the body are those of r.
func (f *Forwarder) Ask(r *http.Request, to placement.Node, h Hop, method, path string, body io.Reader) (Answer, error) {
	ctx, stop := f.whileLeased(r.Context(), to)
	defer stop()
	in, err := f.send(ctx, r, to, h, method, path, body)
	if err != nil {
		return Answer{}, err
	}
	return f.whole(r.Context(), to, in)
}

// send sends a request to a node. The caller closes the body of the answer.
func (f *Forwarder) send(ctx context.Context, r *http.Request, to placement.Node, h Hop, method, path string, body io.Reader) (*http.Response, error) {
	if err := f.cfg.Signer.checkURL(to); err != nil {
		return nil, err
	}
	out, err := http.NewRequestWithContext(ctx, method, to.URL+path, body)
	if err != nil {
		return nil, fault.Wrap(err, fault.NodeUnavailable, "forward.ask", "the URL of node "+to.ID+" is malformed")
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Content-Type", "Accept", "User-Agent", "X-Request-Id"} {
		if values := r.Header.Values(name); len(values) > 0 {
			out.Header[name] = values
		}
	}
	h.To = to.ID
	if err := f.cfg.Signer.Sign(out, h); err != nil {
		return nil, err
	}
	in, err := f.transport.RoundTrip(out)
	if err != nil {
		return nil, f.failure(r.Context(), to, err)
	}
	return in, nil
}

// whole reads the answer of a node.
func (f *Forwarder) whole(client context.Context, to placement.Node, in *http.Response) (Answer, error) {
	defer in.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(in.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		return Answer{}, f.failure(client, to, err)
	}
	if in.StatusCode == http.StatusMisdirectedRequest {
		return Answer{}, ErrElsewhere
	}
	if err := hopRefused(in.Header, to); err != nil {
		return Answer{}, err
	}
	return Answer{in.StatusCode, in.Header, data}, nil
}

// Open is Ask for a GET with an answer that may be large. An answer that says an error is
// returned as that. The caller closes the reader.
func (f *Forwarder) Open(r *http.Request, to placement.Node, h Hop, path string) (io.ReadCloser, error) {
	ctx, stop := f.whileLeased(r.Context(), to)
	in, err := f.send(ctx, r, to, h, http.MethodGet, path, nil)
	if err != nil {
		stop()
		return nil, err
	}
	if in.StatusCode != http.StatusOK {
		defer stop()
		answer, err := f.whole(r.Context(), to, in)
		if err == nil {
			err = answer.Fault()
		}
		if err == nil {
			err = fault.New(fault.NodeUnavailable, "forward.open", "node %s answered %d", to.ID, in.StatusCode)
		}
		return nil, err
	}
	return &opened{in.Body, stop, func(err error) error { return f.failure(r.Context(), to, err) }}, nil
}

// opened is an answer that is being read.
type opened struct {
	io.ReadCloser
	stop    func()
	failure func(error) error
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.failure(err)
	}
	return n, err
}

func (o *opened) Close() error {
	o.stop()
	return o.ReadCloser.Close()
}

// errNotSent marks the error of a call that has not reached its node.
var errNotSent = errors.New("not sent")

// NotSent reports whether an error is that of a call that has not reached its node, or was not
// accepted there, and can therefore be repeated.
func NotSent(err error) bool { return errors.Is(err, errNotSent) }

// errUnanswered marks the error of a call that its node may have carried out.
var errUnanswered = errors.New("not answered")

// Unanswered reports whether an error is that of a call that its node may have carried out: its
// answer has not arrived.
func Unanswered(err error) bool { return errors.Is(err, errUnanswered) }

// hopRefused returns an error if an answer says that the node has not accepted the header of a
// call. The client has no part in that, so it does not get that answer.
func hopRefused(answer http.Header, to placement.Node) error {
	if answer.Get(Header) != Refused {
		return nil
	}
	return fault.Wrap(errNotSent, fault.NodeUnavailable, "forward.pass",
		"node "+to.ID+" does not accept calls of this node: their clocks differ by "+hopAge.String()+" or more, their archive keys differ, or another node answers at that URL")
}

// failure returns the error for a call that a node did not answer.
func (f *Forwarder) failure(client context.Context, to placement.Node, err error) error {
	var known *fault.Error
	var dial *net.OpError
	switch {
	case err == nil, errors.Is(err, ErrElsewhere), errors.As(err, &known):
		return err
	case client.Err() != nil:
		return fault.Wrap(errors.Join(errUnanswered, client.Err()), fault.Timeout, "forward.pass", "the request was cancelled")
	case errors.As(err, &dial) && dial.Op == "dial":
		return fault.Wrap(errors.Join(errNotSent, err), fault.NodeUnavailable, "forward.pass", "node "+to.ID+" does not answer; try again")
	}
	return fault.Wrap(errors.Join(errUnanswered, err), fault.NodeUnavailable, "forward.pass", "node "+to.ID+" has not answered, and may have carried out the call; look before you try again")
}

// whileLeased returns a context that ends if the other node loses its lease. A node that has
// stopped keeps its connections open and answers nothing.
func (f *Forwarder) whileLeased(ctx context.Context, to placement.Node) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var timer *time.Timer
	look := func() {
		now, err := f.cfg.Nodes.Node(ctx, to.ID)
		if err == nil && (!now.Leased() || now.Number != to.Number) || fault.Is(err, fault.NodeNotFound) {
			cancel()
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer.Reset(leaseLook)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(leaseLook, look)
	return ctx, func() {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}

// buffers is the [httputil.BufferPool] of the proxies.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }
