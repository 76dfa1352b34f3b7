package save

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// captureDeadline limits how long one reading of the state over CDP may take.
const captureDeadline = 30 * time.Second

// Capture reads the state of a running Chrome over CDP; it thaws a frozen Chrome first.
// Before that it checks that the store works and has enough space. An environment that
// could be saved but not restored is the error save_failed.
func (s *Saver) Capture(ctx context.Context, j Job) (state.Document, error) {
	wake, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	if err := j.Chrome.Wake(wake); err != nil {
		return state.Document{}, err
	}
	files, err := s.checkSpace(wake, j)
	if err != nil {
		return state.Document{}, err
	}
	return s.read(wake, j, files)
}

// checkSpace lists the environment's files and checks that the store works and has space
// for them. Chrome is still writing, so the size is an estimate. It errs on the high
// side, because the store compresses.
func (s *Saver) checkSpace(ctx context.Context, j Job) ([]browser.File, error) {
	files, err := j.Chrome.Environment(ctx)
	if err != nil {
		return nil, err
	}
	need := browser.Size(files)
	if !j.Origins.All() || j.Continues {
		need *= 2 // they are copied first, perhaps to the store's disk
	}
	err = s.cfg.Archives.CheckSpace(ctx, need)
	if fault.Is(err, fault.StoreFull) && s.cfg.Undo.Clear() { // what was discarded gives way
		err = s.cfg.Archives.CheckSpace(ctx, need)
	}
	if err != nil {
		return nil, err
	}
	// A store that is read-only or missing must be found before Chrome is closed.
	return files, s.cfg.Archives.Health(ctx)
}

// read reads the state. A state that could not be restored is an error; see
// [Saver.CheckFits].
func (s *Saver) read(ctx context.Context, j Job, files []browser.File) (state.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	doc, err := j.Chrome.Capture(ctx)
	if err != nil {
		return doc, err
	}
	return doc, s.CheckFits(files, doc)
}
