// Package s3store keeps snapshots in a bucket of an S3-compatible service.
//
// An object's name is the store's prefix and its key. A write is one conditional PUT, or
// for a large object a multipart upload with a conditional completion. So an object
// exists completely or not at all, and of two writers one wins. Each write has a random
// ID in the object's metadata. If a response was lost, the ID shows whether this write or
// another writer's succeeded. An archive's length is known only at its end, so its sealed
// bytes wait in an unlinked local file, which disappears with the process.
//
// The service must honour If-None-Match and If-Match on writes. Open tests that, and
// refuses a service that does not.
package s3store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Options say where the bucket is and which credentials to use.
type Options struct {
	Endpoint  string // host, or host:port
	Insecure  bool   // plain HTTP
	Bucket    string
	Prefix    string // of every object, without leading or trailing slash; may be empty
	Region    string // if empty, the service is asked
	HostStyle bool   // bucket.endpoint/key; otherwise endpoint/bucket/key

	// AccessKey and SecretKey are the credentials. Without them, AWS's environment
	// variables are used, then AWS's shared credentials file.
	AccessKey, SecretKey string

	// Spool is a folder for unsent uploads: one file for each upload, as large as its
	// archive.
	Spool string
	// ReadOnly changes nothing, not even at Open, and refuses every write.
	ReadOnly bool
	// Now is the clock.
	Now func() time.Time

	// PartSize is the largest object, in bytes, that is sent in one request, and the part
	// size of larger objects. 0 means 16 MiB. S3 requires at least 5 MiB.
	PartSize int64
	// Tries is how often a request with temporary failures is made; 0 means 8.
	Tries int
	// Wait is the longest wait before the second try. It doubles before each later try, up
	// to 5 s. 0 means 100 ms.
	Wait time.Duration
	// Stall is how long a connection may be without traffic; 0 means two minutes.
	Stall time.Duration
}

// prefixForm matches keys that every service accepts and no client must encode.
var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)

// Check checks the options without a request to the service. Errors are config.
func (o Options) Check() error {
	const op = "s3store.options"
	switch {
	case o.Endpoint == "" || strings.Contains(o.Endpoint, "/"):
		return fault.New(fault.Config, op, "--store: endpoint: must be a host or host:port")
	case o.Bucket == "":
		return fault.New(fault.Config, op, "--store: must name a bucket")
	case o.Prefix != "" && !prefixForm.MatchString(o.Prefix):
		return fault.New(fault.Config, op, "--store: the prefix must be made of letters, digits, _, - and ., with single slashes between its parts")
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return fault.New(fault.Config, op, "--s3-access-key, --s3-secret-key-file: give both or neither")
	}
	return nil
}

// complete fills in defaults.
func (o *Options) complete() {
	if o.PartSize == 0 {
		o.PartSize = 16 << 20
	}
	if o.Tries == 0 {
		o.Tries = 8
	}
	if o.Wait == 0 {
		o.Wait = 100 * time.Millisecond
	}
	if o.Stall == 0 {
		o.Stall = 2 * time.Minute
	}
}

// Store is a [snapshot.Store] in a bucket.
type Store struct {
	core      *minio.Core
	opts      Options
	transport *http.Transport
	once      sync.Once
}

var _ snapshot.Store = (*Store)(nil)

// Open opens the store. It checks that the bucket exists and that the credentials are
// valid. Unless the store is read-only, it checks that conditions are honoured, and
// removes what was interrupted more than a day ago. Errors are config, store_failed and
// store_full, and say what to correct.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.complete()
	transport, err := newTransport(!o.Insecure, o.Stall, o.Now)
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "s3store.open", "")
	}
	lookup := minio.BucketLookupPath
	if o.HostStyle {
		lookup = minio.BucketLookupDNS
	}
	core, err := minio.NewCore(o.Endpoint, &minio.Options{
		Creds: o.credentials(), Secure: !o.Insecure, Region: o.Region, BucketLookup: lookup,
		Transport: transport,
		// The store itself retries, because it must know whether an earlier try may have
		// succeeded.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "s3store.open", "the endpoint or region cannot be used")
	}
	s := &Store{core: core, opts: o, transport: transport}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// credentials returns the given credentials, or those that AWS's tools would use.
func (o Options) credentials() *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
}

// start makes Open's requests to the service.
func (s *Store) start(ctx context.Context) error {
	creds, err := s.core.GetCreds()
	if err == nil && creds.AccessKeyID == "" {
		return fault.New(fault.Config, "s3store.open", "there are no credentials: give --s3-access-key and --s3-secret-key-file, "+
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS's shared credentials file")
	}
	if err == nil {
		err = s.checkAccess(ctx)
	}
	if err == nil && !s.opts.ReadOnly {
		err = s.tryConditions(ctx)
	}
	if err == nil && !s.opts.ReadOnly {
		err = s.sweep(ctx)
	}
	return s.failure("open", err)
}

// name returns the object's full name in the bucket.
func (s *Store) name(path string) string {
	if s.opts.Prefix == "" {
		return path
	}
	return s.opts.Prefix + "/" + path
}

// check refuses an empty key and an ended ctx.
func check(ctx context.Context, op string, key snapshot.Key) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "s3store."+op, "")
	}
	if key == (snapshot.Key{}) {
		return fault.New(fault.StoreFailed, "s3store."+op, "the object's name is empty")
	}
	return nil
}

// checkWrite is check, and also refuses a read-only store.
func (s *Store) checkWrite(ctx context.Context, op string, key snapshot.Key) error {
	if s.opts.ReadOnly {
		return fault.New(fault.StoreFailed, "s3store."+op, "the store was opened read-only")
	}
	return check(ctx, op, key)
}

// Stat implements [snapshot.Store].
func (s *Store) Stat(ctx context.Context, key snapshot.Key) (snapshot.Stat, error) {
	if err := check(ctx, "stat", key); err != nil {
		return snapshot.Stat{}, err
	}
	var info minio.ObjectInfo
	err := s.try(ctx, func() (err error) {
		info, err = s.core.StatObject(ctx, s.opts.Bucket, s.name(key.String()), minio.StatObjectOptions{})
		return err
	})
	if err != nil {
		return snapshot.Stat{}, s.failure("stat", err)
	}
	return snapshot.Stat{Size: info.Size, Modified: info.LastModified}, nil
}

// Delete implements [snapshot.Store].
func (s *Store) Delete(ctx context.Context, key snapshot.Key) error {
	if err := s.checkWrite(ctx, "delete", key); err != nil {
		return err
	}
	return s.failure("delete", s.remove(ctx, s.name(key.String())))
}

func (s *Store) remove(ctx context.Context, name string) error {
	err := s.try(ctx, func() error {
		return s.core.RemoveObject(ctx, s.opts.Bucket, name, minio.RemoveObjectOptions{})
	})
	if codeOf(err) == minio.NoSuchKey { // S3 itself does not return this; some services do
		return nil
	}
	return err
}

// Close implements [snapshot.Store].
func (s *Store) Close() error {
	s.once.Do(s.transport.CloseIdleConnections)
	return nil
}

// readAll reads a small object, at most limit bytes of it, and returns its ETag.
func (s *Store) readAll(ctx context.Context, name string, limit int64) (body []byte, etag string, err error) {
	r, err := s.open(ctx, name)
	if err != nil {
		return nil, "", err
	}
	body, err = io.ReadAll(io.LimitReader(r, limit))
	return body, r.etag, errors.Join(err, r.Close())
}
