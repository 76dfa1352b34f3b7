package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// Rates limits the requests of keys and of their users.
type Rates interface {
	// TakeRequest counts a request and returns the states of the limits that apply to it. If
	// one is reached, the error is quota_exceeded, and nothing is counted. managing says that
	// the request is about keys or users.
	TakeRequest(ctx context.Context, c access.Caller, managing bool) ([]quota.Rate, error)
}

var _ Rates = (*session.Service)(nil)

// takeRequest counts a request, and tells the client what is left.
func takeRequest(rates Rates, c *call, managing bool) error {
	states, err := rates.TakeRequest(c.Request().Context(), c.caller, managing)
	setRateLimit(c.Response().Header(), states)
	c.audit.overRate = fault.Is(err, fault.QuotaExceeded)
	return err
}

// isManaging reports whether a route is about keys or users. A key with the right admin can
// always call it. A login check starts a Chrome, so it is none of them.
func isManaging(path string) bool {
	return path == "/v1/keys" || strings.HasPrefix(path, "/v1/keys/") || strings.HasPrefix(path, "/v1/users/") && !strings.HasSuffix(path, "/default/check")
}

// setRateLimit sets RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers,
// version 10), which are structured fields. The policies have the names user and key. q is
// how many requests w seconds allow, r how many are left, and t after how many seconds all
// of q are left again.
func setRateLimit(header http.Header, states []quota.Rate) {
	if len(states) == 0 {
		return
	}
	var policies, left []string
	for _, s := range states {
		policies = append(policies, fmt.Sprintf("%q;q=%d;w=1", s.Kind, s.Limit))
		left = append(left, fmt.Sprintf("%q;r=%d;t=%d", s.Kind, s.Left, int64(math.Ceil(s.Reset.Seconds()))))
	}
	header.Set("RateLimit-Policy", strings.Join(policies, ", "))
	header.Set("RateLimit", strings.Join(left, ", "))
}
