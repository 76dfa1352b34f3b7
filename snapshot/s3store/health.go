package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

const (
	// probes is the folder of short-lived objects that test whether the store can be
	// written.
	probes = "tmp"
	// leftAge is the age at which the remains of an upload or a trial can be removed.
	leftAge = 24 * time.Hour
)

// FreeSpace implements [snapshot.Store]. S3 does not report a bucket's free space, but every
// archive goes through the spool first. So FreeSpace returns the spool's free space.
func (s *Store) FreeSpace(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "s3store.free_space", "")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.opts.Spool, &st); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "s3store.free_space", "")
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Health implements [snapshot.Store]. It writes and removes an object. A read-only store
// only lists.
func (s *Store) Health(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "s3store.health", "")
	}
	if s.opts.ReadOnly {
		return s.failure("health", s.checkAccess(ctx))
	}
	name := s.probeName()
	_, err := s.put(ctx, name, bodyOf([]byte("health")), condition{})
	if err == nil {
		err = s.remove(ctx, name)
	}
	return s.failure("health", err)
}

func (s *Store) probeName() string { return s.name(probes + "/" + rand.Text()) }

// checkAccess lists one object. The response names errors of bucket, credentials, region or
// clock; a response without a body would not.
func (s *Store) checkAccess(ctx context.Context) error {
	return s.try(ctx, func() error {
		for item := range s.core.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{Prefix: s.name(""), MaxKeys: 1}) {
			return item.Err
		}
		return ctx.Err()
	})
}

// tryConditions checks that the service keeps a second writer from overwriting the first.
// Some services accept the conditions and ignore them.
func (s *Store) tryConditions(ctx context.Context) (err error) {
	name := s.probeName()
	if _, err := s.put(ctx, name, bodyOf([]byte("first")), condition{absent: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove(ctx, name)) }()
	for _, c := range []condition{{absent: true}, {etag: "00000000000000000000000000000000"}} {
		done, err := s.put(ctx, name, bodyOf([]byte("second")), c)
		if err != nil {
			return err
		}
		if done {
			return fault.New(fault.StoreFailed, "s3store.open", noConditions)
		}
	}
	return nil
}

// sweep removes what was interrupted more than a day ago, below the store's prefix only.
// If the service does not allow that, the bucket needs a lifecycle rule.
func (s *Store) sweep(ctx context.Context) error {
	before := s.opts.Now().Add(-leftAge)
	err := s.sweepUploads(ctx, before)
	for item := range s.core.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{Prefix: s.name(probes + "/")}) {
		if err == nil {
			err = item.Err
		}
		if err != nil {
			break
		}
		if item.LastModified.Before(before) {
			err = s.remove(ctx, item.Key)
		}
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return nil
		}
	}
	return err
}

// sweepUploads drops the parts of unfinished archive uploads; no other object is large
// enough to have parts. Without a prefix, uploads of other programs may be in progress in
// the bucket.
func (s *Store) sweepUploads(ctx context.Context, before time.Time) error {
	prefix := s.name(snapshot.ArchiveFolder().String() + "/")
	for after, afterID := "", ""; ; {
		var page minio.ListMultipartUploadsResult
		err := s.try(ctx, func() (err error) {
			page, err = s.core.ListMultipartUploads(ctx, s.opts.Bucket, prefix, after, afterID, "", pageSize)
			return err
		})
		if err != nil {
			return err
		}
		for _, upload := range page.Uploads {
			if strings.HasPrefix(upload.Key, prefix) && upload.Initiated.Before(before) {
				s.abort(ctx, upload.Key, upload.UploadID)
			}
		}
		if !page.IsTruncated {
			return nil
		}
		after, afterID = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
