package s3store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/fault"
)

// advice maps a service's error codes to what the operator should do.
var advice = map[string]string{
	"NoSuchBucket":       "the store's bucket does not exist: create it, or correct --store",
	"InvalidBucketName":  "the store's bucket cannot have that name: correct --store",
	"InvalidAccessKeyId": unknownKey,
	"XAdminUserNotFound": unknownKey, // versitygw
	"SignatureDoesNotMatch": "the secret key does not belong to the access key: correct --s3-secret-key-file, " +
		"AWS_SECRET_ACCESS_KEY or the shared credentials file",
	"InvalidToken": "the session token is not valid: correct AWS_SESSION_TOKEN or the shared credentials file",
	"ExpiredToken": "the session token has expired: get a new one",
	"AccessDenied": "the credentials lack a right: they must be able to list, read, write and delete below the store's prefix",
	"RequestTimeTooSkewed": "the clocks of this machine and of the store's service differ too much: set this machine's clock, " +
		"for example by NTP",
	"AuthorizationHeaderMalformed":       wrongRegion,
	"InvalidRegion":                      wrongRegion,
	"IllegalLocationConstraintException": wrongRegion,
	"PermanentRedirect":                  wrongRegion,
	"NotImplemented":                     noConditions,
	"QuotaExceeded":                      full,
	"InsufficientStorage":                full,
	"StorageFull":                        full,
	"XMinioStorageFull":                  full,
	"XMinioAdminBucketQuotaExceeded":     full,
}

const (
	unknownKey = "the store's service does not know the access key: correct --s3-access-key, AWS_ACCESS_KEY_ID " +
		"or the shared credentials file"
	wrongRegion  = "the store's bucket is in another region: give it as region= in --store"
	full         = "the store's bucket or account is full: raise its quota, or delete snapshots"
	noConditions = "the store's service does not support conditional writes (If-None-Match, If-Match). Without them, two " +
		"writers would overwrite each other: use another service, or a newer version of it"
)

// errChanged is the error of a reader whose object was replaced or deleted.
var errChanged = errors.New("the object was replaced or deleted while it was read, and the connection was lost")

// failure gives an error its code, and adds advice if there is any. Of the credentials,
// minio's messages contain only the access key.
func (s *Store) failure(op string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	op = "s3store." + op
	where := fmt.Errorf("bucket %s at %s: %w", s.opts.Bucket, s.opts.Endpoint, err)
	var response minio.ErrorResponse
	var network *net.OpError
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &response):
		return responseError(op, response, where)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StoreFull, op, "the disk that holds uploads until they are sent is full: free space there")
	case errors.As(err, new(*fs.PathError)):
		return fault.Wrap(err, fault.StoreFailed, op, "an upload cannot be written to this machine's disk before it is sent")
	case errors.As(err, &untrusted):
		return fault.Wrap(where, fault.StoreFailed, op, "the certificate of the store's endpoint is not trusted: correct the certificate, or name "+
			"the file of its authority in SSL_CERT_FILE")
	case errors.Is(err, http.ErrSchemeMismatch): // the client used TLS and the server does not
		return fault.Wrap(where, fault.StoreFailed, op, "the store's endpoint has no TLS: change endpoint=https:// to endpoint=http:// in --store")
	case errors.As(err, &name), errors.As(err, &network) && network.Op == "dial":
		return fault.Wrap(where, fault.StoreFailed, op, "the store's endpoint cannot be reached: check endpoint= in --store, name resolution and the network")
	}
	return fault.Wrap(where, fault.StoreFailed, op, "")
}

// responseError is failure for a response of the service.
func responseError(op string, response minio.ErrorResponse, where error) error {
	if response.Code == minio.NoSuchKey {
		return fault.Wrap(where, fault.SnapshotNotFound, op, "")
	}
	code, message := fault.StoreFailed, advice[response.Code]
	if message == full || response.StatusCode == http.StatusInsufficientStorage {
		code, message = fault.StoreFull, full
	}
	return fault.Wrap(fmt.Errorf("%w (%s, HTTP status %d)", where, response.Code, response.StatusCode), code, op, message)
}
