package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/mcpserver"
)

// mcpCmd is an MCP server on standard input and output, for agents.
type mcpCmd struct {
	remoteDaemon
	User string `help:"User whose environments the tools use if a call names no user; by default the key's user." env:"-"`
}

// AfterApply replaces that of remoteDaemon, which ends the command if there is no key. Agents
// show of such an end only that the connection was closed, so each call of a tool says it instead.
func (c *mcpCmd) AfterApply() error { return nil }

// daemon returns the daemon with its address and key, as they are now.
func (c *mcpCmd) daemon() (*remoteDaemon, error) {
	now := c.remoteDaemon
	if err := now.AfterApply(); err != nil {
		return nil, errors.New(fault.MessageOf(err))
	}
	return &now, nil
}

// connect returns a client of the daemon.
func (c *mcpCmd) connect() (*client.Client, error) {
	daemon, err := c.daemon()
	if err != nil {
		return nil, err
	}
	return daemon.api(), nil
}

// portDeadline bounds how long a DevTools port waits for the daemon: other calls about ports wait too.
const portDeadline = 30 * time.Second

// Run serves MCP until the agent closes standard input or a signal arrives. Messages of the
// command would break the protocol on standard output, so it prints none there.
func (c *mcpCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var ports sync.WaitGroup
	defer ports.Wait()
	defer cancel()
	if _, err := c.daemon(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "stasis:", err) // agents keep it in their logs
	}
	attach := func(ctx context.Context, session string, number int) (*mcpserver.Port, error) {
		daemon, err := c.daemon()
		if err != nil {
			return nil, err
		}
		a := &attachCmd{remoteDaemon: *daemon, Host: "127.0.0.1", Port: number, Session: session}
		opening, stop := context.WithTimeout(ctx, portDeadline)
		listener, served, err := a.listen(opening)
		stop()
		if errors.As(err, new(portTaken)) {
			return nil, mcpserver.ErrPortTaken
		}
		if err != nil {
			return nil, err
		}
		ctx, closePort := context.WithCancel(ctx)
		done := make(chan struct{})
		ports.Go(func() {
			defer close(done)
			defer closePort()
			_ = a.serve(ctx, listener, served) // it ends with the session; the next call of a tool says so
		})
		opened := &mcpserver.Port{Done: done, Close: func() { closePort(); <-done }}
		if at, ok := listener.Addr().(*net.TCPAddr); ok {
			opened.Number = at.Port
		}
		return opened, nil
	}
	return mcpserver.Run(ctx, mcpserver.Options{Version: version, User: c.User, Connect: c.connect, Attach: attach}, &mcp.StdioTransport{})
}
