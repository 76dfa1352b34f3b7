package api

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
)

// stuck is a daemon whose store never answers.
type stuck struct{}

func (stuck) Ready(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A load balancer learns in time that the store does not answer.
func TestReadyDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &operationsHandler{readiness: stuck{}}
		err := h.ready(&call{Context: echo.New().NewContext(httptest.NewRequest("GET", "/readyz", nil), httptest.NewRecorder())})
		if waited := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || waited != readyDeadline {
			t.Errorf("%v after %s", err, waited)
		}
	})
}
