package browser

import (
	"net/url"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// other is a proxy, nil where it stands for none.
func other(p *state.Proxy) *state.Proxy {
	if p != nil && p.Server == state.ProxyDirect {
		return nil
	}
	return p
}

// startProxy gives the proxy that a profile is told of, nil for none, and the
// relay that it is where the proxy wants credentials, which Chrome has no
// setting for.
func startProxy(p *state.Proxy, uid int) (told *profile.Proxy, r *relay.Relay, err error) {
	if p = other(p); p == nil {
		return nil, nil, nil
	}
	server := p.Server
	if p.Username != "" {
		beyond, err := url.Parse(p.Server)
		if err != nil {
			return nil, nil, fault.Wrap(err, fault.Unsupported, "browser.proxy", "proxy.server is not a URL")
		}
		beyond.User = url.UserPassword(p.Username, p.Password)
		if r, err = relay.Start(beyond, uid); err != nil {
			return nil, nil, err
		}
		server = "http://" + r.Address()
	}
	return &profile.Proxy{Server: server, Bypass: p.Bypass}, r, nil
}

// proxyFlags tell an engine of a proxy that does not read it in the profile.
func proxyFlags(p *profile.Proxy) []string {
	if p == nil {
		return nil
	}
	flags := []string{"--proxy-server=" + p.Server,
		// WebRTC would send datagrams past the proxy and tell the machine's addresses.
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp"}
	if p.Bypass != "" {
		flags = append(flags, "--proxy-bypass-list="+p.Bypass)
	}
	return flags
}
