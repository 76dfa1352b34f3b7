package events

import (
	"encoding/json"
	"strings"

	"github.com/stasisd/stasis/profiles"
)

// event returns an event as it is stored, cut to size. Page events are sealed, because
// any URL may contain a secret. In other events secrets are masked; if there are any, the
// whole event is also stored sealed.
func (j *Journal) event(t queuedEvent) profiles.Event {
	e := profiles.Event{Type: t.kind, At: t.at}
	if t.kind != Message {
		t.data = shorten(t.data)
	}
	whole, err := json.Marshal(t.data)
	if err != nil || len(whole) > maxData {
		e.Data = json.RawMessage(`{"too_large":true}`)
		return e
	}
	if t.page {
		if e.Sealed, err = j.seals.Seal(whole); err != nil {
			j.log.Error("an event could not be sealed; it is stored without its data", "error", err)
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
		j.log.Error("the secrets of an event could not be sealed; the event is stored without them", "error", err)
	}
	return e
}

// shorten shortens the strings of an event to maxText.
func shorten(data Fields) Fields {
	short := make(Fields, len(data))
	for name, value := range data {
		if text, ok := value.(string); ok && len(text) > maxText {
			value = strings.ToValidUTF8(text[:maxText], "") + "…"
		}
		short[name] = value
	}
	return short
}
