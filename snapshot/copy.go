package snapshot

import (
	"bytes"
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// CopyOptions hold the callbacks of [Copy].
type CopyOptions struct {
	// Found is called for everything that is not copied: objects damaged in the source, and
	// objects that differ in the destination. Required.
	Found func(Finding) error
	// Progress is called after each document, and while an archive's bytes are written. It
	// may be nil.
	Progress func(CopyResult)
}

// CopyResult is the result of [Copy].
type CopyResult struct {
	Archives      int   // written
	Documents     int   // written
	Bytes         int64 // written, of archives
	SameArchives  int   // already in the destination
	SameDocuments int
	Refused       int // findings
}

// Copy copies every snapshot from one store to another, with the agents' documents. For
// each document it copies the archive first, then the document. The location's manifest
// follows, and its latest comes last. So the destination is consistent at every moment,
// and a later copy continues one that was interrupted. Copy reads back what it writes. An
// archive must have the payload that its document binds, in both stores.
//
// Equal objects in the destination are skipped. A different object under the same key is
// reported and stays. Only latest and manifest are overwritten, unless the destination's
// one is newer: a copy back from a backup removes nothing. Archives that no document
// names, and damaged objects, are not copied. Copy only reads the source. It returns only
// store errors, and it can be called again after one.
func Copy(ctx context.Context, from, to Store, o CopyOptions) (CopyResult, error) {
	c := &copier{from: from, to: to, o: o, same: map[digest]digest{}}
	for p := range foundEntries(ctx, from) {
		err := p.err
		if err == nil && !p.unknown {
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
	out      CopyResult
	same     map[digest]digest // archives that are in both stores, with their payload's hash
}

func (c *copier) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.copy", "the copy was cancelled; run it again to continue")
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

// location copies a location's folder. It reads latest first: the history is listed
// later, so it has the snapshot of that latest even if a daemon saves meanwhile.
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
		id, ok := loc.documentID(name)
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
		if err := c.replaceObject(ctx, Finding{Location: loc, Key: manifestKey.path}, manifestKey, manifest, keepNewerManifest(manifest)); err != nil {
			return err
		}
	}
	return c.latest(ctx, loc, latestKey, latest)
}

// document copies one document, after its archive.
func (c *copier) document(ctx context.Context, loc Location, id string) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	body, err := readWhole(ctx, c.from, key)
	if err != nil || body == nil { // nil: deleted since it was listed
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
		f.Kind, f.What = OtherObject, "the destination keeps a different document under this name"
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

// notAsWritten deletes an object that the destination did not store as it was written.
func (c *copier) notAsWritten(ctx context.Context, key Key) error {
	return errors.Join(
		fault.New(fault.StoreFailed, "snapshot.copy", "%s was written, but reading it back returned other bytes", key),
		c.to.Delete(context.WithoutCancel(ctx), key))
}
