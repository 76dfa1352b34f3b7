package browser

import (
	"net/url"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// nilIfDirect returns the proxy, or nil if it means a direct connection.
func nilIfDirect(p *state.Proxy) *state.Proxy {
	if p != nil && p.Server == state.ProxyDirect {
		return nil
	}
	return p
}

// startProxy returns the proxy setting for a profile, nil for none. If the proxy requires
// credentials, for which Chrome has no setting, or if what limits Chrome must know the one address
// that leads to it, startProxy starts a relay and returns the relay's address as the setting.
func (s *Starter) startProxy(p *state.Proxy, uid int) (setting *profile.Proxy, r *relay.Relay, err error) {
	if p = nilIfDirect(p); p == nil {
		return nil, nil, nil
	}
	server := p.Server
	if p.Username != "" || s.limitsEgress() {
		beyond, err := url.Parse(p.Server)
		if err != nil {
			return nil, nil, fault.Wrap(err, fault.Unsupported, "browser.proxy", "proxy.server: not a URL")
		}
		if p.Username != "" {
			beyond.User = url.UserPassword(p.Username, p.Password)
		}
		if r, err = relay.Start(beyond, uid); err != nil {
			return nil, nil, err
		}
		server = "http://" + r.Address()
	}
	return &profile.Proxy{Server: server, Bypass: p.Bypass}, r, nil
}

// proxyFlags returns the proxy's flags for an engine that does not read them from the
// profile.
func proxyFlags(p *profile.Proxy) []string {
	if p == nil {
		return nil
	}
	flags := []string{"--proxy-server=" + p.Server,
		// WebRTC would bypass the proxy with datagrams and reveal the machine's addresses.
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp"}
	if p.Bypass != "" {
		flags = append(flags, "--proxy-bypass-list="+p.Bypass)
	}
	return flags
}
