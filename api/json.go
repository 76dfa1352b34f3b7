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
	// maxDepth limits how deep a body may nest; wire types nest far less.
	maxDepth = 32
	// maxName limits a name in a body, in bytes.
	maxName = 1024
	// maxValues limits how many values a body may have: each takes many times its bytes in
	// memory. The longest lists are those of notes.
	maxValues = 20_000
	// checkEvery is how many values are read between two checks of the context.
	checkEvery = 1024
)

// object is a JSON object with its members in the order of the text. The other JSON values
// are string, json.Number, bool, nil and []any.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON encodes the object with its members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}

// parseJSON reads exactly one JSON value. Unlike encoding/json it keeps the order of names.
// It refuses duplicate names, long names, too many values, invalid UTF-8, and anything
// after the value. Errors are invalid_request and name the field or the byte. Time and
// memory grow only with the length of data. It stops when ctx ends.
func parseJSON(ctx context.Context, data []byte) (any, error) {
	if at := invalidUTF8(data); at >= 0 {
		if !utf8.FullRune(data[at:]) {
			return nil, cutOff(len(data))
		}
		return nil, fault.New(fault.InvalidRequest, "api.json", "the body is not UTF-8, at byte %d", at)
	}
	p := jsonReader{ctx: ctx, size: len(data), dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
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
	size int             // of the body, in bytes
	dec  *jsontext.Decoder
	read int // values so far
}

// value reads a value whose path is at.
func (p *jsonReader) value(at *fieldPath) (any, error) {
	switch p.read++; {
	case p.read > maxValues:
		return nil, fault.New(fault.InvalidRequest, "api.json", "the body holds more than %d values, at byte %d", maxValues, p.dec.InputOffset())
	case p.read%checkEvery == 0 && p.ctx.Err() != nil:
		return nil, fault.Wrap(p.ctx.Err(), fault.Timeout, "api.json", "the request was cancelled")
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
			return nil, fault.New(fault.InvalidRequest, "api.json", "%s: the name has %d bytes; at most %d are allowed", quoted(at.member(name).String()), len(name), maxName)
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

// malformed returns the error for a failure of the decoder below the path at; nil if err is
// nil.
func (p *jsonReader) malformed(at *fieldPath, err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return cutOff(p.size)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fault.New(fault.InvalidRequest, "api.json", "%s: given twice, at byte %d", quoted(at.member(syntax.JSONPointer.LastToken()).String()), syntax.ByteOffset)
	}
	return fault.New(fault.InvalidRequest, "api.json", "not JSON: %s, at byte %d", shortened(syntax.Err.Error()), syntax.ByteOffset)
}

// cutOff returns the error for a body of size bytes whose end is missing.
func cutOff(size int) error {
	return fault.New(fault.InvalidRequest, "api.json", "not JSON: it ends too soon, at byte %d", size)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8; -1 if there is none.
func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return -1
}

// quoted quotes and shortens a client's name for a message.
func quoted(name string) string { return fmt.Sprintf("%q", shortened(name)) }

// shortened shortens a client's text for a message.
func shortened(text string) string {
	const limit = 80
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
