//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// serveCmd holds the daemon's settings.
type serveCmd struct {
	Listen         string         `help:"Address to listen on." default:"127.0.0.1:8080"`
	InsecureListen bool           `help:"Allow listening beyond loopback without TLS, behind a proxy that has TLS."`
	TLSCert        string         `help:"TLS certificate file (PEM)." name:"tls-cert"`
	TLSKey         string         `help:"File with the private key of --tls-cert (PEM)." name:"tls-key"`
	PublicURL      webAddress     `help:"Base of every URL in answers; by default the host that the request names." name:"public-url" placeholder:"URL"`
	TrustedProxy   []netip.Prefix `help:"Networks of proxies whose X-Forwarded-* headers are trusted."`
	UnknownFields  string         `help:"What to do with an unknown field in a body." enum:"error,warn" default:"error"`

	storageFlags

	Chrome      string `help:"Chrome's binary; by default the usual paths are searched." placeholder:"PATH"`
	Shell       string `help:"The headless shell's binary, for engine shell; by default the usual paths are searched." placeholder:"PATH"`
	Engine      string `help:"Engine of sessions if neither the create nor the user's settings name one." enum:"chrome,shell" default:"chrome"`
	NoPreflight bool   `help:"Do not start Chrome once as a test before calls are accepted; the first session shows then whether it starts." name:"no-preflight"`
	NoLandlock  bool   `help:"Start Chromes without Landlock, which protects the machine's files from them; for kernels without Landlock." name:"no-landlock"`
	UIDBase     int    `help:"As root: the first uid that Chromes run as." default:"210000" name:"uid-base"`
	UIDCount    int    `help:"As root: the number of uids for Chromes." default:"1000" name:"uid-count"`
	MaxUpload   int64  `help:"Largest uploaded file of a session, and largest uploaded extension, in bytes." default:"104857600"`

	MaxDownloads int64 `help:"Largest size of all downloads of a session together, in bytes. Above it, running ones are cancelled." default:"2147483648"`
	MaxMessage   int   `help:"Largest CDP message of a client, in bytes. It does not limit uploads to /v1/sessions/ID/files." default:"33554432"`
	MaxClients   int   `help:"CDP clients of a session at once." default:"64"`
	ClientMemory int   `help:"Memory for the CDP messages, request bodies and answers in transit of all clients together, in bytes." default:"268435456"`

	MaxConnections int           `help:"Connections at once; at most half of the files that the daemon may open." default:"4096"`
	ClientPatience time.Duration `help:"How long a client may delay a body or an answer in all. Time in which the client sends or reads at least 16 KiB/s does not count." default:"1m"`

	MaxSessions  int              `help:"Sessions at once; 0 computes it from the machine's memory." default:"0"`
	DefaultQuota map[string]int64 `help:"Quotas of users whose settings have none, such as sessions=4,bytes=10000000000; by default no limit." placeholder:"NAME=N" mapsep:","`
	Spares       int              `help:"Empty Chromes kept ready for sessions with engine chrome; 0 for none, negative computes it from cores and memory." default:"-1"`
	ShellSpares  int              `help:"Empty headless shells kept ready for sessions with engine shell; 0 for none, negative computes it from cores and memory." default:"-1"`
	Standby      int              `help:"Largest number of Chromes kept ready with a user's default environment loaded, for users who restore often or whose settings request it; 0 for none." default:"2"`
	SpareAge     time.Duration    `help:"How long a spare or a standby is kept ready before a new one replaces it." default:"30m"`
	Parked       int              `help:"Frozen Chromes kept for memory snapshots; 0 for none, negative computes it from --max-sessions, or from the memory if that is 0." default:"-1"`
	ParkedAge    time.Duration    `help:"How long a frozen Chrome is kept." default:"1h"`
	ParkedMemory memoryLimit      `help:"Memory of all frozen Chromes together, in bytes, or none for no limit; by default 400 MiB for each of --parked." placeholder:"BYTES"`
	UndoWindow   time.Duration    `help:"How long the profile of a session that was ended without a save is kept, so that a second DELETE or a resume saves it; 0: not at all." default:"0" name:"undo-window"`
	RescueTTL    time.Duration    `help:"How long a rescue snapshot is kept." default:"24h" name:"rescue-ttl"`
	MaxUnpack    int64            `help:"Largest environment that is restored, in bytes." default:"2147483648"`

	retentionFlags
	webhookFlags
	egressFlags
	auditFlags
	limitFlags
	nodeFlags

	ShutdownGrace time.Duration `help:"Time to save running sessions when the daemon is stopped." default:"60s"`

	LogFormat string `help:"Format of the log." enum:"text,json" default:"text"`
	LogLevel  string `help:"Lowest level that is logged." enum:"debug,info,warn,error" default:"info"`
}

// Run starts the daemon, prints its address, serves until a signal, and stops. The first
// signal saves all sessions and closes cleanly. A second one ends the daemon at once; the
// next start rescues what was not saved.
func (c *serveCmd) Run(ctx context.Context, verbs *cli) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	if file := verbs.file.name(); file != "" {
		log.Info("settings are read from a configuration file", "file", file)
	}
	if err := c.check(); err != nil {
		return err
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	d, err := start(ctx, c, listener.Addr(), log)
	if err != nil && ctx.Err() != nil {
		log.Info("stopped by a signal before the daemon was ready", "stage", fault.MessageOf(err))
		return listener.Close()
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	recorded, unrecorded := recordAddress(ctx, d.dir, c.scheme(), listener.Addr())
	if unrecorded != nil { // on a full disk, for example, where sessions can still be ended
		log.Warn("the daemon's address cannot be recorded: commands on this machine need --url and --key", "error", unrecorded)
	}
	c.announce(c.address(listener), d.first, log)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(serving, listener) }()
	notifySystemd(context.WithoutCancel(ctx), "READY=1", log) // what clients send before the server accepts it waits in the listener
	stopCheck := d.self.checkURL(ctx)
	select {
	case err = <-served:
	case <-ctx.Done():
		log.Info("stopping: saving running sessions; a second signal ends the daemon at once")
	}
	stopCheck()
	notifySystemd(context.WithoutCancel(ctx), "STOPPING=1", log)
	now, done := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer done()
	grace, cancel := context.WithTimeout(now, c.ShutdownGrace)
	defer cancel()
	d.leave(grace, c.ShutdownGrace, c.ShutdownNotice)
	// Sessions close first, so that clients are notified and waiting calls get their
	// answers. Then the HTTP server, then what both use.
	closed := d.service.Close(grace)
	d.chromesEnded = closed == nil
	err = errors.Join(err, closed, recorded.withdraw())
	stopServing()
	select {
	case e := <-served:
		err = errors.Join(err, e)
	case <-now.Done():
	}
	return errors.Join(err, d.close())
}

// leave moves the sessions of a node to others, in a part of the time in which the daemon stops.
// The rest is for those that stay, which are saved. Calls are answered for the time of notice, in
// which load balancers see that the node is not ready.
func (d *daemon) leave(ctx context.Context, grace, notice time.Duration) {
	if d.self == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace*2/3)
	defer cancel()
	noticed := time.After(notice)
	d.self.leave(ctx)
	select {
	case <-noticed:
	case <-ctx.Done():
	}
}

// check refuses settings that are invalid or contradict each other.
func (c *serveCmd) check() error {
	if key := os.Getenv(keyVariable); key != "" && len(key) < minKey {
		return fault.New(fault.Config, "serve", "%s: must have %d characters or more", keyVariable, minKey)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return fault.New(fault.Config, "serve", "--tls-cert, --tls-key: give both or neither")
	}
	if public, err := c.PublicURL.parse("--public-url"); err != nil {
		return err
	} else if public != nil && (public.RawQuery != "" || public.Fragment != "") {
		return fault.New(fault.Config, "serve", "--public-url: must have no query and no fragment")
	}
	if err := c.checkDatabase(); err != nil {
		return err
	}
	if err := c.nodeFlags.check(string(c.Database)); err != nil {
		return err
	}
	if c.MaxConnections < 1 {
		return fault.New(fault.Config, "serve", "--max-connections: must be 1 or more")
	}
	if _, err := c.quotas(); err != nil {
		return err
	}
	if c.MaxDownloads < 1 {
		return fault.New(fault.Config, "serve", "--max-downloads: must be 1 or more")
	}
	if c.ClientMemory < 0 {
		return fault.New(fault.Config, "serve", "--client-memory: must be 0 or more")
	}
	if c.ClientPatience <= 0 {
		return fault.New(fault.Config, "serve", "--client-patience: must be more than 0")
	}
	if c.Standby < 0 {
		return fault.New(fault.Config, "serve", "--standby: must be 0 or more")
	}
	if c.UndoWindow < 0 || c.UndoWindow > maxUndoWindow {
		return fault.New(fault.Config, "serve", "--undo-window: must be 0 to %s", period(maxUndoWindow))
	}
	if c.ShutdownNotice < 0 {
		return fault.New(fault.Config, "serve", "--shutdown-notice: must be 0 or more")
	}
	if c.RescueTTL < 0 {
		return fault.New(fault.Config, "serve", "--rescue-ttl: must be 0 or more")
	}
	if _, err := c.place(""); err != nil {
		return err
	}
	if err := c.retentionFlags.check(); err != nil {
		return err
	}
	if err := c.webhookFlags.check(); err != nil {
		return err
	}
	if err := c.egressFlags.check(); err != nil {
		return err
	}
	if err := c.auditFlags.check(); err != nil {
		return err
	}
	if err := c.limitFlags.check(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fault.New(fault.Config, "serve", "--listen: must be host:port")
	}
	if !c.onLoopback() && c.TLSCert == "" && !c.InsecureListen {
		return fault.New(fault.Config, "serve",
			"--listen: other machines can reach %s, and keys would cross the network unencrypted; "+
				"give --tls-cert and --tls-key, or --insecure-listen behind a proxy that has TLS", c.Listen)
	}
	return nil
}

// onLoopback reports whether the daemon listens on loopback only.
func (c *serveCmd) onLoopback() bool {
	host, _, _ := net.SplitHostPort(c.Listen) // check refuses what is malformed
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (c *serveCmd) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.Wrap(err, fault.Config, "serve", "--listen: another process listens on "+c.Listen+"; stop it, or choose another port, such as --listen 127.0.0.1:8081")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "serve", "--listen: cannot listen on "+c.Listen)
	}
	if c.TLSCert == "" {
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Config, "serve", "--tls-cert, --tls-key: cannot be read"), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
}

// address returns the URL at which clients reach the daemon.
func (c *serveCmd) address(l net.Listener) string {
	if c.PublicURL != "" {
		return string(c.PublicURL)
	}
	return c.scheme() + "://" + l.Addr().String()
}

func (c *serveCmd) scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

func (c *serveCmd) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fault.Wrap(err, fault.Config, "serve", "--log-level: not a level")
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o)), nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o)), nil
}
