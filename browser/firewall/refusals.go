//go:build linux

package firewall

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"

	"github.com/florianl/go-nflog/v2"
	"github.com/mdlayher/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
)

const (
	// The kernel reports at most reportRate refusals of a user a second, after reportBurst at once.
	// It refuses all the same.
	reportRate  = 50
	reportBurst = 200
	// reportedBytes is how much of a refused packet is reported: its headers.
	reportedBytes = 128
	// No other reader of reports may have the same group. Groups from firstGroup on are tried.
	firstGroup = 21_000
	maxGroups  = 100
)

// refusals reads what the kernel reports of refused packets.
type refusals struct {
	group  uint16
	reader *nflog.Nflog
	cancel context.CancelFunc

	mu       sync.Mutex
	watchers map[int]*watcher // by user
}

type watcher struct{ notify func(egress.Refusal) }

func newRefusals() (*refusals, error) {
	r := &refusals{watchers: map[int]*watcher{}}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for r.group = firstGroup; ; r.group++ {
		err := r.read(ctx)
		if err == nil {
			return r, nil
		}
		// The library hides the error of a group that another reader has.
		if r.group == firstGroup+maxGroups {
			cancel()
			return nil, err
		}
	}
}

func (r *refusals) read(ctx context.Context) (err error) {
	r.reader, err = nflog.Open(&nflog.Config{Group: r.group, Copymode: nflog.CopyPacket, Bufsize: reportedBytes, QThresh: 1})
	if err != nil {
		return err
	}
	// Reports that find no space are dropped, without an error.
	err = r.reader.SetOption(netlink.NoENOBUFS, true)
	if err == nil {
		err = r.reader.RegisterWithErrorFunc(ctx, r.report, func(error) int { return 0 })
	}
	if err != nil {
		return errors.Join(err, r.reader.Close())
	}
	return nil
}

// report notifies the watcher of the user whose packet was refused.
func (r *refusals) report(a nflog.Attribute) int {
	if a.UID == nil || a.Payload == nil {
		return 0
	}
	refusal, ok := parse(*a.Payload)
	if !ok {
		return 0
	}
	r.notify(int(*a.UID), refusal)
	return 0
}

func (r *refusals) notify(uid int, refusal egress.Refusal) {
	r.mu.Lock()
	w := r.watchers[uid]
	r.mu.Unlock()
	if w != nil {
		w.notify(refusal)
	}
}

func (r *refusals) close() error {
	r.cancel()
	return r.reader.Close()
}

// Watch calls notify for the refused packets of a user until stop. notify must not wait.
// It may be called once more after stop. A user has one watcher; a later one replaces an
// earlier one, whose stop then does nothing.
func (f *Firewall) Watch(uid int, notify func(egress.Refusal)) (stop func()) {
	r := f.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &watcher{notify}
	r.watchers[uid] = w
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.watchers[uid] == w {
			delete(r.watchers, uid)
		}
	}
}

// parse reads the headers of a packet.
func parse(packet []byte) (r egress.Refusal, ok bool) {
	var number, length int
	var to netip.Addr
	if h, err := ipv4.ParseHeader(packet); err == nil && h.Version == ipv4.Version {
		number, length = h.Protocol, h.Len
		to, ok = netip.AddrFromSlice(h.Dst.To4())
	} else if h, err := ipv6.ParseHeader(packet); err == nil && h.Version == ipv6.Version {
		number, length = h.NextHeader, ipv6.HeaderLen
		to, ok = netip.AddrFromSlice(h.Dst)
	}
	if !ok {
		return egress.Refusal{}, false
	}
	r.Protocol = strconv.Itoa(number)
	var port uint16
	switch number {
	case unix.IPPROTO_TCP:
		r.Protocol = "tcp"
	case unix.IPPROTO_UDP:
		r.Protocol = "udp"
	}
	if ports := packet[min(length, len(packet)):]; len(ports) >= 4 && (number == unix.IPPROTO_TCP || number == unix.IPPROTO_UDP) {
		port = uint16(ports[2])<<8 | uint16(ports[3])
	}
	r.To = netip.AddrPortFrom(to, port)
	return r, true
}
