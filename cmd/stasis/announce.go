//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"golang.org/x/term"
)

// firstKey says where the first API key is.
type firstKey struct {
	place string // a file, or the variable that has it; "" if there is no first key any more
	made  string // the secret, if this start made it
}

// announce says that the daemon listens, and where the first API key is. With --log-format json
// these are records of the log, else lines on standard output. A new key itself is shown only on
// a terminal: other output is kept, and more people read it.
func (c *serveCmd) announce(url string, key firstKey, log *slog.Logger) {
	if c.LogFormat == "json" {
		log.Info("the daemon listens", "version", version, "url", url)
		if key.place != "" {
			log.Info("the first API key is in this place", "in", key.place)
		}
		return
	}
	fmt.Printf("stasis %s listens on %s\n", version, url)
	switch {
	case key.place == "":
	case key.made != "" && term.IsTerminal(int(os.Stdout.Fd())):
		fmt.Printf("API key (kept in %s): %s\n", key.place, key.made)
	default:
		fmt.Printf("API key: in %s\n", key.place)
	}
}

// notifySystemd sends the state of the daemon to the socket of sd_notify(3). It does nothing if
// systemd did not start the daemon.
func notifySystemd(ctx context.Context, state string, log *slog.Logger) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixgram", socket)
	if err == nil {
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		log.Warn("systemd cannot be notified", "state", state, "error", err)
	}
}
