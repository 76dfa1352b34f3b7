package snapshot

import (
	"bytes"
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// CopyOptions say who hears of a copy.
type CopyOptions struct {
	// Found is told of what is not copied: what is damaged in the source, and what
	// the destination has otherwise. Required.
	Found func(Finding) error
	// Progress is told after each document, and while archives' bytes are written;
	// nil: nobody.
	Progress func(Copied)
}

// Copied counts what a copy did.
type Copied struct {
	Archives      int   // written
	Documents     int   // written
	Bytes         int64 // written, of archives
	SameArchives  int   // were there already
	SameDocuments int
	Refused       int // of what Found was told
}

// Copy brings every snapshot of a store into another, with what agents keep there:
// for each document first its archive, then itself; then the location's manifest,
// and its latest last. So the destination is in order at each moment, and a copy
// that was cut off anywhere is carried on by another one. What is written is read
// back; an archive must be, there and here, the payload that its document binds.
//
// What is there already and the same is passed over. Another object under the same
// key is told and stays, but for latest and manifest, which become the source's
// where that one's is not the older: a copy back from a backup takes nothing away.
// Archives that no document names, and what is damaged, are not copied. The
// source is only read; an error is that of a store, and more can be copied later.
func Copy(ctx context.Context, from, to Store, o CopyOptions) (Copied, error) {
	c := &copier{from: from, to: to, o: o, same: map[digest]digest{}}
	for p := range places(ctx, from) {
		err := p.err
		if err == nil && !p.stray {
			err = c.location(ctx, p.location)
		}
		if err != nil {
			return c.out, c.stopped(ctx, err)
		}
	}
	return c.out, c.stopped(ctx, nil)
}

// copier is one run of Copy.
type copier struct {
	from, to Store
	o        CopyOptions
	out      Copied
	same     map[digest]digest // archives that are in both, with their payload's hash
}

func (c *copier) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.copy", "the copy was given up; another one carries on")
	}
	return err
}

func (c *copier) refuse(f Finding) error {
	c.out.Refused++
	return c.o.Found(f)
}

func (c *copier) progress() {
	if c.o.Progress != nil {
		c.o.Progress(c.out)
	}
}

// location copies what is in a location's folder. latest is read first: what it
// holds is in the history that is listed after, also while a daemon saves.
func (c *copier) location(ctx context.Context, loc Location) error {
	latestKey, e1 := loc.LatestKey()
	manifestKey, e2 := loc.ManifestKey()
	folder, e3 := loc.HistoryFolder()
	if err := errors.Join(e1, e2, e3); err != nil {
		return err
	}
	latest, err := readWhole(ctx, c.from, latestKey)
	if err != nil {
		return err
	}
	for name, err := range names(ctx, c.from, folder) {
		if err != nil {
			return err
		}
		id, ok := documentID(name)
		if !ok {
			continue
		}
		if err := c.document(ctx, loc, id); err != nil {
			return err
		}
		c.progress()
	}
	manifest, err := readWhole(ctx, c.from, manifestKey)
	if err != nil {
		return err
	}
	if manifest != nil {
		if err := c.move(ctx, Finding{Location: loc, Key: manifestKey.path}, manifestKey, manifest, newerManifest(manifest)); err != nil {
			return err
		}
	}
	return c.latest(ctx, loc, latestKey, latest)
}

// document copies one document, and its archive before.
func (c *copier) document(ctx context.Context, loc Location, id string) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	body, err := readWhole(ctx, c.from, key)
	if err != nil || body == nil { // nil: deleted meanwhile
		return err
	}
	f := Finding{Kind: DocumentDamaged, Location: loc, Snapshot: id, Key: key.path}
	if loc.ScopeID == environments {
		doc, err := parseDocument(body, loc, id)
		if err != nil {
			return c.refuseDocument(f, err)
		}
		f.Archive = doc.Data.Archive.ID
		ok, err := c.archive(ctx, key, doc.Data.Archive, f)
		if !ok || err != nil {
			return err
		}
	} else if err := checkAgentDocument(body, loc.Scope); err != nil {
		return c.refuseDocument(f, err)
	}
	created, err := c.to.Create(ctx, key, body)
	if err != nil {
		return err
	}
	there, err := readWhole(ctx, c.to, key)
	switch {
	case err != nil:
		return err
	case bytes.Equal(there, body) && created:
		c.out.Documents++
	case bytes.Equal(there, body):
		c.out.SameDocuments++
	case created:
		return c.notAsWritten(ctx, key)
	default:
		f.Kind, f.What = OtherObject, "the destination has another document there, which stays"
		return c.refuse(f)
	}
	return nil
}

func (c *copier) refuseDocument(f Finding, err error) error {
	if fault.Is(err, fault.Unsupported) {
		f.Kind = VersionUnknown
	}
	f.What = fault.MessageOf(err)
	return c.refuse(f)
}

// notAsWritten takes back what the destination has not kept as it was written.
func (c *copier) notAsWritten(ctx context.Context, key Key) error {
	return errors.Join(
		fault.New(fault.StoreFailed, "snapshot.copy", "%s did not read back as it was written", key),
		c.to.Delete(context.WithoutCancel(ctx), key))
}
