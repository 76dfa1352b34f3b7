//go:build !linux

package main

// daemonVerbs are the verbs that run a daemon or read its files. They need Linux.
type daemonVerbs struct{}

// wardenMain runs no warden: Chromes of a daemon run on Linux only.
func wardenMain([]string) (code int, done bool) { return 0, false }
