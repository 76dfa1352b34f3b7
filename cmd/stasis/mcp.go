package main

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stasisd/stasis/mcpserver"
)

// mcpCmd is an MCP server on standard input and output, for agents.
type mcpCmd struct {
	remoteDaemon
	User string `help:"User whose environments the tools use if a call names no user; by default the key's user." env:"-"`
}

// Run serves MCP until the agent closes standard input or a signal arrives. Messages of the
// command would break the protocol on standard output, so it prints none.
func (c *mcpCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var ports sync.WaitGroup
	defer ports.Wait()
	defer cancel()
	attach := func(ctx context.Context, session string, port int) (string, error) {
		a := &attachCmd{remoteDaemon: c.remoteDaemon, Host: "127.0.0.1", Port: port, Session: session}
		listener, served, err := a.listen(ctx)
		if err != nil {
			return "", err
		}
		ports.Go(func() { _ = a.serve(ctx, listener, served) }) // it ends with the session; the next call of a tool says so
		return "http://" + listener.Addr().String(), nil
	}
	return mcpserver.Run(ctx, c.api(), mcpserver.Options{Version: version, User: c.User, Attach: attach}, &mcp.StdioTransport{})
}
