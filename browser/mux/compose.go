package mux

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// What goes out is put together from bytes that came in: parameters, results
// and events are passed on as they are, under another id or session.

// request builds a message for Chrome, with its NUL.
func request(id int64, session string, method, params []byte) []byte {
	b := make([]byte, 0, len(method)+len(params)+len(session)+64)
	b = strconv.AppendInt(append(b, `{"id":`...), id, 10)
	b = append(append(b, `,"method":"`...), method...)
	b = append(b, '"')
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(closing(b, session), 0)
}

// reply builds an answer for a client: Chrome's, under the client's own id.
func reply(id []byte, e envelope, session string) []byte {
	key, value := `,"result":`, e.result
	if e.err != nil {
		key, value = `,"error":`, e.err
	}
	b := make([]byte, 0, len(id)+len(value)+len(session)+64)
	b = append(append(b, `{"id":`...), id...)
	b = append(append(b, key...), value...)
	return closing(b, session)
}

// event builds an event for a client.
func event(e envelope, session string) []byte {
	b := make([]byte, 0, len(e.method)+len(e.params)+len(session)+64)
	b = append(append(b, `{"method":"`...), e.method...)
	b = append(b, '"')
	if e.params != nil {
		b = append(append(b, `,"params":`...), e.params...)
	}
	return closing(b, session)
}

// failure builds an error answer of the mux's own.
func failure(id []byte, session []byte, err *cdpError) []byte {
	text, _ := jsontext.AppendQuote(nil, err.message)
	b := []byte("{")
	if id != nil {
		b = append(append(append(b, `"id":`...), id...), ',')
	}
	b = strconv.AppendInt(append(b, `"error":{"code":`...), int64(err.code), 10)
	b = append(append(append(b, `,"message":`...), text...), '}')
	return closing(b, string(session))
}

func closing(b []byte, session string) []byte {
	if session != "" {
		b = append(append(append(b, `,"sessionId":"`...), session...), '"')
	}
	return append(b, '}')
}
