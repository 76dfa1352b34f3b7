package main

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressFlag is the flag of verbs that show on standard error how far they are: in one line,
// which is erased at the end, and only on a terminal.
type progressFlag struct {
	Quiet bool `help:"Show no progress." env:"-"`
}

// visible reports whether progress is shown.
func (f progressFlag) visible() bool { return !f.Quiet && term.IsTerminal(int(os.Stderr.Fd())) }

// bytes begins to show a number of bytes and their rate. total -1 means that it is unknown.
func (f progressFlag) bytes(what string, total int64) *progressbar.ProgressBar {
	return f.bar(what, total, progressbar.OptionShowBytes(true), progressbar.OptionThrottle(redraw))
}

// redraw is the time between two drawings of a bar that changes very often.
const redraw = 100 * time.Millisecond

// items begins to show a number of items and their rate.
func (f progressFlag) items(what string, total int, options ...progressbar.Option) *progressbar.ProgressBar {
	return f.bar(what, int64(total), append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString(what))...)
}

// bar returns a bar that the caller removes with erase. Its errors do not matter.
func (f progressFlag) bar(what string, total int64, options ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append(options,
		progressbar.OptionSetVisibility(f.visible()), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionFullWidth(),
		progressbar.OptionSetRenderBlankState(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0))...) // otherwise a goroutine of the bar never ends
}

// erase removes a bar for good.
func erase(bar *progressbar.ProgressBar) {
	_ = bar.Exit()
	_ = bar.Clear()
}

// countedFile is a file whose reads move a bar.
type countedFile struct {
	*progressbar.Reader
	info fs.FileInfo
}

// Stat says to [client.Client.Send] how long the file is.
func (f countedFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// counted begins to show how much of a file is read.
func (f progressFlag) counted(what string, file *os.File) (countedFile, *progressbar.ProgressBar, error) {
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New(file.Name() + ": is a folder, not a file")
	}
	if err != nil {
		return countedFile{}, nil, err
	}
	total := int64(-1)
	if info.Mode().IsRegular() {
		total = info.Size()
	}
	bar := f.bytes(what, total)
	reader := progressbar.NewReader(file, bar)
	return countedFile{&reader, info}, bar, nil
}
