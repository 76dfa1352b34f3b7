package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inputFlag is the flag that half of the control leaves out.
const inputFlag = "--allow-pre-commit-input"

// control types into the fields of bare Chromes with the daemon's flags. They are
// started with and without the flag that allows input before the first frame, in turn.
func control(ctx context.Context, s settings, d *sessions, dir string, site *site, c *client) (table, error) {
	sums := table{}
	for _, engine := range engines {
		one, err := d.Create(ctx, object{"user_id": engine, "engine": engine})
		if err != nil {
			return nil, err
		}
		binary := map[string]string{"chrome": s.chrome, "shell": s.shell}[engine]
		args, err := flagsOf(binary, d.Dir)
		if _, e := d.End(ctx, one.ID, "none"); err != nil || e != nil {
			return nil, errors.Join(err, e)
		}
		if !slices.Contains(args, inputFlag) {
			return nil, fmt.Errorf("the daemon's flags for %s lack %s", engine, inputFlag)
		}
		without := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == inputFlag })
		for i := range s.control {
			for name, args := range map[string][]string{"bare, with the flag": args, "bare, without it": without} {
				client := clients[i%len(clients)]
				lost, err := bare(ctx, c, client, binary, args, dir, site)
				if err != nil {
					return sums, err
				}
				sums.add(row{name, client, engine}, fieldsPerBrowser, lost)
			}
		}
	}
	return sums, nil
}

// bare types into the fields of one Chrome on a new profile.
func bare(ctx context.Context, c *client, tool, binary string, args []string, dir string, site *site) (lost int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	profile, err := os.MkdirTemp(dir, "bare")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(profile)) }()
	var started struct{ Endpoint string }
	if err := c.Do(object{"do": "launch", "chrome": binary, "args": append(slices.Clone(args), "--user-data-dir="+profile)}, &started); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Do(object{"do": "close"}, nil)) }()
	return c.typeInto(tool, started.Endpoint, site)
}

// flagsOf reads the flags of one of the daemon's Chromes from its command line, without
// its address, pipe and folders.
func flagsOf(binary, dataDir string) ([]string, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		raw, err := os.ReadFile(line)
		if err != nil {
			continue // the process has ended
		}
		args := strings.Split(string(bytes.TrimRight(raw, "\x00")), "\x00")
		if args[0] != binary || !strings.Contains(string(raw), "--user-data-dir="+dataDir) || strings.Contains(string(raw), "--type=") {
			continue
		}
		return slices.DeleteFunc(args[1:], func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return !strings.HasPrefix(arg, "--") || slices.Contains([]string{"--remote-debugging-pipe", "--user-data-dir", "--disk-cache-dir", "--profile-directory"}, name)
		}), nil
	}
	return nil, fmt.Errorf("the daemon runs no process of %s", binary)
}
