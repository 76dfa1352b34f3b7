package forward

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
)

// frame returns a frame of a server with a payload of n bytes.
func frame(n int) []byte {
	f := []byte{0x81}
	switch {
	case n < 126:
		f = append(f, byte(n))
	case n < 1<<16:
		f = binary.BigEndian.AppendUint16(append(f, 126), uint16(n))
	default:
		f = binary.BigEndian.AppendUint64(append(f, 127), uint64(n))
	}
	return append(f, bytes.Repeat([]byte{0x88}, n)...)
}

// The ends of frames are found however the bytes arrive.
func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, 125, 126, 300, 70_000} {
		whole := append(frame(size), frame(0)...)
		for _, piece := range []int{1, 2, 3, 7, 4096, len(whole)} {
			var f frames
			ends := 0
			for rest := whole; len(rest) > 0; {
				n := min(piece, len(rest))
				for part := rest[:n]; len(part) > 0; {
					m := f.next(part)
					if part = part[m:]; f.between() {
						ends++
					}
				}
				rest = rest[n:]
			}
			if ends != 2 || !f.between() {
				t.Errorf("%d bytes in pieces of %d: %d frames end", size, piece, ends)
			}
		}
	}
}

// record is a connection that records what is written.
type record struct {
	net.Conn
	bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *record) Read([]byte) (int, error)    { return 0, net.ErrClosed }
func (r *record) Close() error                { return nil }

// The close frame follows the frame that has begun, and nothing follows it.
func TestRestartBetweenFrames(t *testing.T) {
	message := frame(300)
	for at := range len(message) + 1 {
		to := &record{}
		c := &clientSocket{Conn: to, open: true}
		for _, part := range [][]byte{message[:at], message[at:], message} {
			if n, err := c.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
			if !c.restarting {
				c.restart()
			}
		}
		got := to.Bytes()
		if at > 0 {
			if !bytes.HasPrefix(got, message) {
				t.Fatalf("restarted after %d bytes: the frame is cut", at)
			}
			got = got[len(message):]
		}
		if !bytes.Equal(got, append([]byte{0x88, 17, 0x03, 0xf4}, "service restart"...)) {
			t.Errorf("restarted after %d bytes: closed with %q", at, got)
		}
	}
}
