// Chunks measures what content-defined chunks across a user's successive
// snapshots would save against whole archives, for a profile with large
// service-worker caches and IndexedDB, and prints the tables of the section
// "Equal archives once" of docs/storage.md. Stasis keeps whole archives; this
// is what that decision was made with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/stasisd/stasis/e2e/rig"
)

func main() {
	binary := flag.String("stasis", "bin/stasis", "the daemon's binary")
	saves := flag.Int("saves", 5, "how many snapshots are made, with small changes between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *saves); err != nil {
		fmt.Fprintln(os.Stderr, "chunks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, saves int) (err error) {
	// Chrome puts sockets below it, whose paths must be short; and Chrome's own
	// users pass through it.
	dir, err := os.MkdirTemp("/tmp", "ch")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	site := newSite()
	defer site.Close()
	d := &rig.Daemon{Binary: binary, Dir: dir, UIDs: 260_000, Args: []string{"--spares", "0", "--shell-spares", "0", "--standby", "0"}}
	if err := d.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop(syscall.SIGTERM)) }()

	u := &user{daemon: d, site: site.URL}
	var m measured
	for n := range saves + 1 {
		name := fmt.Sprintf("save %d", n+1)
		if n == saves {
			name = "nothing done"
		}
		s, err := u.live(ctx, n, n < saves)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.name = name
		if err := m.add(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %d bytes of tar\n", name, len(s.tar))
	}
	version, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return err
	}
	fmt.Printf("%d cores, %s, stasis %s.\n\n", runtime.NumCPU(), runtime.Version(), strings.TrimSpace(string(version)))
	m.print(os.Stdout)
	return nil
}
