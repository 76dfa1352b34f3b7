package events

import (
	"encoding/json"
	"strings"

	"github.com/stasisd/stasis/profiles"
)

// event is an event as it is kept, cut to size. Events of pages are sealed, because any
// address may be a secret. In others secrets are masked, and the whole event is sealed
// beside that.
func (j *Journal) event(t told) profiles.Event {
	e := profiles.Event{Type: t.kind, At: t.at}
	if t.kind != Message {
		t.data = cut(t.data)
	}
	whole, err := json.Marshal(t.data)
	if err != nil || len(whole) > maxData {
		e.Data = json.RawMessage(`{"too_large":true}`)
		return e
	}
	if t.page {
		if e.Sealed, err = j.seals.Seal(whole); err != nil {
			j.log.Error("an event could not be sealed, and is kept without its data", "error", err)
		}
		return e
	}
	masked, found := maskFields(t.data)
	if e.Data = whole; !found {
		return e
	}
	if e.Data, err = json.Marshal(masked); err != nil {
		e.Data = nil
		return e
	}
	if e.Sealed, err = j.seals.Seal(whole); err != nil {
		j.log.Error("what was masked of an event could not be sealed, and is gone", "error", err)
	}
	return e
}

// cut bounds the texts of an event.
func cut(data Fields) Fields {
	short := make(Fields, len(data))
	for name, value := range data {
		if text, ok := value.(string); ok && len(text) > maxText {
			value = strings.ToValidUTF8(text[:maxText], "") + "…"
		}
		short[name] = value
	}
	return short
}
