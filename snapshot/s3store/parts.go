package s3store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// mostParts is the largest number of parts that S3 allows.
	mostParts = 10_000
	// abortDeadline limits the cleanup after a failed upload.
	abortDeadline = time.Minute
)

// putParts is put in several parts. Nothing is visible before the request that completes
// the upload, and that request carries the condition. minio's own multipart upload sends
// no conditions.
func (s *Store) putParts(ctx context.Context, name, id string, b body, c condition) (done bool, err error) {
	var upload string
	err = s.try(ctx, func() (err error) {
		upload, err = s.core.NewMultipartUpload(ctx, s.opts.Bucket, name, minio.PutObjectOptions{UserMetadata: map[string]string{writeID: id}})
		return err
	})
	if err != nil {
		return false, err
	}
	defer func() {
		if !done {
			s.abort(ctx, name, upload)
		}
	}()
	parts, err := s.sendParts(ctx, name, upload, b)
	if err != nil {
		return false, err
	}
	return s.settle(ctx, name, id, c, func() error {
		_, err := s.core.CompleteMultipartUpload(ctx, s.opts.Bucket, name, upload, parts, c.options())
		return err
	})
}

// sendParts sends the parts in order, each with its hash.
func (s *Store) sendParts(ctx context.Context, name, upload string, b body) ([]minio.CompletePart, error) {
	size := max(s.opts.PartSize, (b.Size+mostParts-1)/mostParts)
	var parts []minio.CompletePart
	for from := int64(0); from < b.Size; from += size {
		length := min(size, b.Size-from)
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(b, from, length)); err != nil {
			return nil, err
		}
		o := minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum.Sum(nil)), DisableContentSha256: true}
		var part minio.ObjectPart
		err := s.try(ctx, func() (err error) {
			// Each try gets its own reader, because net/http may still read from the reader
			// of a failed try.
			piece := io.NewSectionReader(b, from, length)
			part, err = s.core.PutObjectPart(ctx, s.opts.Bucket, name, upload, len(parts)+1, piece, length, o)
			return err
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
	}
	return parts, nil
}

// abort drops the parts of an upload that did not become an object. A later Open drops
// those that cannot be dropped now.
func (s *Store) abort(ctx context.Context, name, upload string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortDeadline)
	defer cancel()
	_ = s.try(ctx, func() error { return s.core.AbortMultipartUpload(ctx, s.opts.Bucket, name, upload) })
}
