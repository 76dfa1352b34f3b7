package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// guardedQuotas are large, so that each is counted but none is reached.
const guardedQuotas = "sessions=1000,parked=1000,snapshots=100000,bytes=1000000000000,sockets=10000,requests_per_second=100000"

// guardedFlags are the flags of a daemon that strangers use.
func guardedFlags() []string {
	return []string{"--egress", "required", "--session-limits", "required", "--default-quota", guardedQuotas}
}

// sideFlags are the flags of one of the daemons that are compared.
type sideFlags struct {
	name   string
	binary string
	flags  []string
}

// guardFlags returns the daemons that are compared: one with all guards, and as the last one
// that without them. b.against is the binary of the last one, if it is given, otherwise it is
// the same binary with its guards turned off. The audit log and the processes that read uploads
// have no flag. With b.guardsAlone there is also a daemon for each guard, which has only that.
func (b *bench) guardFlags() []sideFlags {
	with := func(egress, limits, quotas string) []string {
		flags := []string{"--egress", egress, "--session-limits", limits}
		if quotas != "" {
			flags = append(flags, "--default-quota", quotas)
		}
		return flags
	}
	all := []sideFlags{{"all guards", b.binary, guardedFlags()}}
	if b.guardsAlone {
		all = append(all, sideFlags{"addresses", b.binary, with("required", "off", "")}, sideFlags{"limits", b.binary, with("off", "required", "")},
			sideFlags{"quotas", b.binary, with("off", "off", guardedQuotas)})
	}
	if b.against != "" {
		return append(all, sideFlags{"no guards", b.against, nil})
	}
	return append(all, sideFlags{"no guards", b.binary, with("off", "off", "")})
}

// guardSide starts a daemon with a spare of each engine, and a session of each.
func (b *bench) guardSide(ctx context.Context, f sideFlags) (*guardSide, error) {
	binary := b.binary
	b.binary = f.binary
	h, err := b.host(ctx, []string{"STASIS_SPARES=1", "STASIS_SHELL_SPARES=1"}, f.flags...)
	b.binary = binary
	b.others = append(b.others, h)
	if err != nil {
		return nil, err
	}
	side := &guardSide{host: h, name: f.name, tabs: map[string]*tab{}}
	for _, engine := range []string{chrome, shell} {
		s, err := h.atMe(ctx, obj{"engine": engine})
		if err != nil {
			return nil, err
		}
		if side.tabs[engine], err = s.front(ctx); err != nil {
			return nil, err
		}
	}
	return side, side.spared(ctx)
}

// guardSpares is the number of spares of a side: one of each engine.
const guardSpares = 2

// sparesDeadline bounds how long the spares may take. On a busy machine they take minutes, because
// they get a tenth of the ordinary share of the processors.
const sparesDeadline = 5 * time.Minute

// sparesPause is the pause between two looks. Shorter ones would delay the spares.
const sparesPause = 25 * time.Millisecond

// sparesForm finds the number of spares in the metrics.
var sparesForm = regexp.MustCompile(`(?m)^stasis_chromes_kept\{kind="spare"\} (\d+)$`)

// spared waits until the daemon has its spares. It starts them one after the other, so when it
// has the last one it does nothing more.
func (g *guardSide) spared(ctx context.Context) error {
	err := pollEach(ctx, sparesPause, sparesDeadline, func() (bool, error) {
		var metrics []byte
		if err := g.Call(ctx, http.MethodGet, "/metrics", nil, &metrics); err != nil {
			return false, err
		}
		found := sparesForm.FindSubmatch(metrics)
		if found == nil {
			return false, fmt.Errorf("the metrics do not have the number of spares")
		}
		n, err := strconv.Atoi(string(found[1]))
		return n >= guardSpares, err
	})
	if err != nil {
		return fmt.Errorf("the daemon did not start its %d spares: %w", guardSpares, err)
	}
	return nil
}
