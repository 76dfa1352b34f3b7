package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stasisd/stasis/fault"
)

const (
	// maxDepth limits how deep a body may nest; no wire type comes near it.
	maxDepth = 32
	// maxName limits a name in a body, in bytes.
	maxName = 1024
	// maxValues limits how many values a body holds: each takes many times its
	// bytes in memory. The longest lists are those of notes.
	maxValues = 20_000
	// lookEvery is how many values are read between two looks at the context.
	lookEvery = 1024
)

// object is a JSON object in the order of its text. The other JSON values are
// string, json.Number, bool, nil and []any.
type object []member

type member struct {
	name  string
	value any
}

// parseJSON reads exactly one JSON value. Unlike encoding/json it keeps the
// order of names and refuses duplicate ones, long ones, too many values, invalid
// UTF-8, and whatever follows the value. Errors are invalid_request and name the field or
// the byte. Its time and memory grow with the length of data alone; when ctx
// ends it stops.
func parseJSON(ctx context.Context, data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, fault.New(fault.InvalidRequest, "api.json", "the body is not UTF-8")
	}
	p := jsonReader{ctx: ctx, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	value, err := p.value(nil)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.InvalidRequest, "api.json", "not JSON: more text after top-level value, at byte %d", p.dec.InputOffset())
	}
	return value, nil
}

// jsonReader reads the values of one body.
type jsonReader struct {
	ctx  context.Context // of the request; the reader ends with it
	dec  *jsontext.Decoder
	read int // values so far
}

// value reads a value whose path is at.
func (p *jsonReader) value(at *fieldPath) (any, error) {
	switch p.read++; {
	case p.read > maxValues:
		return nil, fault.New(fault.InvalidRequest, "api.json", "the body holds more than %d values, at byte %d", maxValues, p.dec.InputOffset())
	case p.read%lookEvery == 0 && p.ctx.Err() != nil:
		return nil, fault.Wrap(p.ctx.Err(), fault.Timeout, "api.json", "the request was given up")
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return nil, p.malformed(at, err)
	}
	switch token.Kind() {
	case '{', '[':
		if p.dec.StackDepth() > maxDepth+1 {
			return nil, fault.New(fault.InvalidRequest, "api.json", "nested deeper than %d levels, at byte %d", maxDepth, p.dec.InputOffset())
		}
		if token.Kind() == '{' {
			return p.object(at)
		}
		return p.array(at)
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 'n':
		return nil, nil
	default:
		return token.Bool(), nil
	}
}

func (p *jsonReader) array(at *fieldPath) (any, error) {
	items := []any{}
	for p.dec.PeekKind() != ']' {
		item, err := p.value(at.index(len(items)))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := p.dec.ReadToken()
	return items, p.malformed(at, err)
}

func (p *jsonReader) object(at *fieldPath) (any, error) {
	fields := object{}
	for p.dec.PeekKind() != '}' {
		token, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.malformed(at, err)
		}
		name := token.String()
		if len(name) > maxName {
			return nil, fault.New(fault.InvalidRequest, "api.json", "%s: is a name of %d bytes; %d are allowed", quoted(at.member(name).String()), len(name), maxName)
		}
		value, err := p.value(at.member(name))
		if err != nil {
			return nil, err
		}
		fields = append(fields, member{name, value})
	}
	_, err := p.dec.ReadToken()
	return fields, p.malformed(at, err)
}

// malformed explains an error of the decoder, which was below the path; nil for nil.
func (p *jsonReader) malformed(at *fieldPath, err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return fault.New(fault.InvalidRequest, "api.json", "not JSON: it ends too soon, at byte %d", p.dec.InputOffset())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fault.New(fault.InvalidRequest, "api.json", "%s: given twice, at byte %d", quoted(at.member(syntax.JSONPointer.LastToken()).String()), syntax.ByteOffset)
	}
	return fault.New(fault.InvalidRequest, "api.json", "not JSON: %s, at byte %d", shortened(syntax.Err.Error()), syntax.ByteOffset)
}

// quoted makes a client's name fit for a message: quoted and of limited length.
func quoted(name string) string { return fmt.Sprintf("%q", shortened(name)) }

// shortened cuts a client's text for a message.
func shortened(text string) string {
	const limit = 80
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
