// Package apitest checks requests and answers against openapi.yaml, so that tests with any
// HTTP client keep the API and its description consistent.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	stasis "github.com/stasisd/stasis"
)

// Validator is an http.RoundTripper that checks each exchange. The request of a successful
// answer must be one that the description allows. Every answer must be one that it lists; a
// path that it does not list must be not_found. Objects in answers must have no member that
// it does not name.
type Validator struct {
	base   http.RoundTripper
	router routers.Router
	report func(error)
}

// New returns a Validator over base (nil: http.DefaultTransport). It calls report for each
// exchange that violates the description, from the goroutine of the request.
func New(base http.RoundTripper, report func(error)) (*Validator, error) {
	router, err := sharedRouter()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Validator{base: base, router: router, report: report}, nil
}

// sharedRouter returns the router of the description. Reading openapi.yaml takes far longer
// than checking an exchange, so all validators of a process share it.
var sharedRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		closeObject(schema.Value)
	}
	return gorillamux.NewRouter(doc)
})

// Document loads openapi.yaml and validates it, examples included.
func Document() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(stasis.OpenAPI())
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
}

// closeObject refuses undescribed members of an object that describes any. A client may
// meet names that are new to it, but a test must not.
func closeObject(s *openapi3.Schema) {
	if len(s.Properties) > 0 && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Has == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
}

// RoundTrip sends the request and checks it and the answer. The body of the answer stays
// readable.
func (v *Validator) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := drain(&r.Body)
	if err != nil {
		return nil, err
	}
	answer, err := v.base.RoundTrip(r)
	if err != nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	var got []byte
	if !isEventStream(answer) { // the end of a stream may never come
		if got, err = drain(&answer.Body); err != nil {
			return nil, err
		}
	}
	if err := v.check(r, sent, answer, got); err != nil {
		v.report(fmt.Errorf("%s %s: %d: %w", r.Method, r.URL.Path, answer.StatusCode, err))
	}
	return answer, nil
}

func (v *Validator) check(r *http.Request, sent []byte, answer *http.Response, got []byte) error {
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(sent))
	route, params, err := v.router.FindRoute(copied)
	if err != nil {
		return checkUnlisted(answer, got)
	}
	options := &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true, // an unlisted status is an error
	}
	input := &openapi3filter.RequestValidationInput{Request: copied, PathParams: params, Route: route, Options: options}
	if answer.StatusCode < http.StatusBadRequest {
		if err := openapi3filter.ValidateRequest(copied.Context(), input); err != nil {
			return fmt.Errorf("the request was accepted but is not as described: %w", err)
		}
	}
	// The filter has no decoder for pages and pictures. It still checks their type.
	media := answer.Header.Get("Content-Type")
	options.ExcludeResponseBody = strings.HasPrefix(media, "image/") || strings.HasPrefix(media, "text/html") || isEventStream(answer)
	return openapi3filter.ValidateResponse(copied.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.StatusCode, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(got)), Options: options,
	})
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
}

func checkUnlisted(answer *http.Response, got []byte) error {
	var e struct{ Code string }
	if json.Unmarshal(got, &e) == nil {
		switch {
		case answer.StatusCode == http.StatusNotFound && e.Code == "not_found",
			answer.StatusCode == http.StatusMethodNotAllowed && e.Code == "method_not_allowed" && answer.Header.Get("Allow") != "":
			return nil
		}
	}
	return fmt.Errorf("the route is not described")
}

// drain reads a whole body and replaces it with a copy.
func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil || *body == http.NoBody {
		return nil, nil
	}
	data, err := io.ReadAll(*body)
	if err != nil {
		return nil, err
	}
	err = (*body).Close()
	*body = io.NopCloser(bytes.NewReader(data))
	return data, err
}
