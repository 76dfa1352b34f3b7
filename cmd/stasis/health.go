package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

// healthCmd asks a daemon's /readyz, for health checks of images without curl.
type healthCmd struct {
	URL string `help:"Address to ask." default:"http://127.0.0.1:8080/readyz"`
}

// Run is the verb.
func (c *healthCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
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
