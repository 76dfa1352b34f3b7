package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
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
	yes := true
	res, err := cdp.Call(ctx, a.stub.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: fmt.Sprintf(readTold, zone), ReturnByValue: &yes})
	if err != nil {
		return Told{}, err
	}
	if res.ExceptionDetails != nil {
		return Told{}, errors.New("the page could not tell")
	}
	var told Told
	return told, json.Unmarshal(res.Result.Value, &told)
}
