package forward

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"
)

// answerWriter passes an answer on. The headers of the other node replace those that this one
// has set.
type answerWriter struct {
	http.ResponseWriter
	header http.Header
	ctx    context.Context
	begun  bool

	closing context.Context // when it ends, a WebSocket is closed with 1012
}

// Unwrap is for [http.ResponseController].
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Header implements http.ResponseWriter.
func (a *answerWriter) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answerWriter) WriteHeader(status int) {
	if a.begun {
		return
	}
	if status < http.StatusOK {
		return // the server itself answers Expect: 100-continue
	}
	a.begun = true
	maps.Copy(a.ResponseWriter.Header(), a.header)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Hijack implements [http.Hijacker]. The connection is closed when the context ends: a client
// that does not read would otherwise hold it.
func (a *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.begun = true
	if to, ok := a.ResponseWriter.(*echo.Response); ok { // the proxy writes the answer itself
		to.Committed, to.Status = true, http.StatusSwitchingProtocols
	}
	context.AfterFunc(a.ctx, func() { _ = conn.Close() }) // the proxy closes it too
	client := &clientSocket{Conn: conn}
	buffers.Writer.Reset(upgradeWriter{client})
	stop := context.AfterFunc(a.closing, client.restart)
	context.AfterFunc(a.ctx, func() { stop() })
	return client, buffers, nil
}
