package capture

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/target"
	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// suppressDeadline bounds the wait for Chrome's answer when suppress is called.
const suppressDeadline = 2 * time.Second

// Trim makes Chrome free the memory that its pages can do without: decoded images and
// other caches, and garbage. The pages keep their state,
// so Memory.forciblyPurgeJavaScriptMemory, which ends their scripts, is not used. Trim
// returns when it is done or ctx ends. A target that does not answer keeps its memory.
func Trim(ctx context.Context, conn Conn) {
	// The simulated pressure lasts while notifications are suppressed; afterwards Chrome
	// measures again. Without the suppression the pressure would stay for good, and
	// Chrome would keep its caches small.
	suppress(ctx, conn, true)
	defer suppress(context.WithoutCancel(ctx), conn, false)
	// This comes first because Chrome does not report its end: the processes empty their
	// caches while the garbage is collected.
	_, _ = cdp.Call(ctx, conn, memory.SimulatePressureNotification,
		memory.SimulatePressureNotificationParams{Level: memory.PressureLevelCritical})
	all, err := cdp.Call(ctx, conn, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, t := range all.TargetInfos {
		if t.Type == "page" || t.Type == "iframe" {
			group.Go(func() error {
				collect(ctx, conn, t.TargetID)
				return nil
			})
		}
	}
	_ = group.Wait() // no function of the group fails
}

// suppress stops Chrome's own notifications of memory pressure (on), or allows them.
func suppress(ctx context.Context, conn Conn, on bool) {
	ctx, cancel := context.WithTimeout(ctx, suppressDeadline)
	defer cancel()
	_, _ = cdp.Call(ctx, conn, memory.SetPressureNotificationsSuppressed, memory.SetPressureNotificationsSuppressedParams{Suppressed: on})
}

// collect collects the garbage of a target's scripts. It skips a target whose process has
// died, which would not answer.
func collect(ctx context.Context, conn Conn, id target.ID) {
	if crashed(ctx, conn, id) {
		return
	}
	s, detach, err := hiddentab.Attach(ctx, conn, id)
	if err != nil {
		return // it has been closed
	}
	defer detach()
	_, _ = cdp.Call(ctx, s, heapprofiler.CollectGarbage, cdp.Empty{})
}
