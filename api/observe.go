package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/api/live"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

const (
	requestIDHeader   = "X-Request-Id"
	retryAfterSeconds = "5"
	rateRetryAfter    = "1" // a quota of one request in a second allows the next then
)

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// errorAnswer is the body of every error answer.
type errorAnswer struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	RequestID string     `json:"request_id"`
	// Quota is the quota that a quota_exceeded is about.
	Quota *quota.Exceeded `json:"quota,omitempty"`
}

// observer is the middleware around all handlers.
type observer struct {
	now  func() time.Time
	log  *slog.Logger
	slow slowdown
}

// observe gives each request its ID, turns panics and errors into answers, and logs one
// line. The line has the route's pattern and never the URL, which may contain tickets and
// user IDs.
func (o *observer) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := o.now()
		id := c.Request().Header.Get(requestIDHeader)
		if !requestIDPattern.MatchString(id) {
			id = newRequestID()
		}
		header := c.Response().Header()
		header.Set(requestIDHeader, id)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		err := o.guard(next, c)
		if err != nil {
			o.fail(err, c)
		}
		o.logRequest(c, id, err, o.now().Sub(start).Milliseconds())
		return nil
	}
}

// guard turns a panic into an error.
func (o *observer) guard(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // it is the very value
			panic(p) // a handler aborts its connection
		} else if p != nil {
			o.log.Error("a request failed: panic in the daemon", "request_id", c.Response().Header().Get(requestIDHeader), "value", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "api.panic", "")
		}
	}()
	return next(c)
}

// fail writes an error as the answer, unless an answer has begun.
func (o *observer) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	err = asFault(err, c.Request())
	code := fault.CodeOf(err)
	header := c.Response().Header()
	switch code {
	case fault.Unauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="stasis"`)
	case fault.TooManySessions, fault.TooManyImports, fault.TooManyClients, fault.TooManyViewers, fault.TooManyLinks, fault.TooManyRequests, fault.QuotaExceeded, fault.ShuttingDown, fault.CatalogueUnavailable, fault.NodeLost, fault.NodeUnavailable:
		header.Set("Retry-After", retryAfterSeconds)
	case fault.TooManyAttempts:
		header.Set("Retry-After", attemptsRetryAfter)
	}
	answer := errorAnswer{Code: code, Message: fault.MessageOf(err), RequestID: header.Get(requestIDHeader)}
	var exceeded quota.Exceeded
	if errors.As(err, &exceeded) {
		answer.Quota = &exceeded
		if exceeded.Name == quota.Requests {
			header.Set("Retry-After", rateRetryAfter)
		}
	}
	o.slow.wait(c.Request().Context(), code, exceeded)
	write := func() error { return c.JSON(statusOf(code), answer) }
	if c.Path() == livePath && acceptsPage(c.Request()) {
		write = func() error { return live.WriteError(c.Response(), statusOf(code), noLiveView(answer)) }
	}
	if err := write(); err != nil {
		o.log.Debug("an answer could not be written; the client has probably disconnected", "request_id", answer.RequestID, "error", err)
	}
}

// acceptsPage reports whether a request comes from a browser's tab.
func acceptsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// noLiveView says for people why there is no live view.
func noLiveView(a errorAnswer) string {
	switch a.Code {
	case fault.Unauthorized, fault.SessionNotFound, fault.SessionNotRunning:
		return "The session has ended, or this link is no longer valid."
	}
	return "There is no live view: " + a.Message
}

// asFault translates the router's own errors. For a wrong method the router has set the
// header Allow.
func asFault(err error, r *http.Request) error {
	var routing *echo.HTTPError
	if !errors.As(err, &routing) {
		return err
	}
	switch routing.Code {
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "api.route", "no route has this path; see /openapi.yaml")
	case http.StatusMethodNotAllowed:
		return fault.New(fault.MethodNotAllowed, "api.route", "this path does not have the method %s; the header Allow lists its methods", r.Method)
	default:
		return err
	}
}

func (o *observer) logRequest(c echo.Context, id string, err error, milliseconds int64) {
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", routeOf(c)),
		slog.Int("status", c.Response().Status), slog.Int64("duration_ms", milliseconds), slog.String("request_id", id),
	}
	level := slog.LevelInfo
	if err != nil {
		code := fault.CodeOf(asFault(err, c.Request()))
		attrs = append(attrs, slog.String("code", string(code)))
		gone := c.Request().Context().Err() != nil && errors.Is(err, context.Canceled)
		slow := c.Response().Committed && errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errTooSlow)
		if statusOf(code) >= http.StatusInternalServerError && !gone && !slow {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", err.Error()))
		}
	}
	o.log.LogAttrs(context.WithoutCancel(c.Request().Context()), level, "request", attrs...)
}

// routeOf returns the pattern of the route, or "none": an unknown path may contain
// anything.
func routeOf(c echo.Context) string {
	if c.Path() == consoleRoute {
		return consoleRoute
	}
	for _, r := range c.Echo().Routes() {
		if r.Path == c.Path() {
			return r.Path
		}
	}
	return "none"
}

func newRequestID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil.String() // without randomness; the request matters more than its ID
	}
	return id.String()
}
