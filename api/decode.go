package api

import (
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stasisd/stasis/fault"
)

const (
	maxBody      = 1 << 20          // bytes of a JSON body
	bodyPatience = 30 * time.Second // for a JSON body to arrive
)

// none is the query or the body of a call that takes nothing.
type none struct{}

// body decodes the JSON body into dst, a pointer to a struct that holds the
// defaults; an empty body is an empty object. It returns the names that were
// passed over, which are none unless the daemon was told to warn only.
func (s *Server) body(c *call, dst any) (ignored []string, err error) {
	data, err := s.readBody(c)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if err := checkJSONType(c.Request().Header.Get("Content-Type"), "application/json"); err != nil {
		return nil, err
	}
	value, err := parseJSON(c.Request().Context(), data)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, mistyped(nil, reflect.ValueOf(dst).Elem(), "null")
	}
	var b binder
	if err := b.bind(value, dst); err != nil {
		return nil, err
	}
	if s.warnUnknown {
		return b.unknown, nil
	}
	return nil, unknownFields("field", b.unknown)
}

func (s *Server) readBody(c *call) ([]byte, error) {
	control := http.NewResponseController(c.Response())
	// A client that sends its body a byte at a time must not hold a handler.
	// Writers of tests know no deadlines; then there is none.
	limited := control.SetReadDeadline(s.now().Add(bodyPatience)) == nil
	data, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxBody))
	if limited {
		err = errors.Join(err, control.SetReadDeadline(time.Time{}))
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, fault.New(fault.TooLarge, "api.body", "the body is larger than %d bytes", maxBody)
	}
	return data, fault.Wrap(err, fault.InvalidRequest, "api.body", "the body could not be read")
}

func checkJSONType(header string, allowed ...string) error {
	if header == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(header); err != nil || !slices.Contains(allowed, media) {
		return fault.New(fault.InvalidRequest, "api.body", "Content-Type: must be %s, not %s", strings.Join(allowed, " or "), quoted(header))
	}
	return nil
}

// query decodes the query into dst, a pointer to a struct like those of
// bodies: strings as they are, numbers and booleans by their JSON text,
// anything else as JSON.
func (c *call) query(dst any) error {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return fault.New(fault.InvalidRequest, "api.query", "the query is malformed")
	}
	var b binder
	into := reflect.ValueOf(dst).Elem()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, known := b.field(into.Type(), name)
		if !known {
			b.unknown = append(b.unknown, name)
			continue
		}
		value, err := queryValues(c.Request().Context(), name, values[name], field.Type)
		if err != nil {
			return err
		}
		if err := b.set((*fieldPath)(nil).member(name), value, into.FieldByIndex(field.Index), field.Tag.Get("empty") == "ok"); err != nil {
			return err
		}
	}
	return unknownFields("parameter", b.unknown)
}

// queryValues takes a parameter's values: several are a list, where the field is one.
func queryValues(ctx context.Context, name string, texts []string, t reflect.Type) (any, error) {
	if t.Kind() != reflect.Slice {
		if len(texts) > 1 {
			return nil, fault.New(fault.InvalidRequest, "api.query", "%s: given twice", name)
		}
		return queryValue(ctx, name, texts[0], t)
	}
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		value, err := queryValue(ctx, name, text, t.Elem())
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func queryValue(ctx context.Context, name, text string, t reflect.Type) (any, error) {
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.InvalidRequest, "api.query", "%s: is not UTF-8", name)
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.String || t == reflect.TypeFor[unbuilt]() {
		return text, nil
	}
	value, err := parseJSON(ctx, []byte(text))
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "api.query", "%s: must be %s", name, wanted(t))
	}
	return value, nil
}
