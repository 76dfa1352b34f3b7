package launch

import (
	"context"
	"errors"
	"os"

	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/fault"
)

// CheckNetworks returns nil if Chromes can have their own network namespaces. It makes one,
// with everything but a Chrome. Errors: Unsupported, with the reason and what to do, Timeout.
func CheckNetworks(ctx context.Context, all *netns.Networks) error {
	const op = "launch.check_networks"
	network := all.NewNetwork()
	own := network.Order()
	own.Name = "/" // no run directory
	link, stage, err := network.Connect()
	if err != nil {
		return err
	}
	p, reports, err := startWarden(order{Network: &own, UID: -1}, nil, stage)
	_ = stage.Close() // the warden has its own
	if err != nil {
		link.Close()
		return fault.Wrap(err, fault.Unsupported, op, "")
	}
	p.dir, p.link = &Dir{Path: own.Name, UID: os.Geteuid()}, link
	first := make(chan report, 1)
	go p.supervise(reports, first)
	select {
	case r, ok := <-first:
		switch {
		case !ok:
			return p.networkFailed(fault.Unsupported, op, "the process that starts Chrome ended early")
		case r.NetworkFailed != "":
			return p.networkFailed(fault.Unsupported, op, r.NetworkFailed)
		case r.Errno != 0:
			return p.networkFailed(fault.Unsupported, op, r.Errno.Error())
		}
	case <-ctx.Done():
		err = startCancelled(op, ctx.Err())
	}
	return errors.Join(err, p.discard())
}
