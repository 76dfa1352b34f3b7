package capture

import (
	"context"
	"encoding/json"
	"fmt"
)

// Told is what Chrome tells its pages of itself.
type Told struct {
	UserAgent string `json:"userAgent"`
	Timezone  string `json:"timezone"`
	// Asked is the time zone that was asked about, by the name that Chrome has for it.
	Asked string `json:"asked"`
}

// readTold asks in a page; a time zone has more than one name, and one that this
// Chrome does not know has none.
const readTold = `(() => {
  const name = (options) => { try { return Intl.DateTimeFormat("en", options).resolvedOptions().timeZone; } catch { return ""; } };
  const asked = %s;
  return {userAgent: navigator.userAgent, timezone: name({}), asked: asked && name({timeZone: asked})};
})()`

// Told asks what pages are told by Chrome itself, without what is set on each
// tab: a hidden one is not given that, nor Chrome's languages. timezone may be empty.
func (a *Asker) Told(ctx context.Context, timezone string) (Told, error) {
	zone, err := json.Marshal(timezone)
	if err != nil {
		return Told{}, err
	}
	var told Told
	return told, a.tab.Evaluate(ctx, fmt.Sprintf(readTold, zone), &told)
}
