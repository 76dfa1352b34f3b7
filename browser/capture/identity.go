package capture

import (
	"context"
	"encoding/json"
	"fmt"
)

// Identity is what Chrome reports about itself to pages.
type Identity struct {
	UserAgent string `json:"userAgent"`
	Timezone  string `json:"timezone"`
	// CanonicalTimezone is Chrome's own name for the requested time zone, "" if it knows
	// none.
	CanonicalTimezone string `json:"asked"`
}

// identityScript is the script of ReadIdentity, run in a page. A time zone can have several
// names. One that this Chrome does not know gives "".
const identityScript = `(() => {
  const name = (options) => { try { return Intl.DateTimeFormat("en", options).resolvedOptions().timeZone; } catch { return ""; } };
  const asked = %s;
  return {userAgent: navigator.userAgent, timezone: name({}), asked: asked && name({timeZone: asked})};
})()`

// ReadIdentity reads what pages can see of Chrome itself, without the overrides of the
// session: the hidden tab gets neither those nor Chrome's languages. timezone is the time
// zone for [Identity.CanonicalTimezone], or empty.
func (r *HiddenReader) ReadIdentity(ctx context.Context, timezone string) (Identity, error) {
	zone, err := json.Marshal(timezone)
	if err != nil {
		return Identity{}, err
	}
	var identity Identity
	return identity, r.tab.Evaluate(ctx, fmt.Sprintf(identityScript, zone), &identity)
}
