//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// configCmd shows the settings that serve would use with the same flags, environment and
// configuration file, and checks their values. It opens no file that a setting names, starts
// nothing and changes nothing.
type configCmd struct {
	serveCmd
	JSON bool `help:"Print JSON, for programs." name:"json" env:"-"`
}

// setting is a setting of serve with its value.
type setting struct {
	Name     string `json:"name"`
	Value    any    `json:"value"`              // null: not set
	Secret   bool   `json:"secret,omitempty"`   // the value is "set"
	Source   string `json:"source"`             // a kind of source
	Variable string `json:"variable,omitempty"` // of the environment
	File     string `json:"file,omitempty"`     // the configuration file
	Line     int    `json:"line,omitempty"`     // in the configuration file
}

// Run prints the settings. It fails if serve would refuse them.
func (c *configCmd) Run(ctx *kong.Context, verbs *cli) error {
	dir, err := c.dataDir()
	if err != nil {
		return err
	}
	c.DataDir = dir // the default is a path too
	settings := c.settings(ctx, &verbs.configFlag)
	if c.JSON {
		err = printJSON(map[string]any{"config_file": textOrNil(verbs.file.name()), "settings": settings})
	} else {
		err = printSettings(settings, verbs.describeFile(ctx))
	}
	if err != nil {
		return err
	}
	return c.check()
}

// settings returns all settings, in the order of the flags of serve. Variables without a flag,
// which contain keys, come last.
func (c *configCmd) settings(ctx *kong.Context, from *configFlag) (all []setting) {
	for _, flag := range ctx.Selected().Flags {
		if len(flag.Envs) == 0 { // not of serve
			continue
		}
		at := from.sourceOf(ctx, flag)
		s := setting{Name: flag.Name, Value: shownValue(flag.Target), Source: at.kind, Variable: at.variable, File: at.path, Line: at.line}
		if s.Value != nil && isSecret(flag.Target) {
			s.Value, s.Secret = "set", true
		}
		all = append(all, s)
	}
	for _, name := range []string{keyVariable, identityVariable, webhookSecretVariable} {
		if os.Getenv(name) != "" {
			all = append(all, setting{Name: name, Value: "set", Secret: true, Source: fromEnvironment, Variable: name})
		}
	}
	return all
}

// printSettings prints settings for people.
func printSettings(all []setting, file string) error {
	if _, err := fmt.Printf("Configuration file: %s\n\n", file); err != nil {
		return err
	}
	t := newTable("SETTING", "VALUE", "FROM")
	for _, s := range all {
		value, from := "not set", s.Source
		switch list := s.Value.(type) {
		case nil:
		case []string:
			value = strings.Join(list, ", ")
		default:
			value = fmt.Sprint(s.Value) + s.computed()
		}
		switch s.Source {
		case fromEnvironment:
			from = s.Variable
		case fromFile:
			from = fmt.Sprintf("line %d of the file", s.Line)
		}
		t.row(s.Name, value, from)
	}
	return t.Flush()
}

// computed explains to people a value with which serve computes the setting itself.
func (s setting) computed() string {
	number, _ := s.Value.(int)
	switch {
	case s.Name == "max-sessions" && number <= 0, s.Name == "parked" && number < 0:
		return " (by memory)"
	case (s.Name == "spares" || s.Name == "shell-spares") && number < 0:
		return " (by cores)"
	}
	return ""
}

// describeFile names the configuration file for people.
func (c *configFlag) describeFile(ctx *kong.Context) string {
	if path, _ := c.place(ctx); c.file == nil && path != "" {
		return "none (" + path + " does not exist)"
	}
	return cmp.Or(c.file.name(), "none")
}

// isSecret reports whether a setting's value must not be shown.
func isSecret(value reflect.Value) bool {
	s, may := value.Interface().(interface{ secret() bool })
	return may && s.secret()
}

// shownValue returns a setting's value as JSON shows it: a boolean, a number, a list, or the
// text that the flag would have; nil if it is not set.
func shownValue(value reflect.Value) any {
	switch v := value.Interface().(type) {
	case time.Duration:
		return shortDuration(v)
	case fmt.Stringer:
		return textOrNil(v.String())
	case bool, int, int64, float64:
		return v
	}
	if value.Kind() == reflect.Slice {
		var list []string
		for _, element := range value.Seq2() {
			list = append(list, fmt.Sprint(element))
		}
		if list == nil {
			return nil
		}
		return list
	}
	return textOrNil(fmt.Sprint(value))
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
