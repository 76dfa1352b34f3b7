package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"
)

// toxiproxy is the proxy that makes connections slow. The Makefile builds it.
const toxiproxy = "bin/tools/toxiproxy-2.12.0"

// slowed starts a proxy with 2 Mbit/s and 75 ms in each direction. It returns the address
// that leads through it, and a function that ends it.
func slowed(ctx context.Context, address string) (through string, end func() error, err error) {
	to, err := url.Parse(address)
	if err != nil {
		return "", nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", nil, err
	}
	control := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	cmd := exec.CommandContext(ctx, toxiproxy, "-host", "127.0.0.1", "-port", fmt.Sprint(ports[0]))
	cmd.Env = append(os.Environ(), "LOG_LEVEL=error")
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // the error only says that it was killed
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, end())
		}
	}()
	listen := fmt.Sprintf("127.0.0.1:%d", ports[1])
	if err := post(ctx, control+"/proxies", obj{"name": "view", "listen": listen, "upstream": to.Host, "enabled": true}); err != nil {
		return "", nil, err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		for kind, attributes := range map[string]obj{"bandwidth": {"rate": 250}, "latency": {"latency": 75}} { // KB/s, ms
			if err := post(ctx, control+"/proxies/view/toxics", obj{"type": kind, "stream": stream, "attributes": attributes}); err != nil {
				return "", nil, err
			}
		}
	}
	to.Host = listen
	return to.String(), end, nil
}

// freePorts returns ports of 127.0.0.1 that nothing uses.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// post sends JSON, and again until the server listens.
func post(ctx context.Context, to string, body obj) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(pageDeadline); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			if ctx.Err() != nil || time.Now().After(deadline) {
				return err
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		answer, err := io.ReadAll(res.Body)
		if res.StatusCode/100 != 2 {
			err = fmt.Errorf("%s: %s: %s", to, res.Status, answer)
		}
		return errors.Join(err, res.Body.Close())
	}
}
