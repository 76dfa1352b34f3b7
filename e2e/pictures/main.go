// Command pictures makes the pictures of the console and of the live view that the documents
// show. It starts a daemon and a small shop, in which alice logs in, and takes the pictures
// with a plain Chrome (e2e/clients/pictures.mjs).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stasisd/stasis/e2e/rig"
)

// firstUID is the first user ID of the daemon's Chromes.
const firstUID = 1_810_000_000

// settings are the command's flags.
type settings struct{ binary, chrome, shell, viewer, clients, folder string }

func main() {
	var s settings
	flag.StringVar(&s.binary, "stasis", "bin/stasis", "path of the stasis binary")
	flag.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "path of the Chrome binary")
	flag.StringVar(&s.shell, "shell", "/usr/lib/chromium/chromium-headless-shell", "path of the headless shell binary")
	flag.StringVar(&s.viewer, "viewer", "/usr/bin/chromium", "path of the Chrome that takes the pictures")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder with the client libraries and their scripts")
	flag.StringVar(&s.folder, "out", "docs/pictures", "folder to write the pictures to")
	flag.Parse()
	rig.Main("pictures", func(ctx context.Context) error { return run(ctx, s) })
}

func run(ctx context.Context, s settings) (err error) {
	dir, err := rig.Scratch("pi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	site := httptest.NewServer(shop())
	defer site.Close()
	d := &rig.Daemon{Binary: s.binary, Dir: filepath.Join(dir, "data"), UIDs: firstUID, Args: []string{"--chrome", s.chrome, "--shell", s.shell}}
	if err := d.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop(syscall.SIGTERM)) }()
	made, err := prepare(ctx, d, site.URL)
	if err != nil {
		return err
	}
	if s.folder, err = filepath.Abs(s.folder); err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return err
	}
	order, err := json.Marshal(map[string]any{"url": d.URL, "key": rig.Key, "chrome": s.viewer, "folder": s.folder,
		"live": made.live, "snapshot": made.snapshot, "sessions": made.sessions})
	if err != nil {
		return err
	}
	script := exec.CommandContext(ctx, "node", "pictures.mjs")
	script.Dir, script.Stdin, script.Stdout, script.Stderr = s.clients, strings.NewReader(string(order)), os.Stdout, os.Stderr
	if err := script.Run(); err != nil {
		return fmt.Errorf("cannot take the pictures: %w", err)
	}
	return d.Call(ctx, "DELETE", "/v1/sessions?all=true", nil, nil)
}
