package save

import (
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// CheckFits returns save_failed for an environment that could be saved but not restored.
// It is called before Chrome is closed.
func (s *Saver) CheckFits(files []browser.File, doc state.Document) error {
	const op = "session.save"
	if n := browser.Size(files); s.cfg.Unpack.Bytes > 0 && n > s.cfg.Unpack.Bytes {
		return fault.New(fault.SaveFailed, op, "environment: %d bytes are too large; a restore unpacks at most %d (--max-unpack)", n, s.cfg.Unpack.Bytes)
	}
	if err := s.cfg.Unpack.CheckNames(func(yield func(string) bool) {
		for _, f := range files {
			if !yield(f.Name) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return fitsDocument(doc, snapshot.MaxKept-surveyReserve)
}

// surveyReserve is how many bytes of the document are reserved for what is known only after
// Chrome has closed: the names of what did not reach the disk.
const surveyReserve = 1 << 20

// fitsDocument returns save_failed if the state document has more than most bytes; a
// restore reads at most [snapshot.MaxKept]. If the strings alone are too long, the
// document is not encoded.
func fitsDocument(doc state.Document, most int) error {
	n := doc.MinJSONSize()
	if n <= most {
		n = len(profiles.JSON(doc))
	}
	if n > most {
		return fault.New(fault.SaveFailed, "session.save", "state document: %d bytes are too large; a save takes at most %d", n, most)
	}
	return nil
}
