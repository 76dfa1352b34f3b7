package main

import (
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/confine"
	"github.com/stasisd/stasis/session/importer"
)

// daemonVerbs are the verbs that run a daemon or read its files. They need Linux.
type daemonVerbs struct {
	Serve    serveCmd    `cmd:"" help:"Run the daemon."`
	Identity identityCmd `cmd:"" help:"Show and rotate the keys that snapshots are sealed with."`
	Store    storeCmd    `cmd:"" help:"Check, repair and copy snapshot stores, without a daemon."`
	Database databaseCmd `cmd:"" help:"Copy the catalogue between SQLite and PostgreSQL, without a daemon."`
	Backup   backupCmd   `cmd:"" help:"Back up a data directory, also while its daemon runs, and restore a backup."`
	Doctor   doctorCmd   `cmd:"" help:"Check whether this machine can run the daemon, and say what to do where it cannot."`
	Config   configCmd   `cmd:"" help:"Show every setting of serve, its value and where it is from, and check them. It starts nothing."`
	Demo     demoCmd     `cmd:"" help:"Log in on a small site, save, restore, and print the time of each step."`

	configFlag
}

// childMain runs a child of the daemon, which is this binary too, if the arguments ask for
// one: the warden of a Chrome, or what reads an upload. It must start quickly.
func childMain(args []string) (code int, done bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case launch.WardenArg:
		return launch.WardenMain(args[1:]), true
	case confine.Arg:
		return confine.Main(args[1:], map[string]confine.Work{importer.ChildWork: importer.Work(profile.Disk{})}), true
	}
	return 0, false
}
