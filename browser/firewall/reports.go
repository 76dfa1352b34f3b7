//go:build linux

package firewall

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter/nfnetlink_log.h that the unix package does not have.
const (
	nfulMsgConfig = 1

	nfulConfigCommand    = 1
	nfulConfigMode       = 2
	nfulConfigThreshold  = 5
	nfulCommandBind      = 1
	nfulCopyPacket       = 2
	nfulAttributePayload = 9
	nfgenHeader          = 4 // length of struct nfgenmsg
)

// subscribe makes the kernel report refusals to the socket of reports. The nflog library
// cannot use a socket that it has not opened.
func (n *Namespace) subscribe() error {
	mode := append(binary.BigEndian.AppendUint32(nil, reportedBytes), nfulCopyPacket, 0)
	conn := netlink.NewConn(n.reports, 0)
	// Reports that find no space are dropped, without an error.
	var failed error
	err := n.reports.raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS, 1)
	})
	if err == nil {
		err = failed
	}
	for _, a := range []netlink.Attribute{
		{Type: nfulConfigCommand, Data: []byte{nfulCommandBind}},
		{Type: nfulConfigMode, Data: mode},
		{Type: nfulConfigThreshold, Data: binary.BigEndian.AppendUint32(nil, 1)},
	} {
		if err != nil {
			return err
		}
		var data []byte
		if data, err = netlink.MarshalAttributes([]netlink.Attribute{a}); err == nil {
			_, err = conn.Execute(netlink.Message{
				Header: netlink.Header{Type: unix.NFNL_SUBSYS_ULOG<<8 | nfulMsgConfig, Flags: netlink.Request | netlink.Acknowledge},
				Data:   append([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, reportGroup}, data...),
			})
		}
	}
	return err
}

// read passes on refusals until Close.
func (n *Namespace) read() {
	defer close(n.done)
	for {
		all, err := n.reports.Receive()
		if err != nil {
			return
		}
		for _, m := range all {
			if len(m.Data) < nfgenHeader {
				continue
			}
			attributes, err := netlink.UnmarshalAttributes(m.Data[nfgenHeader:])
			if err != nil {
				continue // a message of another kind
			}
			for _, a := range attributes {
				if a.Type != nfulAttributePayload {
					continue
				}
				if refusal, ok := parse(a.Data); ok {
					n.notify(refusal)
				}
			}
		}
	}
}
