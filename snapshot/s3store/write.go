package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// writeID is the metadata key that identifies a write, in Go's canonical header form.
const writeID = "Stasis-Write"

// condition must hold for a write to be done; the zero condition always holds.
type condition struct {
	absent bool   // no object has the name
	etag   string // the object with this ETag has the name
}

// body holds the bytes of one write.
type body struct {
	io.ReaderAt
	snapshot.Sum
}

func bodyOf(b []byte) body {
	return body{bytes.NewReader(b), snapshot.Sum{Size: int64(len(b)), SHA256: sha256.Sum256(b)}}
}

// Create implements [snapshot.Store].
func (s *Store) Create(ctx context.Context, key snapshot.Key, b []byte) (bool, error) {
	if err := s.checkWrite(ctx, "create", key); err != nil {
		return false, err
	}
	created, err := s.put(ctx, s.name(key.String()), bodyOf(b), condition{absent: true})
	return created, s.failure("create", err)
}

// Swap implements [snapshot.Store]. It reads and compares, then overwrites only the
// object that it has read.
func (s *Store) Swap(ctx context.Context, key snapshot.Key, old, b []byte) (bool, error) {
	if err := s.checkWrite(ctx, "swap", key); err != nil {
		return false, err
	}
	name := s.name(key.String())
	now, etag, err := s.readAll(ctx, name, int64(len(old))+1)
	if codeOf(err) == minio.NoSuchKey {
		return false, nil
	}
	if err != nil {
		return false, s.failure("swap", err)
	}
	if !bytes.Equal(now, old) {
		return false, nil
	}
	swapped, err := s.put(ctx, name, bodyOf(b), condition{etag: etag})
	return swapped, s.failure("swap", err)
}

// put writes an object, in one request or in parts. If the condition does not hold, done
// is false and nothing changes.
func (s *Store) put(ctx context.Context, name string, b body, c condition) (done bool, err error) {
	id := rand.Text()
	if b.Size > s.opts.PartSize {
		return s.putParts(ctx, name, id, b, c)
	}
	return s.settle(ctx, name, id, c, func() error {
		o := c.options()
		o.UserMetadata = map[string]string{writeID: id}
		_, err := s.core.PutObject(ctx, s.opts.Bucket, name, io.NewSectionReader(b, 0, b.Size), b.Size,
			"", hex.EncodeToString(b.SHA256[:]), o)
		return err
	})
}

// options returns the options of a request that depends on the condition. The request
// carries the bytes' signed hash, and the service refuses other bytes.
func (c condition) options() minio.PutObjectOptions {
	o := minio.PutObjectOptions{DisableContentSha256: true}
	if c.absent {
		o.SetMatchETagExcept("*")
	}
	if c.etag != "" {
		o.SetMatchETag(c.etag)
	}
	return o
}

// settle makes the request that makes a write visible, until its result is known. The
// service may refuse the condition, or no longer know the upload, because an earlier try
// was done and its response lost. Then the write ID of the stored object decides.
func (s *Store) settle(ctx context.Context, name, id string, c condition, send func() error) (done bool, err error) {
	doubt := false // an earlier try may have been done
	for n := 1; ; n++ {
		err := send()
		if err == nil {
			return true, nil
		}
		refused, pass := c.refused(err), isTemporary(err)
		if pass {
			doubt = true
			if s.wait(ctx, n) {
				continue
			}
		}
		if ctx.Err() != nil || !refused && !doubt {
			return false, err
		}
		ours, lookErr := s.wrote(ctx, name, id)
		switch {
		case ours || lookErr != nil:
			return ours, lookErr
		case !refused:
			return false, err
		case doubt && c.etag != "":
			// Another writer may have seen our object and overwritten it.
			return false, fault.Wrap(err, fault.StoreFailed, "s3store.swap",
				"the response to a write was lost, and another process wrote after it; it is unknown whether the write was done")
		}
		return false, nil
	}
}

// refused reports whether the error means that the condition does not hold.
func (c condition) refused(err error) bool {
	switch codeOf(err) {
	case minio.PreconditionFailed:
		return true
	case minio.NoSuchKey: // no object exists that could match the ETag
		return c.etag != ""
	}
	return false
}

// wrote reports whether the object under a name comes from the write id.
func (s *Store) wrote(ctx context.Context, name, id string) (bool, error) {
	var info minio.ObjectInfo
	err := s.try(ctx, func() (err error) {
		info, err = s.core.StatObject(ctx, s.opts.Bucket, name, minio.StatObjectOptions{})
		return err
	})
	if codeOf(err) == minio.NoSuchKey {
		return false, nil
	}
	return err == nil && info.UserMetadata[writeID] == id, err
}
