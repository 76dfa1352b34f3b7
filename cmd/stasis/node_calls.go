//go:build linux

package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/api"
	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/placement"
)

// direct returns the address for --direct; nil: not set.
func (f nodeFlags) direct() *url.URL {
	at, err := f.NodeURL.parse("--node-url")
	if err != nil || !f.Direct {
		return nil
	}
	at.Path = ""
	return at
}

// roots returns the certificate authorities of --node-ca-file; nil: the system's.
func (f nodeFlags) roots() (*x509.CertPool, error) {
	if f.NodeCAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(f.NodeCAFile)
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "serve", "--node-ca-file: cannot be read")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fault.New(fault.Config, "serve", "--node-ca-file: has no certificate in PEM")
	}
	return pool, nil
}

// cluster returns what passes calls on to other nodes; nil if the daemon is no node. Nodes know
// each other by a secret that they derive from the archive key, which all of them have: also
// those without an identity.
func (d *daemon) cluster(f nodeFlags, s shared, sessions session.Lookup, log *slog.Logger) (*api.Cluster, error) {
	if !f.on() {
		return nil, nil
	}
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	signer := d.signer(s.peers.Self())
	return &api.Cluster{Peers: s.peers, Line: s.line, Signer: signer, Lives: sessions.Lives, Moving: sessions.Moving, Wants: sessions.Wants, Waiter: sessions.Waiter, Caller: d.apiKeys.Caller,
		Forwarder: forward.New(forward.Config{Signer: signer, Nodes: s.peers, Roots: roots, Log: log})}, nil
}

// signer returns what signs the calls of a node to others.
func (s *storage) signer(id string) *forward.Signer {
	return forward.NewSigner(id, s.keys.Derive("calls between nodes"), time.Now)
}

// facts are what other nodes know of this one.
func (d *daemon) facts(engines map[string]string, sessions int, fingerprints claims.Fingerprints) placement.Facts {
	return placement.Facts{Version: version, Engines: engines, Sessions: sessions, WriteOnly: len(d.keys.IdentityRecipients()) == 0,
		Home: home(d.dir), Fingerprints: profiles.JSON(fingerprints)}
}

// home names a data directory. Only one daemon has the lock of that directory, until the machine
// is started again. If it has no name, the result is new each time.
func home(dir string) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, statErr := os.Stat(dir)
	if err != nil || statErr != nil {
		return profiles.NewID()
	}
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return profiles.NewID()
	}
	return fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), at.Dev, at.Ino)
}

// places returns what counts free places for metrics; nil if the daemon is no node.
func (d *daemon) places(f nodeFlags, launcher *launch.Launcher) func() map[string]int {
	if !f.on() {
		return nil
	}
	return func() map[string]int {
		left := d.service.Lookup().NodeStatus().Free
		free := map[string]int{browser.EngineChrome: left}
		if launcher.HasShell() == nil {
			free[browser.EngineShell] = left
		}
		return free
	}
}

var _ placement.Catalogue = (*sqldb.Nodes)(nil)
