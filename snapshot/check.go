package snapshot

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
)

// CheckOptions say how a store is checked.
type CheckOptions struct {
	// ReadData reads every archive that a document names, down to the tar.
	ReadData bool
	// Settle is how long after the first look at something that is not right the
	// second one comes, and only what both have seen is told: a save or delete of
	// another process may be under way. 0 where nobody else writes: one look.
	Settle time.Duration
	// Grace is how old an archive must be, by the store's clock, to be told as
	// one that no document names: a save writes it first.
	Grace time.Duration
	// Document is told of every document of this daemon's own that parses and is
	// in its place, whatever became of its archive; nil: nobody.
	Document func(s Snapshot, written time.Time) error
}

// Checked counts what a check looked at.
type Checked struct {
	Locations int   // that hold something
	Snapshots int   // this daemon's documents, sound or not
	Others    int   // agents' documents
	Archives  int   // stored
	Bytes     int64 // of them
	// Unclear is how many documents do not tell which archive is theirs, and how
	// many folders and manifests do not tell which documents there are. While
	// there is one, an archive that no document names may be its.
	Unclear int
}

// suspectsAtOnce bounds how many findings wait for a second look.
const suspectsAtOnce = 1000

// Check looks at everything in the store and tells what is wrong: documents that
// are damaged or in another's place, archives that are missing or have another
// size, a latest that is no copy of a sound document in its history, manifests,
// archives that no document names, and objects under names that nothing has. It
// knows nothing of the catalogue and writes nothing.
//
// It holds about a hundred bytes for each archive that is named, and the findings
// that wait. An error is found's own, or that the store does not answer; one
// object that cannot be read is a finding.
func (v *Vault) Check(ctx context.Context, o CheckOptions, found func(Finding) error) (Checked, error) {
	c := &checker{vault: v, o: o, found: found, named: map[digest]digest{}}
	err := c.locations(ctx)
	if err == nil {
		err = c.archives(ctx)
	}
	if ctx.Err() != nil {
		err = fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.check", "the check was given up")
	}
	return c.out, err
}

// Has reports whether a snapshot's document is in the store; it is not read.
func (v *Vault) Has(ctx context.Context, loc Location, id string) (bool, error) {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return false, err
	}
	_, err = v.store.Stat(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return false, nil
	}
	return err == nil, err
}

type digest [32]byte

func digestOf(id string) (d digest) {
	_, _ = hex.Decode(d[:], []byte(id)) // its form was checked
	return d
}

// checker is one run of Check.
type checker struct {
	vault *Vault
	o     CheckOptions
	found func(Finding) error
	out   Checked
	// named are the archives that documents name, with the hash of the payload
	// that was read and found sound; none yet: zero.
	named  map[digest]digest
	waits  []suspect
	held   int  // findings that wait
	second bool // this is the second look, which counts nothing
}

func (c *checker) isNamed(archive digest) bool {
	_, named := c.named[archive]
	return named
}

// suspect is a location at which the first look found something.
type suspect struct {
	location Location
	first    map[Finding]bool
}

func (c *checker) locations(ctx context.Context) error {
	for p := range places(ctx, c.vault.store) {
		var err error
		switch {
		case p.err != nil:
			c.out.Unclear++
			err = c.troubled(ctx, p.err, Finding{Key: p.key.path}, c.found)
		case p.stray:
			err = c.found(strayAt(p.key))
		default:
			c.out.Locations++
			err = c.suspect(ctx, p.location)
		}
		if err != nil {
			return err
		}
	}
	return c.lookAgain(ctx)
}

func strayAt(key Key) Finding {
	return Finding{Kind: StrayObject, Key: key.path, What: "nothing has a name like this"}
}

// suspect looks at a location for the first time.
func (c *checker) suspect(ctx context.Context, loc Location) error {
	if c.o.Settle == 0 {
		return c.location(ctx, loc, c.found)
	}
	first := map[Finding]bool{}
	err := c.location(ctx, loc, func(f Finding) error { first[f] = true; return nil })
	if err != nil || len(first) == 0 {
		return err
	}
	c.waits = append(c.waits, suspect{loc, first})
	if c.held += len(first); c.held < suspectsAtOnce {
		return nil
	}
	return c.lookAgain(ctx)
}

// lookAgain looks at the locations that wait for a second time, once things have
// had the time to settle.
func (c *checker) lookAgain(ctx context.Context) error {
	if len(c.waits) == 0 {
		return nil
	}
	settled := time.NewTimer(c.o.Settle)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.second = true
	defer func() { c.second, c.waits, c.held = false, nil, 0 }()
	for _, s := range c.waits {
		err := c.location(ctx, s.location, func(f Finding) error {
			if !s.first[f] {
				return nil
			}
			return c.found(f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// archives looks for those that no document names.
func (c *checker) archives(ctx context.Context) error {
	for name, err := range names(ctx, c.vault.store, ArchiveFolder()) {
		if err != nil {
			return err
		}
		key, err := ArchiveKey(name)
		if err != nil {
			if err := c.found(strayAt(Key{archives + "/" + name})); err != nil {
				return err
			}
			continue
		}
		st, err := c.vault.store.Stat(ctx, key)
		if fault.Is(err, fault.SnapshotNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			if err := c.troubled(ctx, err, Finding{Archive: name, Key: key.path}, c.found); err != nil {
				return err
			}
			continue
		}
		c.out.Archives++
		c.out.Bytes += st.Size
		if c.isNamed(digestOf(name)) || c.vault.opts.Now().Sub(st.Modified) < c.o.Grace {
			continue
		}
		err = c.found(Finding{Kind: ArchiveOrphaned, Archive: name, Key: key.path, What: "no document names it"})
		if err != nil {
			return err
		}
	}
	return nil
}

// troubled makes an error of the store a finding about one object, as long as the
// store itself still answers.
func (c *checker) troubled(ctx context.Context, err error, f Finding, tell func(Finding) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if down := c.vault.store.Health(ctx); down != nil {
		return errors.Join(err, down)
	}
	f.Kind, f.What = Unreadable, "the store does not give it: "+fault.MessageOf(err)
	return tell(f)
}
