//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/stasisd/stasis/fault"
)

// configFlag is the flag that names the configuration file.
type configFlag struct {
	Config string `help:"Configuration file (YAML) with settings of serve; by default ~/.config/stasis/config.yaml, else /etc/stasis/config.yaml, if it exists; as root only the latter. \"\" for none." placeholder:"FILE"`

	file *configFile // nil if there is none, or if the verb has no setting of serve
}

// BeforeResolve reads the configuration file if the verb has a flag that it can set.
func (c *configFlag) BeforeResolve(app *kong.Kong, ctx *kong.Context) (err error) {
	at := slices.IndexFunc(app.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	serve := app.Model.Children[at]
	if !slices.ContainsFunc(ctx.Flags(), func(flag *kong.Flag) bool {
		return slices.ContainsFunc(serve.Flags, func(s *kong.Flag) bool { return len(s.Envs) > 0 && slices.Equal(s.Envs, flag.Envs) })
	}) {
		return nil
	}
	path, given := c.place(ctx)
	if _, err := os.Stat(path); path == "" || !given && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return nil
	}
	if c.file, err = readConfigFile(path, serve); err == nil {
		ctx.AddResolver(c.file)
	}
	return err
}

// place returns the path of the configuration file; "" for none. given reports whether the
// command line or the environment names it.
func (c *configFlag) place(ctx *kong.Context) (path string, given bool) {
	for _, flag := range ctx.Model.Flags {
		if flag.Name == "config" && c.sourceOf(ctx, flag).kind != fromDefault {
			return fmt.Sprint(ctx.FlagValue(flag)), true
		}
	}
	return defaultConfigFile(), false
}

// The kinds of sources of a value. A later one takes precedence.
const (
	fromDefault     = "default"
	fromFile        = "file"
	fromEnvironment = "environment"
	fromFlag        = "flag"
)

// source is where the value of a setting comes from.
type source struct {
	kind     string
	path     string // fromFile: of the file
	line     int    // fromFile
	variable string // fromEnvironment
}

// String names the source; "" if it is the command line or the default.
func (s source) String() string {
	switch s.kind {
	case fromFile:
		return fmt.Sprintf("%s:%d", s.path, s.line)
	case fromEnvironment:
		return s.variable
	}
	return ""
}

// sourceOf returns where the value of a flag comes from.
func (c *configFlag) sourceOf(ctx *kong.Context, flag *kong.Flag) source {
	if slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved }) {
		return source{kind: fromFlag}
	}
	if name := variableOf(flag); name != "" {
		return source{kind: fromEnvironment, variable: name}
	}
	if s, there := c.file.find(flag); there {
		return source{kind: fromFile, path: c.file.path, line: s.line}
	}
	return source{kind: fromDefault}
}

// variableOf returns the environment variable that sets a flag; "" if none does.
func variableOf(flag *kong.Flag) string {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return name
		}
	}
	return ""
}

// namedFlags matches the flags at the beginning of an error: "--tls-cert, --tls-key: …".
var namedFlags = regexp.MustCompile(`^--[a-z0-9-]+(, --[a-z0-9-]+)*: `)

// explain adds to an error that begins with names of flags where their values come from,
// unless that is the command line. It accepts nil.
func (c *configFlag) explain(ctx *kong.Context, err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return err
	}
	names := strings.FieldsFunc(namedFlags.FindString(known.Message), func(r rune) bool { return strings.ContainsRune(",: ", r) })
	var from []string
	for _, flag := range ctx.Flags() {
		if at := c.sourceOf(ctx, flag).String(); at != "" && slices.Contains(names, "--"+flag.Name) {
			from = append(from, at)
		}
	}
	if len(from) == 0 {
		return err
	}
	explained := *known
	explained.Message += " (from " + strings.Join(from, ", ") + ")"
	return &explained
}
