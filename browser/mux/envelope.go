package mux

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// envelope is the top level of one CDP message. Its values are parts of the message's own
// bytes, not decoded. nil means absent.
type envelope struct {
	id      []byte
	method  []byte // without its quotes
	session []byte // without its quotes
	params  []byte
	result  []byte
	err     []byte
}

var (
	errNotObject = errors.New("Message must be an object")      //nolint:staticcheck // Chrome's own words, sent to clients
	errEnvelope  = errors.New("Message has a malformed member") //nolint:staticcheck // as above
)

// scan finds the members of a message in one pass without decoding them. b must be valid
// JSON: Chrome's messages are, and a client's message goes through [parseRequest] first.
// A member that occurs twice or is spelled with escapes is an error, because Chrome might
// read it differently.
func scan(b []byte) (e envelope, err error) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return e, errNotObject
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return e, nil
	}
	for i < len(b) && b[i] == '"' {
		end := skipString(b, i)
		key := b[i:end]
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return e, errEnvelope
		}
		i = space(b, i+1)
		end = skipValue(b, i)
		if err = e.set(key, b[i:end]); err != nil {
			return e, err
		}
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			break
		}
		i = space(b, i+1)
	}
	if i >= len(b) || b[i] != '}' || space(b, i+1) != len(b) {
		return e, errEnvelope
	}
	return e, nil
}

func (e *envelope) set(key, value []byte) error {
	var field *[]byte
	text := false
	switch string(key) {
	case `"id"`:
		field = &e.id
	case `"method"`:
		field, text = &e.method, true
	case `"sessionId"`:
		field, text = &e.session, true
	case `"params"`:
		field = &e.params
	case `"result"`:
		field = &e.result
	case `"error"`:
		field = &e.err
	default:
		if bytes.IndexByte(key, '\\') >= 0 {
			return errEnvelope
		}
		return nil
	}
	if *field != nil || len(value) == 0 {
		return errEnvelope
	}
	if text {
		if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
			return errEnvelope
		}
		value = value[1 : len(value)-1]
	}
	*field = value
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at b[i].
func skipString(b []byte, i int) int {
	start := i + 1
	for i = start; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		back := i
		for back > start && b[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index after the value that starts at b[i].
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			depth++
			i++
			continue
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
			i++
			continue
		case '"':
			i = skipString(b, i)
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
}

// Codes of the CDP errors that the mux itself returns.
const (
	codeParse     = -32700
	codeRequest   = -32600
	codeNoMethod  = -32601
	codeParams    = -32602
	codeRefused   = -32000
	codeNoSession = -32001
)

// cdpError is a CDP error answer.
type cdpError struct {
	code    int
	message string
}

func (e *cdpError) Error() string { return e.message }

// parseRequest checks that a client's message is one JSON value and a request. On an
// error the envelope holds the members that could be read, so that the answer can carry
// the ID.
func parseRequest(b []byte) (envelope, *cdpError) {
	// Strict JSON excludes NULs, which would end the message early on the pipe. It also
	// excludes comments, which Chrome accepts and scan does not.
	if !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return envelope{}, &cdpError{codeParse, "Message must be a valid JSON"}
	}
	e, err := scan(b)
	if err != nil {
		return e, &cdpError{codeRequest, err.Error()}
	}
	if _, err := strconv.ParseInt(string(e.id), 10, 64); err != nil {
		e.id = nil
		return e, &cdpError{codeRequest, "Message must have integer 'id' property"}
	}
	if len(e.method) == 0 {
		return e, &cdpError{codeRequest, "Message must have string 'method' property"}
	}
	if e.params != nil && e.params[0] != '{' {
		return e, &cdpError{codeRequest, "Message has property 'params' that is not an object"}
	}
	return e, nil
}
