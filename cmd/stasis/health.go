package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// healthCmd asks a daemon's /readyz, for health checks of images without curl.
type healthCmd struct {
	URL string `help:"The daemon's address, or that of another page of its to ask." default:"http://127.0.0.1:8080"`
}

// Run is the verb.
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
		return exitError{exitNotReady, err.Error()}
	}
	defer func() { _ = res.Body.Close() }() // nothing is read from it
	if res.StatusCode != http.StatusOK {
		return exitError{exitNotReady, "the daemon answered " + res.Status}
	}
	_, err = fmt.Fprintln(os.Stdout, "ready")
	return err
}
