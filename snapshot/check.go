package snapshot

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
)

// CheckOptions control how [Vault.Check] checks a store.
type CheckOptions struct {
	// ReadData makes Check read every archive that a document names, down to the tar.
	ReadData bool
	// RecheckDelay is the time between the first look at a suspicious location and the
	// second. Only findings of the second look are reported, because another process may be
	// saving or deleting. 0 means one look, which is enough if no other process writes.
	RecheckDelay time.Duration
	// Grace is the minimum age, by the store's clock, at which an archive without a
	// document is reported. A save writes the archive before the document.
	Grace time.Duration
	// Document is called for every document of Stasis that parses and is in its place,
	// whatever the state of its archive. It may be nil.
	Document func(s Snapshot, written time.Time) error
	// Progress is called after each document, with the number of archives that the documents
	// so far name. It may be nil.
	Progress func(archives int)
}

// CheckResult is the result of [Vault.Check]: it counts what was checked.
type CheckResult struct {
	Locations int   // that hold something
	Snapshots int   // documents of Stasis, damaged ones included
	Others    int   // agents' documents
	Archives  int   // in the store
	Bytes     int64 // total size of the archives
	// Unclear counts documents that do not show which archive they name, and folders and
	// manifests that do not show which documents exist. If it is not 0, an archive without
	// a document may belong to one of them.
	Unclear int
}

// suspectsAtOnce limits how many findings wait for a second look.
const suspectsAtOnce = 1000

// Check checks everything in the store and reports what is wrong to found. It finds
// damaged or misplaced documents, and archives that are missing or have the wrong size.
// It finds a latest that is no copy of a valid document in the history. It also finds bad
// manifests, archives that no document names, and objects with unknown names. Check does
// not use the catalogue and writes nothing.
//
// Check holds about a hundred bytes for each named archive, plus the findings that wait
// for a second look. It returns the error of found, or an error if the store does not
// answer. A single unreadable object is a finding, not an error.
func (v *Vault) Check(ctx context.Context, o CheckOptions, found func(Finding) error) (CheckResult, error) {
	c := &checker{vault: v, o: o, found: found, named: map[digest]digest{}}
	err := c.locations(ctx)
	if err == nil {
		err = c.archives(ctx)
	}
	if ctx.Err() != nil {
		err = fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.check", "the check was cancelled")
	}
	return c.out, err
}

// Has reports whether the store has a snapshot's document. It does not read the document.
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
	out   CheckResult
	// named maps each archive that a document names to the hash of the payload that was
	// read and verified. The hash is zero if the payload was not read yet.
	named           map[digest]digest
	waiting         []suspect
	waitingFindings int  // findings that wait for the second look
	second          bool // this is the second look, which does not count
}

func (c *checker) isNamed(archive digest) bool {
	_, named := c.named[archive]
	return named
}

// suspect is a location in which the first look found something.
type suspect struct {
	location Location
	first    map[Finding]bool
}

func (c *checker) locations(ctx context.Context) error {
	for p := range foundEntries(ctx, c.vault.store) {
		var err error
		switch {
		case p.err != nil:
			c.out.Unclear++
			err = c.reportUnreadable(ctx, p.err, Finding{Key: p.key.path}, c.found)
		case p.unknown:
			err = c.unknown(ctx, p.key)
		default:
			c.out.Locations++
			err = c.suspect(ctx, p.location)
		}
		if err != nil {
			return err
		}
	}
	return c.checkAgain(ctx)
}

func unknownObject(key Key) Finding {
	return Finding{Kind: StrayObject, Key: key.path, What: "Stasis does not write objects with such a name"}
}

// unknown reports an object or a folder that is in no location.
func (c *checker) unknown(ctx context.Context, key Key) error {
	if advice := c.misplaced(ctx, key); advice != "" {
		return c.found(Finding{Kind: Misplaced, Key: key.path, What: advice})
	}
	return c.found(unknownObject(key))
}

// suspect checks a location for the first time.
func (c *checker) suspect(ctx context.Context, loc Location) error {
	if c.o.RecheckDelay == 0 {
		return c.location(ctx, loc, c.found)
	}
	first := map[Finding]bool{}
	err := c.location(ctx, loc, func(f Finding) error { first[f] = true; return nil })
	if err != nil || len(first) == 0 {
		return err
	}
	c.waiting = append(c.waiting, suspect{loc, first})
	if c.waitingFindings += len(first); c.waitingFindings < suspectsAtOnce {
		return nil
	}
	return c.checkAgain(ctx)
}

// checkAgain checks the waiting locations a second time, after RecheckDelay.
func (c *checker) checkAgain(ctx context.Context) error {
	if len(c.waiting) == 0 {
		return nil
	}
	timer := time.NewTimer(c.o.RecheckDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.second = true
	defer func() { c.second, c.waiting, c.waitingFindings = false, nil, 0 }()
	for _, s := range c.waiting {
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

// archives finds the archives that no document names.
func (c *checker) archives(ctx context.Context) error {
	for name, err := range names(ctx, c.vault.store, ArchiveFolder()) {
		if err != nil {
			return err
		}
		key, err := ArchiveKey(name)
		if err != nil {
			if err := c.found(unknownObject(Key{archives + "/" + name})); err != nil {
				return err
			}
			continue
		}
		st, err := c.vault.store.Stat(ctx, key)
		if fault.Is(err, fault.SnapshotNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			if err := c.reportUnreadable(ctx, err, Finding{Archive: name, Key: key.path}, c.found); err != nil {
				return err
			}
			continue
		}
		c.out.Archives++
		c.out.Bytes += st.Size
		if c.isNamed(digestOf(name)) || c.vault.opts.Now().Sub(st.Modified) < c.o.Grace {
			continue
		}
		err = c.found(Finding{Kind: ArchiveOrphaned, Archive: name, Key: key.path, What: "no document names this archive"})
		if err != nil {
			return err
		}
	}
	return nil
}

// reportUnreadable turns a store error about one object into a finding, as long as the store
// still answers.
func (c *checker) reportUnreadable(ctx context.Context, err error, f Finding, report func(Finding) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if down := c.vault.store.Health(ctx); down != nil {
		return errors.Join(err, down)
	}
	f.Kind, f.What = Unreadable, "the store cannot read it: "+fault.MessageOf(err)
	return report(f)
}
