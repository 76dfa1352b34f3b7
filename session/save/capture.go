package save

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/state"
)

// captureDeadline bounds the reading of a whole environment over CDP.
const captureDeadline = 30 * time.Second

// Capture reads the state of a running Chrome over CDP, after it has checked that the
// store works and has room. What could not be restored is save_failed. A frozen
// Chrome is thawed for it.
func (s *Saver) Capture(ctx context.Context, j Job) (state.Document, error) {
	wake, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	if err := j.Chrome.Wake(wake); err != nil {
		return state.Document{}, err
	}
	files, err := s.checkRoom(wake, j)
	if err != nil {
		return state.Document{}, err
	}
	return s.read(wake, j, files)
}

// checkRoom lists the environment's files and checks that the store works and has room
// for them. Chrome still writes, so the size is an estimate. It is too high rather
// than too low, for the store compresses.
func (s *Saver) checkRoom(ctx context.Context, j Job) ([]browser.File, error) {
	files, err := j.Chrome.Environment(ctx)
	if err != nil {
		return nil, err
	}
	need := browser.Size(files)
	if !j.Origins.All() || j.GoesOn {
		need *= 2 // they are copied first; the copy may lie on the store's disk
	}
	if err := s.cfg.Archives.CheckRoom(ctx, need); err != nil {
		return nil, err
	}
	// A store that is read-only or gone must be found before Chrome is closed.
	return files, s.cfg.Archives.Health(ctx)
}

// read reads the state, and refuses what could not be restored.
func (s *Saver) read(ctx context.Context, j Job, files []browser.File) (state.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	doc, err := j.Chrome.Capture(ctx)
	if err != nil {
		return doc, err
	}
	return doc, s.Fits(files, doc)
}
