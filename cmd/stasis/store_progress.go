//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/stasisd/stasis/snapshot"
)

// archives begins to show how many archives of a store are done. It counts them only if that is
// shown.
func (f progressFlag) archives(ctx context.Context, store snapshot.Store) (*progressbar.ProgressBar, error) {
	total := 0
	const page = 1000
	for after, more := "", f.visible(); more; {
		names, err := store.List(ctx, snapshot.ArchiveFolder(), page, after)
		if err != nil {
			return nil, err
		}
		total += len(names)
		if more = len(names) == page; more {
			after = names[page-1]
		}
	}
	return f.items("archives", total, progressbar.OptionThrottle(redraw)), nil
}

// showCopy returns a function that shows the progress of a copy.
func showCopy(bar *progressbar.ProgressBar) func(snapshot.CopyResult) {
	return func(c snapshot.CopyResult) {
		bar.Describe(fmt.Sprintf("archives, %s written", humanize.Bytes(uint64(c.Bytes)))) //nolint:gosec // it is positive
		_ = bar.Set(c.Archives + c.SameArchives)
	}
}
