package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// attachCmd serves a session at a DevTools port of this machine, as a Chrome started with
// --remote-debugging-port would.
type attachCmd struct {
	remoteDaemon
	Port           int    `help:"Port of this machine to listen on; 0 takes a free one." default:"9222" env:"-"`
	Host           string `help:"Address of this machine to listen on." default:"127.0.0.1" env:"-"`
	InsecureListen bool   `help:"Allow an address that other machines can reach. Everyone who reaches the port can drive the session." env:"-"`
	Session        string `arg:"" help:"The session's ID."`

	period time.Duration // overrides watchPeriod in tests
}

// attachStop is how long requests may take when the command ends.
const attachStop = 2 * time.Second

// Run serves the port until the session ends or a signal arrives.
func (c *attachCmd) Run(ctx context.Context) error {
	addr, err := netip.ParseAddr(c.Host)
	if err != nil {
		return exitError{exitUsage, "--host: must be an IP address, such as 127.0.0.1"}
	}
	if !addr.IsLoopback() && !c.InsecureListen {
		return exitError{exitUsage, "--host: other machines can reach " + c.Host + ", and everyone who reaches the port can drive the session; use 127.0.0.1, or add --insecure-listen"}
	}
	if c.Port < 0 || c.Port > 65535 {
		return exitError{exitUsage, "--port: must be 0 to 65535"}
	}
	listener, port, err := c.listen(ctx)
	var taken portTaken
	if errors.As(err, &taken) {
		return exitError{exitUsage, fmt.Sprintf("--port: %v; use another port, or 0 for a free one", taken)}
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "DevTools listening on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return c.serve(ctx, listener, port)
}

// listen opens the port of a session that runs. The caller serves it.
func (c *attachCmd) listen(ctx context.Context) (net.Listener, *devToolsPort, error) {
	if over, err := c.watched().over(ctx); err != nil {
		return nil, nil, err
	} else if over != "" {
		return nil, nil, exitError{exitFailed, "the session is " + over + "; resume it, or create another"}
	}
	port := &devToolsPort{daemon: c.remoteDaemon, session: c.Session}
	if err := port.readVersion(ctx); err != nil {
		return nil, nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil, portTaken(c.Port)
	}
	if err != nil {
		return nil, nil, exitError{exitUsage, "--port: " + err.Error()}
	}
	return listener, port, nil
}

// portTaken is the error for a port on which another program listens.
type portTaken int

func (p portTaken) Error() string { return "another program listens on port " + strconv.Itoa(int(p)) }

// watched returns the watch over the session.
func (c *attachCmd) watched() sessionWatch {
	return sessionWatch{&c.remoteDaemon, c.Session, c.period}
}

// serve answers requests until the session ends or ctx does.
func (c *attachCmd) serve(ctx context.Context, listener net.Listener, port *devToolsPort) error {
	sockets, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	port.closing = sockets
	server := &http.Server{Handler: port, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return sockets }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	watched := make(chan error, 1)
	go func() { watched <- c.watched().wait(sockets) }()

	var err error
	select {
	case err = <-watched:
	case err = <-served:
	}
	cancel(err)
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), attachStop)
	defer done()
	_ = server.Shutdown(stop) // what is left ends with the process
	port.sockets.Wait()
	var over sessionOver
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &over):
		_, err = fmt.Fprintln(os.Stderr, "stasis: "+over.Error())
		return err
	default:
		return err
	}
}

// page is a tab as the daemon's json/list describes it.
type page struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (p *devToolsPort) pages(ctx context.Context) ([]page, error) {
	var pages []page
	err := p.daemon.call(ctx, http.MethodGet, p.path("json", "list"), nil, &pages)
	return pages, err
}

// browserVersion is the answer of CDP's Browser.getVersion.
type browserVersion struct {
	Protocol string `json:"protocolVersion"`
	Product  string `json:"product"`
	Revision string `json:"revision"`
	Agent    string `json:"userAgent"`
	V8       string `json:"jsVersion"`
}

func (p *devToolsPort) readVersion(ctx context.Context) error {
	result, err := p.command(ctx, "Browser.getVersion", map[string]any{})
	if err != nil {
		return err
	}
	return json.Unmarshal(result, &p.version)
}
