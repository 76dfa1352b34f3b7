//go:build !linux

package main

import "github.com/alecthomas/kong"

// daemonVerbs are the verbs that run a daemon or read its files. They need Linux.
type daemonVerbs struct{}

// explain returns err: there is no configuration file without a daemon.
func (daemonVerbs) explain(_ *kong.Context, err error) error { return err }

// childMain runs no child: a daemon runs on Linux only.
func childMain([]string) (code int, done bool) { return 0, false }
