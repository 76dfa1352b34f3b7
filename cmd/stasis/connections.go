//go:build linux

package main

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// connections returns how many connections clients may have open: --max-connections, or
// half of the files that this process may open if that is less. The rest is for Chromes and
// the store.
func (c *serveCmd) connections(log *slog.Logger) int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur/2 >= uint64(c.MaxConnections) {
		return c.MaxConnections
	}
	most := max(int(files.Cur/2), 1)
	log.Warn("fewer connections than --max-connections are allowed: raise the limit of open files (ulimit -n)", "connections", most, "open_files", files.Cur)
	return most
}
