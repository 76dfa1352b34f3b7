// Command stasis is the daemon and its tools: one binary, one file per verb. On systems other
// than Linux it has only the verbs that ask a running daemon.
//
// It reads flags, connects the packages and runs them. The flags of serve, and those that
// say where data is and which key to use, can also be set as STASIS_… in the environment.
// A configuration file sets the flags of serve too, also for other verbs that have them.
// Flags that change what a verb does cannot (env:"-"). Every failure ends in one message on
// standard error and an exit code of the table in exit.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/stasisd/stasis/fault"
)

// version is set by the build.
var version = "devel"

// cli is the command line.
type cli struct {
	daemonVerbs
	clientVerbs
	Version kong.VersionFlag `help:"Print the version." env:"-"`
}

// clientVerbs are the verbs that ask a running daemon. They work on any system.
type clientVerbs struct {
	Health    healthCmd    `cmd:"" help:"Check whether a running daemon takes sessions."`
	Session   sessionCmd   `cmd:"" help:"Start, list, show, save and end sessions of a running daemon."`
	User      userCmd      `cmd:"" help:"Show users, their default environments and logins, and roll back."`
	Key       keyCmd       `cmd:"" help:"Make, list and delete the API keys of a running daemon."`
	Node      nodeCmd      `cmd:"" help:"List, drain and remove the nodes of a cluster."`
	Audit     auditCmd     `cmd:"" help:"Show who did what, and check that the audit log was not changed."`
	Webhook   webhookCmd   `cmd:"" help:"Show what a running daemon sends to webhooks, and send it again."`
	Login     loginCmd     `cmd:"" help:"Log in at a site by hand, in a browser, and save the login."`
	Attach    attachCmd    `cmd:"" help:"Serve a session at a DevTools port of this machine, for Selenium, Lighthouse, chrome://inspect and others."`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"Serve MCP on standard input and output, with which agents start, save and share sessions."`
	Extension extensionCmd `cmd:"" help:"Upload, list and delete the extensions of a running daemon."`
	Snapshot  snapshotCmd  `cmd:"" help:"List, verify, prune, export and import the snapshots of a running daemon."`

	Version versionCmd `cmd:"" help:"Print the version, as --version does."`

	Completion completionCmd `cmd:"" help:"Print a script with which a shell completes the command line of stasis."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:""`
}

// versionCmd prints the version.
type versionCmd struct{}

// Run prints it.
func (versionCmd) Run() error {
	_, err := fmt.Fprintln(os.Stdout, version)
	return err
}

func main() {
	if code, done := childMain(os.Args[1:]); done {
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:]))
}

func newParser(c *cli) *kong.Kong {
	return kong.Must(c, kong.Name("stasis"), kong.DefaultEnvars("STASIS"),
		kong.Description("Runs Chrome browsers, saves their whole environments and restores them."),
		kong.Vars{"version": version})
}

func run(args []string) int {
	var c cli
	parser := newParser(&c)
	ctx, err := parser.Parse(args)
	var known *fault.Error
	if errors.As(err, &known) { // of an AfterApply
		return report(known)
	}
	if err != nil {
		printUsage(parser, err)
		parser.Errorf("%s", err)
		return exitUsage
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx.BindTo(stop, (*context.Context)(nil))
	return report(c.explain(ctx, ctx.Run()))
}

// printUsage prints the verbs to choose from if the command line has none, and else how to
// get the help of its verb.
func printUsage(parser *kong.Kong, err error) {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return
	}
	verb := wrong.Context.Selected()
	if verb != nil && len(verb.Children) == 0 {
		_, _ = fmt.Fprintf(parser.Stderr, "Run \"%s --help\" for its arguments and flags.\n", verb.FullPath())
		return
	}
	parser.Stdout = parser.Stderr // standard output is for answers
	_ = wrong.Context.PrintUsage(false)
	_, _ = fmt.Fprintln(parser.Stderr)
}
