package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// healthCmd requests a daemon's /readyz, for health checks of images without curl.
type healthCmd struct {
	URL string `help:"The daemon's address. If it has a path, that path is requested instead of /readyz." default:"http://127.0.0.1:8080"`
}

// Run prints ready, or fails with exitNotReady.
func (c *healthCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	at, err := url.Parse(c.URL)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = "/readyz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return noAnswer(exitNotReady, err)
	}
	defer func() { _ = res.Body.Close() }() // the body is not read
	if res.StatusCode != http.StatusOK {
		return exitError{exitNotReady, "the daemon answered " + res.Status}
	}
	_, err = fmt.Fprintln(os.Stdout, "ready")
	return err
}
