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

// Attach serves a session at a DevTools port of this machine until ctx ends or the session
// does, and returns the address. port 0 takes a free one.
type Attach func(ctx context.Context, session string, port int) (address string, err error)

// Options configure a server.
type Options struct {
	Version string // of Stasis
	User    string // whose environments the tools use if a call names no user; "": the key's user
	Attach  Attach
}

// server holds what the tools share.
type server struct {
	Options
	api *client.Client
	// ctx ends with the server: DevTools ports outlive the call that opens them.
	ctx context.Context
}

// Run serves MCP on a transport, such as [mcp.StdioTransport], until the client leaves or ctx
// ends.
func Run(ctx context.Context, api *client.Client, o Options, transport mcp.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := mcp.NewServer(&mcp.Implementation{Name: "stasis", Title: "Stasis", Version: o.Version}, &mcp.ServerOptions{Instructions: instructions})
	(&server{Options: o, api: api, ctx: ctx}).addTools(s)
	err := s.Run(ctx, transport)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const instructions = `Stasis runs real Chrome browsers and keeps their logins. Start a session with start_session: with a user's saved environment it is already logged in. ` +
	`Drive its browser over CDP at cdp_url, or call open_devtools_port and connect a browser tool to that address. ` +
	`If a page asks for a login, do not type passwords: call live_link and give the address to the person, who logs in there, then save_session. ` +
	`cdp_url and live links are secrets: show them only to the person that you work for. End every session with end_session or save_session.`

// addTools adds the tools.
func (s *server) addTools(to *mcp.Server) {
	yes, no := true, false
	add(to, tool("start_session", "Start a browser. With a user's saved environment it is logged in where that user logged in before.", mcp.ToolAnnotations{DestructiveHint: &no}), s.start)
	add(to, tool("list_sessions", "List the sessions that run now.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.list)
	add(to, tool("open_devtools_port", "Serve a session at a DevTools port of this machine, for browser tools that connect to http://127.0.0.1:PORT.", mcp.ToolAnnotations{DestructiveHint: &no}), s.attach)
	add(to, tool("live_link", "Make a link with which a person sees the session's browser, and with control can log in or solve a captcha there.", mcp.ToolAnnotations{DestructiveHint: &no}), s.share)
	add(to, tool("save_session", "Save a session's environment: its logins, storage and tabs. The next start_session of the user restores it if it becomes the default.", mcp.ToolAnnotations{DestructiveHint: &no}), s.save)
	add(to, tool("end_session", "End a session without saving it.", mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true}), s.end)
	add(to, tool("list_snapshots", "List saved environments, the newest first, with the sites that look logged in.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.snapshots)
	add(to, tool("check_login", "Check with the login check in the user's settings whether the user's saved environment is still logged in.", mcp.ToolAnnotations{ReadOnlyHint: true}), s.check)
}

func tool(name, description string, hints mcp.ToolAnnotations) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: description, Annotations: &hints}
}

// add adds a tool whose function takes and returns plain values. Its error is shown to the
// agent.
func add[In, Out any](to *mcp.Server, t *mcp.Tool, f func(context.Context, In) (Out, error)) {
	mcp.AddTool(to, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := f(ctx, in)
		return nil, out, explained(err)
	})
}

// explained adds what an agent can do about an error.
func explained(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case "no_snapshot", "default_not_found":
		return fmt.Errorf("%w; the user has no saved environment yet: start_session with fresh, let a person log in with live_link, then save_session", err)
	case "session_not_found", "session_not_running":
		return fmt.Errorf("%w; list_sessions shows the sessions that run", err)
	}
	return err
}
