// Package apitest holds requests and answers against openapi.yaml, so that
// tests through any HTTP client keep the wire and its description together.
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

// Validator is an http.RoundTripper that checks each exchange. An answer that
// succeeded must have had a request that the description allows; every answer
// must be one that it lists; a path that it does not list must be not_found.
// Objects in answers must hold nothing that it does not name.
type Validator struct {
	base   http.RoundTripper
	router routers.Router
	report func(error)
}

// New returns a Validator over base (nil: http.DefaultTransport). report is
// called for each exchange that breaks the description, from the goroutine of
// the request.
func New(base http.RoundTripper, report func(error)) (*Validator, error) {
	router, err := described()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Validator{base: base, router: router, report: report}, nil
}

// described finds the description of a request. To read openapi.yaml takes far
// longer than to check an exchange, so all validators of a process share it.
var described = sync.OnceValues(func() (routers.Router, error) {
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		closeObject(schema.Value)
	}
	return gorillamux.NewRouter(doc)
})

// Document loads openapi.yaml and checks that it is sound, examples included.
func Document() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(stasis.OpenAPI())
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
}

// closeObject refuses unlisted names of an object that lists any: a client may
// meet names that are new to it, but a test must not.
func closeObject(s *openapi3.Schema) {
	if len(s.Properties) > 0 && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Has == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
}

// RoundTrip sends the request and checks both ways; the answer's body is
// handed on whole.
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
	if !streams(answer) { // whose end is not waited for
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
			return fmt.Errorf("accepted, and not as described: %w", err)
		}
	}
	// The filter has no decoder for pages and pictures; their type it checks.
	media := answer.Header.Get("Content-Type")
	options.ExcludeResponseBody = strings.HasPrefix(media, "image/") || strings.HasPrefix(media, "text/html") || streams(answer)
	return openapi3filter.ValidateResponse(copied.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.StatusCode, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(got)), Options: options,
	})
}

// streams says whether an answer is a stream of events.
func streams(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
}

func checkUnlisted(answer *http.Response, got []byte) error {
	var e struct{ Code string }
	if answer.StatusCode == http.StatusNotFound && json.Unmarshal(got, &e) == nil && e.Code == "not_found" {
		return nil
	}
	return fmt.Errorf("the route is not described")
}

// drain reads a body whole and puts it back.
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
