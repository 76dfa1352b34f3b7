package auditlog

import (
	"context"
	"log/slog"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/wire"
)

// Sink is a place outside the catalogue that gets every entry, as a line of JSON.
type Sink interface {
	Name() string
	// Last returns the last entry that the sink has; one with number 0 if it has none, or
	// does not know.
	Last() profiles.AuditEntry
	// Write adds lines, each with its line feed. After an error none of them counts as
	// written.
	Write(lines [][]byte) error
	Close() error
}

// readAtOnce is how many entries are read from the catalogue for a sink that is behind.
const readAtOnce = 500

// follower gives a sink what the catalogue has. It reads the catalogue, so a sink that was
// away, or a daemon that was killed, leaves no gap.
type follower struct {
	sink    Sink
	store   profiles.AuditStore
	log     *slog.Logger
	at      int64                 // number of the last entry that the sink has
	next    []profiles.AuditEntry // those after it, if they are at hand
	behind  bool                  // the sink does not have all entries
	failing bool
}

// newFollower makes the follower of a sink. A sink with entries of this log gets those after
// them, any other one those after head.
func newFollower(ctx context.Context, s Sink, head profiles.AuditEntry, cfg Config) (*follower, error) {
	f := &follower{sink: s, store: cfg.Store, log: cfg.Log, at: head.Number}
	last := s.Last()
	if last.Number == 0 {
		return f, nil
	}
	same, _, err := cfg.Store.AuditPage(ctx, profiles.AuditFilter{StartAfter: last.Number - 1, OldestFirst: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if last.Number > head.Number || len(same) > 0 && same[0].Number == last.Number && same[0].Hash != last.Hash {
		cfg.Log.Warn("the audit file has entries that the catalogue does not have; if the catalogue was restored from a backup, move the file away, because it now continues with other entries",
			"file", s.Name(), "last", last.Number, "catalogue", head.Number)
		return f, nil
	}
	f.at = last.Number
	return f, nil
}

// take receives a batch that the catalogue has accepted.
func (f *follower) take(batch []profiles.AuditEntry) {
	if len(batch) > 0 && batch[0].Number == f.at+int64(len(f.next))+1 && len(f.next)+len(batch) <= maxQueued {
		f.next = append(f.next, batch...)
	}
}

// catchUp writes what the sink does not have yet. If it fails, a later call tries again.
func (f *follower) catchUp(ctx context.Context, head profiles.AuditEntry) {
	for f.at < head.Number {
		f.behind = true
		if len(f.next) == 0 {
			page, _, err := f.store.AuditPage(ctx, profiles.AuditFilter{StartAfter: f.at, OldestFirst: true, Limit: readAtOnce})
			if err != nil || len(page) == 0 {
				return // the catalogue's failure is logged where it is written
			}
			f.next = page
		}
		if err := f.sink.Write(lines(f.next)); err != nil {
			if !f.failing {
				f.log.Error("cannot write the audit log to its second place; trying again", "to", f.sink.Name(), "error", err)
			}
			f.failing = true
			return
		}
		if f.failing {
			f.log.Info("the audit log is written again to its second place", "to", f.sink.Name())
		}
		f.at, f.next, f.failing = f.next[len(f.next)-1].Number, nil, false
	}
	f.behind = false
}

func (f *follower) close() {
	if f.behind {
		f.log.Error("the second place of the audit log lacks entries that the catalogue has; the next start adds them to a file", "to", f.sink.Name(), "last", f.at)
	}
	if err := f.sink.Close(); err != nil {
		f.log.Warn("the second place of the audit log could not be closed", "to", f.sink.Name(), "error", err)
	}
}

// lines returns entries as lines of JSON, as they are in answers.
func lines(entries []profiles.AuditEntry) [][]byte {
	all := make([][]byte, 0, len(entries))
	for _, e := range entries {
		text, err := wire.Marshal(e)
		if err != nil {
			panic(err) // texts and numbers
		}
		all = append(all, append(text, '\n'))
	}
	return all
}
