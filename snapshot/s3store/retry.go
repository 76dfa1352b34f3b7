package s3store

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// longestWait is the longest wait between two tries.
const longestWait = 5 * time.Second

// try makes a request and retries while its failure may be temporary. The request must be
// safe to repeat.
func (s *Store) try(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || !isTemporary(err) || !s.wait(ctx, n) {
			return err
		}
	}
}

// wait waits after the nth try and reports whether there is another try. Its length is
// random, so that clients that failed together do not retry together.
func (s *Store) wait(ctx context.Context, n int) bool {
	if n >= s.opts.Tries {
		return false
	}
	longest := min(s.opts.Wait<<(n-1), longestWait)
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// isTemporary reports whether a failure may be temporary: the service said so, or there
// was no response. It is unknown whether the request was done. wait detects a cancelled
// caller. A dial timeout is not the caller's error, although net reports it as
// context.DeadlineExceeded.
func isTemporary(err error) bool {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		switch answer.Code {
		case "SlowDown", "SlowDownRead", "SlowDownWrite", "InternalError", "RequestTimeout", "ServiceUnavailable",
			"Throttling", "ThrottlingException", "RequestLimitExceeded", "ConditionalRequestConflict", "OperationAborted":
			return true
		}
		switch answer.StatusCode {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var untrusted *tls.CertificateVerificationError
	return !errors.As(err, &untrusted) && !errors.Is(err, http.ErrSchemeMismatch)
}

// codeOf returns the service's error code, or "" if there was no response.
func codeOf(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}
