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
	// trials is the folder of objects that are there for a moment, to try
	// whether the store can be written.
	trials = "tmp"
	// leftAge is when what an upload or a trial left is nobody's any more.
	leftAge = 24 * time.Hour
)

// Room implements [snapshot.Store]. What a bucket may hold S3 does not tell;
// but every archive goes through the spool first.
func (s *Store) Room(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "s3store.room", "")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.opts.Spool, &st); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "s3store.room", "")
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Health implements [snapshot.Store] by writing and removing an object; where
// nothing may be written, by listing.
func (s *Store) Health(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "s3store.health", "")
	}
	if s.opts.ReadOnly {
		return s.failure("health", s.reach(ctx))
	}
	name := s.trial()
	_, err := s.put(ctx, name, bodyOf([]byte("health")), condition{})
	if err == nil {
		err = s.remove(ctx, name)
	}
	return s.failure("health", err)
}

func (s *Store) trial() string { return s.name(trials + "/" + rand.Text()) }

// reach lists one object: what is wrong with bucket, credentials, region or
// clock is told in the answer to that, and not where an answer has no body.
func (s *Store) reach(ctx context.Context) error {
	return s.try(ctx, func() error {
		for item := range s.core.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{Prefix: s.name(""), MaxKeys: 1}) {
			return item.Err
		}
		return ctx.Err()
	})
}

// tryConditions makes sure that the service keeps a second writer from
// writing over the first. Some accept the conditions and do not look at them.
func (s *Store) tryConditions(ctx context.Context) (err error) {
	name := s.trial()
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

// sweep clears what broke off over a day ago, below the store's prefix only.
// Where the service does not let it, a rule of the bucket has to do it.
func (s *Store) sweep(ctx context.Context) error {
	before := s.opts.Now().Add(-leftAge)
	err := s.sweepUploads(ctx, before)
	for item := range s.core.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{Prefix: s.name(trials + "/")}) {
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

// sweepUploads drops the parts of uploads of archives; nothing else is large enough
// to have some. Without a prefix, others' may be in progress beside them.
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
