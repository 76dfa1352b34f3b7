package relay

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"testing"
)

// An API caller chooses the proxy. A proxy whose answer's header never ends uses no
// memory of the daemon, and the connection is given up.
func TestEndlessProxyAnswer(t *testing.T) {
	const most = 256 << 20 // most bytes that the test sends
	for name, start := range map[string]string{
		"status line": "HTTP/1.1 200 ", "header line": "HTTP/1.1 200 OK\r\nA: ", "header lines": "HTTP/1.1 200 OK\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			sent := make(chan int64, 1)
			go func() {
				defer close(sent)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				chunk := bytes.Repeat([]byte("a"), 1<<20)
				if name == "header lines" {
					chunk = bytes.Repeat([]byte("A: b\r\n"), 1<<17)
				}
				_, _ = io.WriteString(conn, start)
				var n int64
				for n < most {
					written, err := conn.Write(chunk)
					n += int64(written)
					if err != nil {
						break
					}
				}
				sent <- n
			}()
			defer func() { _ = l.Close() }()
			u := &url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("ada", "secret")}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			far, err := dial(t.Context(), new(net.Dialer), u, "a.example:443")
			if err == nil {
				_ = far.Close()
				t.Fatal("the tunnel was established")
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("the relay used %d MiB of memory", took>>20)
			}
			if n := <-sent; n >= most {
				t.Errorf("the relay read all of %d MiB", n>>20)
			}
		})
	}
}
