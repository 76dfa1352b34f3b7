package capture

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// errorScript reads the code that full Chrome's error page shows. The page of the shell is
// empty (seen with Chromium 156).
const errorScript = `document.querySelector(".error-code")?.textContent ?? ""`

// ErrorCode returns the error that the error page of a tab shows, such as
// "net::ERR_CONNECTION_REFUSED" or "HTTP ERROR 502"; "" if the page shows none.
func ErrorCode(ctx context.Context, conn Conn, id target.ID) string {
	ctx, cancel := context.WithTimeout(ctx, TabDeadline)
	defer cancel()
	s, detach, err := hiddentab.Attach(ctx, conn, id)
	if err != nil {
		return ""
	}
	defer detach()
	yes := true
	res, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{Expression: errorScript, ReturnByValue: &yes, ThrowOnSideEffect: &yes})
	var code string
	if err != nil || json.Unmarshal(res.Result.Value, &code) != nil {
		return ""
	}
	switch code = strings.TrimSpace(code); {
	case strings.HasPrefix(code, "DNS_PROBE_"): // Chrome looks up why the name has no address
		return "net::ERR_NAME_NOT_RESOLVED"
	case strings.HasPrefix(code, "ERR_"):
		return "net::" + code
	}
	return code
}
