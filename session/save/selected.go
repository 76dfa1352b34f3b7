package save

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// selectFiles returns the files that a save with a selection of origins keeps. It copies
// them to a scratch folder and filters the copy. The profile stays unchanged, because a
// save that fails reopens it. lost is what was filtered out. Without a selection,
// selectFiles returns the profile's own files and no scratch folder.
func (s *Saver) selectFiles(ctx context.Context, j Job, files []browser.File) (scratch string, kept []browser.File, lost []state.Component, err error) {
	const op = "session.select"
	if j.Origins.All() {
		return "", files, nil, nil
	}
	if scratch, err = os.MkdirTemp(filepath.Dir(j.Dir.Profile()), "selected"); err != nil {
		return "", nil, nil, fault.Wrap(err, fault.StoreFailed, op, "a folder for the selected files could not be created")
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(scratch) // leftovers are removed with the run directory
		}
	}()
	for _, f := range files {
		if err := copyFile(filepath.Join(scratch, filepath.FromSlash(f.Name)), f.Path); err != nil {
			return "", nil, nil, fault.Wrap(err, fault.StoreFailed, op, "the environment's files could not be copied")
		}
	}
	if lost, err = s.Filter(ctx, scratch, j.Origins); err != nil {
		return "", nil, nil, err
	}
	kept, err = s.cfg.Datadirs.Select(ctx, scratch)
	return scratch, kept, lost, err
}

// Filter calls [browser.Filter]. It first waits until fewer than maxSurveys profiles are
// being read.
func (s *Saver) Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	if selection.All() {
		return nil, nil
	}
	select {
	case s.surveySlots <- struct{}{}:
		defer func() { <-s.surveySlots }()
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "session.filter", "the profile could not be filtered in time: too many profiles were being read")
	}
	return browser.Filter(ctx, userDataDir, selection)
}

func copyFile(to, from string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	_, err = io.Copy(out, in)
	return err
}
