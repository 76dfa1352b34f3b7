package save

import (
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Fits refuses what could be saved and not be restored, before Chrome is
// closed for it.
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

// surveyed is room, in bytes, for what is only known when Chrome is closed: the
// names of what did not reach the disk.
const surveyed = 1 << 20

// fitsDocument refuses a state document that is larger than some bytes, of which
// a restore takes [snapshot.MaxKept]. One with that much in it is not encoded to
// learn its size.
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
