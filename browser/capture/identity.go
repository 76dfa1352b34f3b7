package capture

import (
	"context"
	"encoding/json"
	"fmt"
)

// Told is what Chrome reports about itself to pages.
type Told struct {
	UserAgent string `json:"userAgent"`
	Timezone  string `json:"timezone"`
	// Asked is Chrome's own name for the requested time zone, "" if it knows none.
	Asked string `json:"asked"`
}

// identityScript is the script of Told, run in a page. A time zone can have several
// names. One that this Chrome does not know gives "".
const identityScript = `(() => {
  const name = (options) => { try { return Intl.DateTimeFormat("en", options).resolvedOptions().timeZone; } catch { return ""; } };
  const asked = %s;
  return {userAgent: navigator.userAgent, timezone: name({}), asked: asked && name({timeZone: asked})};
})()`

// Told reads what pages can see of Chrome itself, without the overrides of the session:
// the hidden tab gets neither those nor Chrome's languages. timezone is the time zone for
// [Told.Asked], or empty.
func (a *Asker) Told(ctx context.Context, timezone string) (Told, error) {
	zone, err := json.Marshal(timezone)
	if err != nil {
		return Told{}, err
	}
	var identity Told
	return identity, a.tab.Evaluate(ctx, fmt.Sprintf(identityScript, zone), &identity)
}
