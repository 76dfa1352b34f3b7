package resolver

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// maxPorts is how many ports are tried until one is free for all listeners.
const maxPorts = 20

// Listen starts a Server at a free port of 127.0.0.1 and ::1.
func Listen(answer Answer) (*Server, error) {
	var err error
	for range maxPorts {
		var packets []net.PacketConn
		var streams []net.Listener
		if packets, streams, err = listen(); err == nil {
			return Serve(answer, packets, streams), nil
		}
		closeAll(packets, streams)
	}
	return nil, fault.Wrap(err, fault.Internal, "resolver.listen", "no free port on 127.0.0.1 for the session's resolver")
}

// listen opens the sockets, all at the same port. After an error some may be open.
func listen() (packets []net.PacketConn, streams []net.Listener, err error) {
	port := "0"
	for _, host := range []string{"127.0.0.1", "::1"} {
		p, err := net.ListenPacket("udp", net.JoinHostPort(host, port))
		if err != nil {
			if len(packets) > 0 && noIPv6(err) { // no query arrives over it
				return packets, streams, nil
			}
			return packets, streams, err
		}
		packets, port = append(packets, p), strconv.Itoa(p.LocalAddr().(*net.UDPAddr).Port)
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			return packets, streams, err
		}
		streams = append(streams, l)
	}
	return packets, streams, nil
}

func noIPv6(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// Port returns the port of its sockets.
func (s *Server) Port() uint16 { return uint16(s.packets[0].LocalAddr().(*net.UDPAddr).Port) }
