package browser

import (
	"net/url"

	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// startProxy gives the flags of a proxy, and the relay that they name where
// the proxy wants credentials, which Chrome has no flag for.
func startProxy(p *state.Proxy, uid int) (flags []string, r *relay.Relay, err error) {
	if p == nil || p.Server == state.ProxyDirect {
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
	flags = []string{"--proxy-server=" + server,
		// WebRTC would send datagrams past the proxy and tell the machine's addresses.
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp"}
	if p.Bypass != "" {
		flags = append(flags, "--proxy-bypass-list="+p.Bypass)
	}
	return flags, r, nil
}
