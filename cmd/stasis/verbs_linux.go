package main

import "github.com/stasisd/stasis/browser/launch"

// daemonVerbs are the verbs that run a daemon or read its files. They need Linux.
type daemonVerbs struct {
	Serve    serveCmd    `cmd:"" help:"Run the daemon."`
	Identity identityCmd `cmd:"" help:"Show and rotate the keys that snapshots are sealed with."`
	Store    storeCmd    `cmd:"" help:"Check, repair and copy snapshot stores, without a daemon."`
	Backup   backupCmd   `cmd:"" help:"Back up a data directory, also while its daemon runs, and restore a backup."`
	Doctor   doctorCmd   `cmd:"" help:"Check whether this machine can run the daemon, and say what to do where it cannot."`
	Config   configCmd   `cmd:"" help:"Show every setting of serve, its value and where it is from, and check them. It starts nothing."`
	Demo     demoCmd     `cmd:"" help:"Log in on a small site, save, restore, and print the time of each step."`

	configFlag
}

// wardenMain runs the warden of a Chrome, which is this binary too, if the arguments ask
// for it. It must start quickly.
func wardenMain(args []string) (code int, done bool) {
	if len(args) == 0 || args[0] != launch.WardenArg {
		return 0, false
	}
	return launch.WardenMain(args[1:]), true
}
