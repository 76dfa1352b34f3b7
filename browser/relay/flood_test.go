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

// A proxy is whatever a caller names. One that never ends the header of its answer
// takes no memory and is given up.
func TestEndlessAnswerOfTheProxy(t *testing.T) {
	const most = 256 << 20 // that the test sends at all, in bytes
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
			far, err := dial(t.Context(), u, "a.example:443")
			if err == nil {
				_ = far.Close()
				t.Fatal("it is a tunnel")
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("it took %d MiB of memory", took>>20)
			}
			if n := <-sent; n >= most {
				t.Errorf("the daemon read all of %d MiB", n>>20)
			}
		})
	}
}
