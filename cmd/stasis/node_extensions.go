//go:build linux

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore/archives"
)

const (
	// extensionFolder is the folder of uploaded extensions in the data directory.
	extensionFolder = "extensions"
	// extensionCache is the folder of a node's copies of them.
	extensionCache = "extension-cache"
	// extensionsEvery is how often a node removes copies of deleted extensions.
	extensionsEvery = 10 * time.Minute
)

// extensionFiles keeps the files of uploaded extensions.
type extensionFiles interface {
	library.ExtensionFiles
	archives.Extensions
}

// extensions opens the files of uploaded extensions. One daemon keeps them in its data
// directory. A node, which must have joined, keeps them in the catalogue, and first adds those
// that it kept before it was one.
func (d *daemon) extensions(ctx context.Context, log *slog.Logger) (extensionFiles, error) {
	alone := filepath.Join(d.dir, extensionFolder)
	signed := extension.NewSigned(d.catalogue.Extensions, d.keys.Derive("extension files"))
	if !d.node {
		return extension.OpenStore(alone, signed)
	}
	shared, err := extension.OpenShared(filepath.Join(d.dir, extensionCache), alone, signed)
	if err != nil {
		return nil, err
	}
	lost, err := shared.Adopt(ctx)
	if err != nil {
		log.Warn("uploaded extensions in the data directory could not be added to the catalogue; trying again later", "error", err)
	}
	if len(lost) > 0 {
		log.Warn("neither the catalogue nor this machine has the files of some uploaded extensions; start the node that has them, or upload them again", "sha256", lost)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { sweepExtensions(watching, shared, log) })
	d.closers = append(d.closers, func() error {
		stop()
		watch.Wait()
		return nil
	})
	return shared, nil
}

// sweepExtensions removes copies of extensions that other nodes have deleted, and adds what
// could not be added before, until ctx ends.
func sweepExtensions(ctx context.Context, shared *extension.Shared, log *slog.Logger) {
	next := time.NewTicker(extensionsEvery)
	defer next.Stop()
	for {
		if err := shared.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("copies of deleted extensions could not be removed; trying again later", "error", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		if _, err := shared.Adopt(ctx); err != nil && ctx.Err() == nil {
			log.Warn("uploaded extensions in the data directory could not be added to the catalogue; trying again later", "error", err)
		}
	}
}
