package api

import (
	"context"
	"maps"
	"mime"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/fault"
)

const (
	maxBody = 1 << 20 // bytes of a JSON body
	// maxParsing is how many JSON bodies larger than smallBody may be parsed at once: a
	// parsed body takes many times its length in memory.
	maxParsing = 4
	smallBody  = 64 << 10
)

// none is the query or the body of a call that takes no parameters.
type none struct{}

// bodyDecoder reads the bodies of requests.
type bodyDecoder struct {
	budget      *budget.Budget // of bodies in memory; nil: not counted
	parsing     chan struct{}  // holds one element for each large JSON body that is being parsed
	warnUnknown bool           // unknown names are ignored instead of refused
}

func newBodyDecoder(b *budget.Budget, warnUnknown bool) *bodyDecoder {
	return &bodyDecoder{budget: b, parsing: make(chan struct{}, maxParsing), warnUnknown: warnUnknown}
}

// decode decodes the JSON body into dst, a pointer to a struct that holds the defaults. An
// empty body counts as an empty object. It returns the unknown names that were ignored:
// none unless warnUnknown is set.
func (d *bodyDecoder) decode(c *call, dst any) (ignored []string, err error) {
	unknown, err := d.decodeLenient(c, dst)
	switch {
	case err != nil:
		return nil, err
	case d.warnUnknown:
		return paths(unknown), nil
	}
	return nil, unknownFields("field", unknown)
}

// decodeStrict is decode for a call that deletes. It refuses unknown names even if
// warnUnknown is set, because a misspelt dry_run must not delete.
func (d *bodyDecoder) decodeStrict(c *call, dst any) error {
	unknown, err := d.decodeLenient(c, dst)
	if err != nil {
		return err
	}
	return unknownFields("field", unknown)
}

// decodeLenient is decode, but leaves unknown names to the caller.
func (d *bodyDecoder) decodeLenient(c *call, dst any) (unknown []unknownField, err error) {
	data, err := d.read(c)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if err := checkJSONType(c.Request().Header.Get("Content-Type"), "application/json"); err != nil {
		return nil, err
	}
	return d.parse(c.Request().Context(), data, dst)
}

// parse decodes a JSON body into dst and returns the names that dst does not have. Only
// maxParsing large bodies are parsed at once, because a parsed body is larger than its
// text.
func (d *bodyDecoder) parse(ctx context.Context, data []byte, dst any) (unknown []unknownField, err error) {
	if len(data) > smallBody {
		select {
		case d.parsing <- struct{}{}:
			defer func() { <-d.parsing }()
		case <-ctx.Done():
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, "api.body", "the request was cancelled")
		}
	}
	value, err := parseJSON(ctx, data)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, mistyped(nil, reflect.ValueOf(dst).Elem(), "null")
	}
	var b binder
	err = b.bind(value, dst)
	return b.unknown, err
}

func (d *bodyDecoder) read(c *call) ([]byte, error) {
	data, err := d.readAll(c, c.Request().Body, maxBody)
	if err == nil && len(data) > maxBody {
		return nil, fault.New(fault.TooLarge, "api.body", "the body is larger than %d bytes", maxBody)
	}
	return data, bodyError("api.body", err)
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

// query decodes the query into dst, a pointer to a struct like those of bodies. Strings are
// taken literally; everything else is parsed as JSON.
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
			b.unknownIn(into.Type(), (*fieldPath)(nil).member(name))
			continue
		}
		value, err := queryValues(c.Request().Context(), name, values[name], field.Type)
		if err != nil {
			return err
		}
		recordGiven(into, name, value)
		if err := b.set((*fieldPath)(nil).member(name), value, into.FieldByIndex(field.Index), field.Tag.Get("empty") == "ok"); err != nil {
			return err
		}
	}
	return unknownFields("parameter", b.unknown)
}

// queryValues parses the values of a parameter. Several values are allowed only if the
// field is a list.
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
	if t.Kind() == reflect.String || t == reflect.TypeFor[unsupportedField]() {
		return text, nil
	}
	value, err := parseJSON(ctx, []byte(text))
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "api.query", "%s: must be %s", name, typeName(t))
	}
	return value, nil
}
