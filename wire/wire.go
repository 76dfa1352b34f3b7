// Package wire encodes what callers and webhooks get, so that all times look alike.
package wire

import (
	stdjson "encoding/json"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Time is the layout of every time in an answer, an event and a webhook: RFC 3339 in UTC,
// always with milliseconds.
const Time = "2006-01-02T15:04:05.000Z07:00"

// options make the package behave as encoding/json does, whose own Number it does not know,
// except for times.
var options = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalFunc(func(t time.Time) ([]byte, error) { return []byte(t.UTC().Format(`"` + Time + `"`)), nil }),
	json.MarshalFunc(func(n stdjson.Number) ([]byte, error) { return stdjson.Marshal(n) }),
)))

// Marshal encodes v as encoding/json does, with times in the layout [Time]. JSON inside v
// that is encoded already ([stdjson.RawMessage]) keeps its times.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }
