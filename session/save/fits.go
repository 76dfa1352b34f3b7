package save

import (
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Fits is save_failed for an environment that could be saved but not restored. It is
// checked before Chrome is closed.
func (s *Saver) Fits(files []browser.File, doc state.Document) error {
	const op = "session.save"
	if n := browser.Size(files); s.cfg.Unpack.Bytes > 0 && n > s.cfg.Unpack.Bytes {
		return fault.New(fault.SaveFailed, op, "the environment has %d bytes, more than the %d that a restore takes (--max-unpack)", n, s.cfg.Unpack.Bytes)
	}
	if err := s.cfg.Unpack.Lists(func(yield func(string) bool) {
		for _, f := range files {
			if !yield(f.Name) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return fitsDocument(doc, snapshot.MaxKept-surveyed)
}

// surveyed is how many bytes of the document are reserved for what is known only when
// Chrome is closed: the names of what did not reach the disk.
const surveyed = 1 << 20

// fitsDocument is save_failed for a state document of more than most bytes; a restore
// takes [snapshot.MaxKept]. A document whose strings alone are too long is not encoded
// to learn its size.
func fitsDocument(doc state.Document, most int) error {
	n := doc.Strings()
	if n <= most {
		n = len(profiles.JSON(doc))
	}
	if n > most {
		return fault.New(fault.SaveFailed, "session.save", "what its pages keep has %d bytes as a document, more than the %d that a save takes", n, most)
	}
	return nil
}
