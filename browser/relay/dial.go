package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// maxAnswer bounds the header of a proxy's answer, in bytes. Chrome's own limit is the
// same (net/http/http_stream_parser.cc, kMaxHeaderBufSize).
const maxAnswer = 256 << 10

// dial connects to a host and port through a proxy.
func dial(ctx context.Context, direct *net.Dialer, upstream *url.URL, host string) (net.Conn, error) {
	if upstream.Scheme == "socks5" {
		var auth *proxy.Auth
		if password, has := upstream.User.Password(); has {
			auth = &proxy.Auth{User: upstream.User.Username(), Password: password}
		}
		d, err := proxy.SOCKS5("tcp", upstream.Host, auth, direct)
		if err != nil {
			return nil, err
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", host)
	}
	conn, err := direct.DialContext(ctx, "tcp", upstream.Host)
	if err != nil {
		return nil, err
	}
	if upstream.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: upstream.Hostname(), MinVersion: tls.VersionTLS12})
	}
	deadline, _ := ctx.Deadline()
	through, err := connect(conn, upstream, host, deadline)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return through, nil
}

// connect requests a tunnel from an HTTP proxy (RFC 9110 section 9.3.6).
func connect(conn net.Conn, upstream *url.URL, host string, deadline time.Time) (net.Conn, error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	var authorization string
	if password, has := upstream.User.Password(); has {
		basic := base64.StdEncoding.EncodeToString([]byte(upstream.User.Username() + ":" + password))
		authorization = "Proxy-Authorization: Basic " + basic + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, host, authorization); err != nil {
		return nil, err
	}
	// An API caller chooses the proxy, so its answer may be endless.
	bound := &io.LimitedReader{R: conn, N: maxAnswer}
	in := bufio.NewReader(bound)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // what follows is the tunnel, or the connection closes
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy answered %d", answer.StatusCode)
	}
	bound.N = math.MaxInt64 // what follows is the tunnel
	return &bufferedConn{Conn: conn, in: in}, conn.SetDeadline(time.Time{})
}

// bufferedConn is a connection from which a buffered reader has already read some bytes.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (r *bufferedConn) Read(b []byte) (int, error) { return r.in.Read(b) }

func (r *bufferedConn) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return r.Close()
}
