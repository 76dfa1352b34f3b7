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

// suppressDeadline bounds how long Chrome may take to answer for the pressure.
const suppressDeadline = 2 * time.Second

// Trim makes Chrome give back the memory that its pages can do without: decoded
// images and other caches, pages kept for going back to, and garbage. What a page
// has stays; Memory.forciblyPurgeJavaScriptMemory, which ends its scripts, is not
// for this. It returns when it is done or ctx ends; what gives no answer keeps
// what it has.
func Trim(ctx context.Context, conn Conn) {
	// The pressure lasts for as long as Chrome is not to hear of any other, then it is
	// what it was. Otherwise it would last for good: no page would be kept for going
	// back to any more, nor a shader.
	suppress(ctx, conn, true)
	defer suppress(context.WithoutCancel(ctx), conn, false)
	// First, for it has no end to wait for: the processes empty their caches
	// while the garbage is collected.
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
	_ = group.Wait() // no member fails
}

// suppress keeps Chrome from hearing of the machine's memory, or lets it.
func suppress(ctx context.Context, conn Conn, on bool) {
	ctx, cancel := context.WithTimeout(ctx, suppressDeadline)
	defer cancel()
	_, _ = cdp.Call(ctx, conn, memory.SetPressureNotificationsSuppressed, memory.SetPressureNotificationsSuppressedParams{Suppressed: on})
}

// collect collects the garbage of a target's scripts; one whose process has died
// would not answer.
func collect(ctx context.Context, conn Conn, id target.ID) {
	if crashed(ctx, conn, id) {
		return
	}
	s, detach, err := hiddentab.Attach(ctx, conn, id)
	if err != nil {
		return // it has gone
	}
	defer detach()
	_, _ = cdp.Call(ctx, s, heapprofiler.CollectGarbage, cdp.Empty{})
}
