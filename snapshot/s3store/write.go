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

// writeID is the metadata that tells one write from another, as a header's
// name is spelled in Go.
const writeID = "Stasis-Write"

// condition is what must hold for a write to be done; the zero one always does.
type condition struct {
	absent bool   // nothing stands there
	etag   string // this object stands there
}

// body is the bytes of one write.
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

// Swap implements [snapshot.Store]. It reads, compares, and writes over what
// it has read.
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

// put writes an object, in one piece or in parts; done is false, and nothing
// was changed, when the condition does not hold.
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

// options are those of a request that is to be done only if the condition
// holds. The bytes' hash is sent with the request, and signed; the service
// refuses others.
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

// settle makes the request that makes a write visible, as often as it takes to
// know what became of it. When the service refuses the condition, or does not
// know the upload any more, that may be because an earlier try was done and
// its answer was lost; whose the object is that stands there tells.
func (s *Store) settle(ctx context.Context, name, id string, c condition, send func() error) (done bool, err error) {
	doubt := false // an earlier try may have been done
	for n := 1; ; n++ {
		err := send()
		if err == nil {
			return true, nil
		}
		refused, pass := c.refused(err), passes(err)
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
			// Another's object may stand on ours, whose writer has seen it.
			return false, fault.Wrap(err, fault.StoreFailed, "s3store.swap",
				"the answer to a write was lost, and another wrote after it; whether it was done is not known")
		}
		return false, nil
	}
}

// refused reports that the condition does not hold.
func (c condition) refused(err error) bool {
	switch codeOf(err) {
	case minio.PreconditionFailed:
		return true
	case minio.NoSuchKey: // there is nothing that could be the object named
		return c.etag != ""
	}
	return false
}

// wrote reports whether what stands under a name is of the write id.
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
