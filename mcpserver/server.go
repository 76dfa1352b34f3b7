// Package mcpserver is an MCP server (modelcontextprotocol.io) that gives agents the sessions of
// a running Stasis: an agent starts a browser that is already logged in, gets its CDP address
// or a DevTools port for another MCP server such as Playwright's, saves what it did, and asks a
// person to log in where it cannot.
//
// The tools call the daemon through package client, with the rights of its API key.
package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stasisd/stasis/client"
)

// Options configure a server.
type Options struct {
	Version string // of Stasis
	User    string // whose environments the tools use if a call names no user; "": the key's user
	// Connect returns the daemon's client. Each call of a tool uses it, so that an agent sees its
	// error, and the tools work as soon as a person has corrected the cause.
	Connect func() (*client.Client, error)
	Attach  Attach
}

// server holds what the tools share.
type server struct {
	Options
	ports ports
	// ctx ends with the server: DevTools ports outlive the call that opens them.
	ctx context.Context
}

// Run serves MCP on a transport, such as [mcp.StdioTransport], until the client leaves or ctx
// ends.
func Run(ctx context.Context, o Options, transport mcp.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := mcp.NewServer(&mcp.Implementation{Name: "stasis", Title: "Stasis", Version: o.Version}, &mcp.ServerOptions{Instructions: instructions})
	(&server{Options: o, ports: ports{open: map[int]heldPort{}}, ctx: ctx}).addTools(s)
	err := s.Run(ctx, transport)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const instructions = `Stasis runs real Chrome browsers and keeps their logins. Start a session with start_session: with a user's saved environment it is already logged in. ` +
	`These tools do not read pages and do not click: a browser tool such as Playwright's MCP server does, at the address of open_devtools_port or over CDP at cdp_url. ` +
	`If a page asks for a login, do not type passwords: call live_link with control: true, give the address to the person, who logs in there, then call save_session with as_default: true. ` +
	`cdp_url and live links are secrets: show them only to the person that you work for. End every session with save_session and end: true, or with end_session, which saves nothing.`

// addTools adds the tools.
func (s *server) addTools(to *mcp.Server) {
	yes, no := true, false
	add(s, to, tool("start_session", "Start a browser. With a user's saved environment it is logged in where that user logged in before.", mcp.ToolAnnotations{DestructiveHint: &no}), s.start)
	add(s, to, tool("list_sessions", "List the sessions that run now.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.list)
	add(s, to, tool("open_devtools_port", "Serve a session at a DevTools port of this machine, for browser tools that connect to http://127.0.0.1:PORT, such as Playwright's MCP server.", mcp.ToolAnnotations{DestructiveHint: &no}), s.attach)
	add(s, to, tool("live_link", "Make a link with which a person sees the session's browser, and with control can log in or solve a captcha there.", mcp.ToolAnnotations{DestructiveHint: &no}), s.share)
	add(s, to, tool("save_session", "Save a session's environment: its logins, storage and tabs. With as_default, the next start_session of the user restores it.", mcp.ToolAnnotations{DestructiveHint: &no}), s.save)
	add(s, to, tool("end_session", "End a session without saving it.", mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true}), s.end)
	add(s, to, tool("list_snapshots", "List saved environments, the newest first, with the sites that look logged in.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.snapshots)
	add(s, to, tool("check_login", "Check whether the user's saved environment is still logged in. A person has set in the user's settings which page shows that.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.check)
}

func tool(name, description string, hints mcp.ToolAnnotations) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: description, Annotations: &hints}
}

// add adds a tool whose function takes and returns plain values. Its error is shown to the
// agent.
func add[In, Out any](s *server, to *mcp.Server, t *mcp.Tool, f func(context.Context, *client.Client, In) (Out, error)) {
	mcp.AddTool(to, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		api, err := s.Connect()
		if err != nil {
			var none Out
			return nil, none, fmt.Errorf("%w; ask the person who configured this server to set STASIS_URL and STASIS_API_KEY in its env", err)
		}
		out, err := f(ctx, api, in)
		return nil, out, explained(err)
	})
}
