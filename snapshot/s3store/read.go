package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Open implements [snapshot.Store]. If the connection is lost during a read, a new one
// continues at the same position. If the object has changed by then, the read fails.
func (s *Store) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	r, err := s.open(ctx, s.name(key.String()))
	if err != nil {
		return nil, s.failure("open", err)
	}
	return r, nil
}

// reader streams one object.
type reader struct {
	store *Store
	ctx   context.Context // of the whole read; a reader has no other way to receive one
	name  string
	etag  string
	body  io.ReadCloser
	at    int64 // bytes read so far
	size  int64
	fails int   // failed tries since the last byte
	err   error // the error that ended the read
}

func (s *Store) open(ctx context.Context, name string) (*reader, error) {
	r := &reader{store: s, ctx: ctx, name: name}
	return r, s.try(ctx, r.connect)
}

// connect requests the object from the reader's position.
func (r *reader) connect() error {
	var o minio.GetObjectOptions
	if r.etag != "" {
		if err := o.SetMatchETag(r.etag); err != nil {
			return err
		}
	}
	if r.at > 0 {
		if err := o.SetRange(r.at, 0); err != nil {
			return err
		}
	}
	body, info, header, err := r.store.core.GetObject(r.ctx, r.store.opts.Bucket, r.name, o)
	if err != nil {
		return err
	}
	if r.at > 0 && !strings.HasPrefix(header.Get("Content-Range"), fmt.Sprintf("bytes %d-", r.at)) {
		return errors.Join(errors.New("the service sent a different range of the object than requested"), body.Close())
	}
	if r.etag == "" {
		if info.ETag == "" || info.Size < 0 {
			return errors.Join(errors.New("the service did not say which object it sent, or how long it is"), body.Close())
		}
		r.etag, r.size = info.ETag, info.Size
	}
	r.body = body
	return nil
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 {
			r.fails = 0
		}
		switch {
		case r.at == r.size:
			r.err = io.EOF
		case err != nil:
			r.err = r.resume(err)
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
	return 0, r.err
}

// resume replaces a lost connection.
func (r *reader) resume(lost error) error {
	_ = r.body.Close() // it has failed already
	r.body = nil
	for lost != nil {
		r.fails++
		if !isTemporary(lost) || !r.store.wait(r.ctx, r.fails) {
			break
		}
		lost = r.connect()
	}
	switch codeOf(lost) {
	case minio.PreconditionFailed, minio.NoSuchKey:
		return fault.Wrap(errChanged, fault.StoreFailed, "s3store.read", "")
	}
	return r.store.failure("read", lost)
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	return r.store.failure("close", r.body.Close())
}
