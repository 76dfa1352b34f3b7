// Package relay is a proxy on the loopback interface for one Chrome. It forwards to an
// upstream proxy: http, https or socks5. It adds that proxy's credentials, if there are
// some, which Chrome cannot take on its command line (RFC 9110 section 11.7, RFC 1929).
//
// Every user and process of the machine can connect to a loopback listener. So the relay
// checks the owner of each connection and serves only its Chrome.
package relay

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// headerTimeout bounds how long Chrome may take to send a request's header. dialTimeout
// bounds how long the upstream proxy may take to connect and to answer.
const (
	headerTimeout = 30 * time.Second
	dialTimeout   = 30 * time.Second
)

// Relay is one such proxy. Close ends it.
type Relay struct {
	upstream *url.URL // the upstream proxy's URL, with the credentials
	dialer   *net.Dialer
	control  atomic.Pointer[Control]
	watcher  atomic.Pointer[func(egress.Refusal)]
	hosts    atomic.Pointer[hostLimits]
	listener *ownedListener
	taken    *takenListener
	server   *http.Server
	plain    *http.Transport
	work     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	tunnels map[net.Conn]struct{} // both ends of each
}

// Control is the Control function of a [net.Dialer].
type Control func(network, address string, conn syscall.RawConn) error

// Start opens a relay for a Chrome that runs as user uid. upstream is the upstream proxy's
// URL with its credentials. If uid is the daemon's own user, no connection is accepted
// before [Relay.SetProcesses].
func Start(upstream *url.URL, uid int) (*Relay, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "relay.start", "no free port on 127.0.0.1 for the proxy's relay")
	}
	r := &Relay{upstream: upstream, listener: &ownedListener{Listener: listener, uid: uid}, taken: newTakenListener(), tunnels: map[net.Conn]struct{}{}}
	r.dialer = &net.Dialer{Timeout: dialTimeout, Control: r.check}
	r.plain = &http.Transport{Proxy: http.ProxyURL(upstream), DisableCompression: true, MaxResponseHeaderBytes: maxAnswer,
		DialContext: r.dialer.DialContext}
	// Errors are reported to Chrome only, because they may contain page addresses.
	quiet := log.New(io.Discard, "", 0)
	through := &httputil.ReverseProxy{
		Rewrite:        func(*httputil.ProxyRequest) {},
		Transport:      r.plain,
		ErrorLog:       quiet,
		FlushInterval:  -1,
		ModifyResponse: hideAuthRequest,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	r.server = &http.Server{ReadHeaderTimeout: headerTimeout, ErrorLog: quiet,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !r.track() {
				return
			}
			defer r.untrack()
			target := req.URL.Host
			if req.Method == http.MethodConnect {
				target = req.Host
			}
			switch {
			case target != "" && !r.allowed(target):
				w.WriteHeader(http.StatusForbidden)
			case req.Method == http.MethodConnect:
				r.tunnel(w, req)
			case req.URL.Scheme == "http" && req.URL.Host != "":
				through.ServeHTTP(w, req)
			default: // a page that found the port sends requests as to a site
				w.WriteHeader(http.StatusBadRequest)
			}
		})}
	r.work.Go(func() { _ = r.server.Serve(r.listener) }) // ends only with Close
	r.work.Go(func() { _ = r.server.Serve(r.taken) })
	return r, nil
}

// SetProcesses sets the Chrome that the relay serves. processes returns the PIDs of its
// current processes. A nil Relay ignores the call.
func (r *Relay) SetProcesses(processes func() []int) {
	if r == nil {
		return
	}
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	r.listener.processes = processes
}

// Limit makes the relay connect to the upstream proxy only where control allows it. A nil
// Relay ignores the call.
func (r *Relay) Limit(control Control) {
	if r != nil {
		r.control.Store(&control)
	}
}

// hostLimits say which hosts the upstream proxy is asked for.
type hostLimits struct {
	allows  func(host string) bool
	refused func(host string)
}

// LimitHosts makes the relay ask the upstream proxy only for hosts that allows returns true
// for; others are 403, and refused is called with them. refused must not wait. With a nil
// allows all hosts are allowed again.
func (r *Relay) LimitHosts(allows func(host string) bool, refused func(host string)) {
	if allows == nil {
		r.hosts.Store(nil)
		return
	}
	r.hosts.Store(&hostLimits{allows, refused})
}

// allowed reports whether the upstream proxy may be asked for a host with or without a port.
func (r *Relay) allowed(hostport string) bool {
	limits := r.hosts.Load()
	if limits == nil {
		return true
	}
	host := (&url.URL{Host: hostport}).Hostname()
	if limits.allows(host) {
		return true
	}
	limits.refused(host)
	return false
}

// Upstream returns the host of the upstream proxy.
func (r *Relay) Upstream() string { return r.upstream.Hostname() }

// Watch calls notify for each connection to the upstream proxy that control does not allow,
// until stop. There is one watcher at a time: a later one replaces an earlier one, whose
// stop then does nothing. A nil Relay ignores the call.
func (r *Relay) Watch(notify func(egress.Refusal)) (stop func()) {
	if r == nil {
		return func() {}
	}
	watcher := &notify
	r.watcher.Store(watcher)
	return func() { r.watcher.CompareAndSwap(watcher, nil) }
}

func (r *Relay) check(network, address string, conn syscall.RawConn) error {
	control := r.control.Load()
	if control == nil {
		return nil
	}
	err := (*control)(network, address, conn)
	to, parseErr := netip.ParseAddrPort(address)
	if notify := r.watcher.Load(); err != nil && parseErr == nil && notify != nil {
		(*notify)(egress.Refusal{Protocol: "tcp", To: to})
	}
	return err
}

// Take serves a connection of the relay's Chrome that reached the daemon in another way than
// over [Relay.Address], and closes it in the end.
func (r *Relay) Take(conn net.Conn) { r.taken.take(conn) }

// Address returns the address of the listener, such as "127.0.0.1:40000".
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Close ends the relay and every connection through it, and waits for them. It is
// idempotent. A nil Relay ignores the call.
func (r *Relay) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	for conn := range r.tunnels {
		_ = conn.Close() // ends the copying
	}
	r.mu.Unlock()
	_ = r.server.Close() // nothing is lost
	r.plain.CloseIdleConnections()
	r.work.Wait()
}

// errRefused replaces a 407 answer of the upstream proxy. Chrome must not see that
// answer: it would prompt for a password.
var errRefused = errors.New("the proxy refused its credentials")

func hideAuthRequest(answer *http.Response) error {
	if answer.StatusCode == http.StatusProxyAuthRequired {
		return errRefused
	}
	return nil
}

// tunnel connects Chrome to a host through the upstream proxy (CONNECT).
func (r *Relay) tunnel(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), dialTimeout)
	defer cancel()
	far, err := dial(ctx, r.dialer, r.upstream, req.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if !r.track(near, far) {
		return
	}
	defer r.untrack(near, far)
	if _, err := near.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() { copyHalf(far, buffered) })
	copyHalf(near, far)
	up.Wait()
}

// copyHalf copies from a connection until its end and then closes the write side of the
// other. Errors are left to the two sides to notice.
func copyHalf(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// track registers a request and the connections of its tunnel, so that Close ends them and
// waits. It returns false if the relay is closed.
func (r *Relay) track(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		for _, c := range conns {
			_ = c.Close()
		}
		return false
	}
	r.work.Add(1)
	for _, c := range conns {
		r.tunnels[c] = struct{}{}
	}
	return true
}

func (r *Relay) untrack(conns ...net.Conn) {
	r.mu.Lock()
	for _, c := range conns {
		_ = c.Close()
		delete(r.tunnels, c)
	}
	r.mu.Unlock()
	r.work.Done()
}
