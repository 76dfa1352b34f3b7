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

// longestWait is the most that is waited between two tries.
const longestWait = 5 * time.Second

// try makes a request, again and again while its failure may pass. The request
// must do no harm when it is done twice.
func (s *Store) try(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || !passes(err) || !s.wait(ctx, n) {
			return err
		}
	}
}

// wait waits after the nth try, and reports whether there is to be another.
// How long is left to chance, so that those who failed together do not come
// back together.
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

// passes reports whether a failure may be another's next time: the service
// said so, or there was no answer. Whether the request was done is not known. A
// caller who gives up is seen by wait: a dial that takes too long is no error of
// the caller's, though net makes it a context.DeadlineExceeded.
func passes(err error) bool {
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

// codeOf is the service's word for a failure, "" where it did not answer.
func codeOf(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}
