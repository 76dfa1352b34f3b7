//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/stasisd/stasis/snapshot"
)

// copyProgress shows the progress of a copy on standard error: as a bar on a terminal, else
// as a line for each tenth of the archives.
type copyProgress struct {
	bar   *progressbar.ProgressBar // nil: lines, or nothing
	quiet bool
	total int // archives in the source, at the start
	tenth int // the last tenth that was printed
}

// newCopyProgress counts the source's archives.
func newCopyProgress(ctx context.Context, from snapshot.Store, quiet bool) (*copyProgress, error) {
	p := &copyProgress{quiet: quiet}
	const page = 1000
	for after := ""; ; {
		names, err := from.List(ctx, snapshot.ArchiveFolder(), page, after)
		if err != nil {
			return nil, err
		}
		p.total += len(names)
		if len(names) < page {
			break
		}
		after = names[len(names)-1]
	}
	if p.total > 0 && !quiet && term.IsTerminal(int(os.Stderr.Fd())) {
		p.bar = progressbar.NewOptions(p.total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("archives"),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p, nil
}

// show prints the progress after each step of the copy.
func (p *copyProgress) show(c snapshot.CopyResult) {
	n := min(c.Archives+c.SameArchives, p.total)
	switch tenth := 10 * n / max(p.total, 1); {
	case p.quiet:
	case p.bar != nil:
		p.bar.Describe(fmt.Sprintf("archives, %d MB written", c.Bytes/1_000_000))
		_ = p.bar.Set(n) // a bar that cannot be drawn does not matter
	case tenth > p.tenth:
		p.tenth = tenth
		_, _ = fmt.Fprintf(os.Stderr, "%d of %d archives, %d MB written\n", n, p.total, c.Bytes/1_000_000)
	}
}

// refused prints an object that is not copied.
func (p *copyProgress) refused(f snapshot.Finding) error {
	var cleared error
	if p.bar != nil {
		cleared = p.bar.Clear()
	}
	_, err := fmt.Fprintf(os.Stderr, "not copied: %s: %s: %s\n", f.Kind, printable(f.Key), f.What)
	return errors.Join(cleared, err)
}

// done removes the bar.
func (p *copyProgress) done() error {
	if p.bar == nil {
		return nil
	}
	return p.bar.Clear()
}
