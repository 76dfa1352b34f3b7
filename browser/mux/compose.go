package mux

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Outgoing messages are assembled from the bytes of incoming ones. Parameters, results
// and events pass unchanged, under another ID or session.

// request builds a message for Chrome, with its terminating NUL.
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

// reply builds the answer for a client from Chrome's answer e, under the client's own ID.
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

// failure builds an error answer that comes from the mux, not from Chrome.
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
