package relay

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream starts an upstream proxy that requires a name and a password.
func upstream(t *testing.T) *url.URL {
	through := httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:secret"))
		switch {
		case r.Header.Get("Proxy-Authorization") != want:
			w.Header().Set("Proxy-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
		case r.Method == http.MethodConnect:
			far, err := net.Dial("tcp", r.Host)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			near, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = near.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			var both sync.WaitGroup
			both.Go(func() { copyHalf(far, near) })
			copyHalf(near, far)
			both.Wait()
			_, _ = near.Close(), far.Close()
		default:
			through.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func relayed(t *testing.T, u *url.URL, uid int) (*Relay, *http.Client) {
	t.Helper()
	r, err := Start(u, uid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.SetProcesses(func() []int { return []int{os.Getpid()} })
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.Address()}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the test's own site
	t.Cleanup(transport.CloseIdleConnections)
	return r, &http.Client{Transport: transport}
}

func TestCredentialsAreAdded(t *testing.T) {
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Proxy-Authorization", "X-Forwarded-For", "Via"} {
			if r.Header.Get(name) != "" {
				t.Errorf("the site got %s", name)
			}
		}
		_, _ = io.WriteString(w, "here")
	})
	plain, secure := httptest.NewServer(site), httptest.NewTLSServer(site)
	defer plain.Close()
	defer secure.Close()
	u := upstream(t)
	u.User = url.UserPassword("ada", "secret")
	r, client := relayed(t, u, os.Geteuid())
	for _, at := range []string{plain.URL, secure.URL} {
		answer, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(body) != "here" {
			t.Errorf("%s: %d %q %v", at, answer.StatusCode, body, err)
		}
	}
	// The relay is no web site itself.
	answer, err := http.Get("http://" + r.Address() + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a request to the relay as a site is answered with %d", answer.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

// The upstream proxy is not asked for a host that is not allowed.
func TestLimitHosts(t *testing.T) {
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	plain, secure := httptest.NewServer(site), httptest.NewTLSServer(site)
	defer plain.Close()
	defer secure.Close()
	u := upstream(t)
	u.User = url.UserPassword("ada", "secret")
	r, client := relayed(t, u, os.Geteuid())
	var refused []string
	allowed := ""
	r.LimitHosts(func(host string) bool { return host == allowed }, func(host string) { refused = append(refused, host) })
	for _, at := range []string{plain.URL, secure.URL} {
		if answer, err := client.Get(at); err == nil {
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %d", at, answer.StatusCode)
			}
			_ = answer.Body.Close()
		} else if !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if got := strings.Join(refused, " "); got != "127.0.0.1 127.0.0.1" {
		t.Errorf("refused %s", got)
	}
	allowed = "127.0.0.1"
	for _, at := range []string{plain.URL, secure.URL} {
		answer, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", at, answer.StatusCode)
		}
	}
}

// Chrome must not prompt for a password, as no user would answer.
func TestWrongCredentialsAreABadGateway(t *testing.T) {
	site := httptest.NewTLSServer(nil)
	defer site.Close()
	u := upstream(t)
	u.User = url.UserPassword("ada", "wrong")
	_, client := relayed(t, u, os.Geteuid())
	if answer, err := client.Get(site.URL); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		_ = answer.Body.Close()
		t.Errorf("a tunnel: %v", err)
	}
	answer, err := client.Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadGateway {
		t.Errorf("a request: %d", answer.StatusCode)
	}
}

func TestOtherUsersAreNotServed(t *testing.T) {
	u := upstream(t)
	u.User = url.UserPassword("ada", "secret")
	_, client := relayed(t, u, os.Geteuid()+1)
	if answer, err := client.Get("http://a.example/"); err == nil {
		_ = answer.Body.Close()
		t.Errorf("another user got the answer %d", answer.StatusCode)
	}
}

// Close ends tunnels too, and waits for them.
func TestCloseEndsTunnels(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	u := upstream(t)
	u.User = url.UserPassword("ada", "secret")
	r, _ := relayed(t, u, os.Geteuid())
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "CONNECT "+silent.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 200" {
		t.Fatalf("%q %v", head, err)
	}
	accepted, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	r.Close()
	if _, err := io.ReadAll(conn); err != nil {
		t.Logf("the tunnel ended with %v", err)
	}
	r.Close()
}

// A socks5 proxy with a name and a password (RFC 1928, RFC 1929) resolves host names
// itself. Chrome has no support for such credentials.
func TestSocks5(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	defer site.Close()
	socks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer socks.Close()
	serving.Go(func() {
		for {
			near, err := socks.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { socksServe(t, near, strings.TrimPrefix(site.URL, "http://")) })
		}
	})
	u := &url.URL{Scheme: "socks5", Host: socks.Addr().String(), User: url.UserPassword("ada", "secret")}
	r, client := relayed(t, u, os.Geteuid())
	answer, err := client.Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || string(body) != "here" {
		t.Errorf("a request: %d %q %v", answer.StatusCode, body, err)
	}
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "CONNECT a.example:80 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 200" {
		t.Errorf("a tunnel: %q %v", head, err)
	}
	_ = conn.Close()
	r.Close()
}

// socksServe serves one connection of such a proxy. It connects every host to place.
func socksServe(t *testing.T, near net.Conn, place string) {
	defer near.Close()
	take := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(near, b); err != nil {
			t.Errorf("socks: %v", err)
		}
		return b
	}
	take(int(take(2)[1])) // the methods
	_, _ = near.Write([]byte{5, 2})
	name := string(take(int(take(2)[1])))
	password := string(take(int(take(1)[0])))
	if name != "ada" || password != "secret" {
		t.Errorf("socks: %s %s", name, password)
	}
	_, _ = near.Write([]byte{1, 0})
	if kind := take(4)[3]; kind != 3 {
		t.Errorf("socks: an address of kind %d, not a name", kind)
		return
	}
	if host := string(take(int(take(1)[0]))); host != "a.example" {
		t.Errorf("socks: %s", host)
	}
	take(2)
	_, _ = near.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	far, err := net.Dial("tcp", place)
	if err != nil {
		t.Error(err)
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(far, near) })
	copyHalf(near, far)
	both.Wait()
}

// If Chrome runs as the daemon's user, its processes distinguish it from other processes
// of that user.
func TestOtherProcessesOfTheUserAreNotServed(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	u := upstream(t)
	u.User = url.UserPassword("ada", "secret")
	r, client := relayed(t, u, os.Geteuid())
	for _, c := range []struct {
		name      string
		processes func() []int
		served    bool
	}{
		{"no Chrome yet", nil, false},
		{"another process's", func() []int { return []int{os.Getppid()} }, false},
		{"none is left", func() []int { return nil }, false},
		{"its own", func() []int { return []int{os.Getppid(), os.Getpid()} }, true},
	} {
		r.SetProcesses(c.processes)
		answer, err := client.Get(site.URL)
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != c.served {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A proxy whose address is refused is a refusal for each connection, with its address.
func TestRefusedProxyIsNotified(t *testing.T) {
	u := upstream(t)
	r, client := relayed(t, u, os.Geteuid())
	r.Limit(egress.Policy{}.Control)
	var mu sync.Mutex
	var got []string
	stop := r.Watch(func(refused egress.Refusal) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, refused.Protocol+" "+refused.To.String())
	})
	request := func() {
		answer, err := client.Get("http://a.example/")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusBadGateway {
			t.Errorf("answered with %d", answer.StatusCode)
		}
	}
	request()
	stop()
	request()
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"tcp " + u.Host}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
