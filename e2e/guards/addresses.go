package main

// The guards of what browsers, and the daemon for its callers, connect to.

const (
	rulesFile     = "browser/firewall/firewall.go"
	namespaceFile = "browser/firewall/namespace.go"
	limitsFile    = "browser/firewall/limits.go"
	namesFile     = "browser/firewall/names.go"
)

var addresses = []guard{
	{
		name:  "private-addresses",
		keeps: "nothing in full Chrome reaches a private address: however it is written, by redirects, workers, service workers, extensions, a user's proxy",
		without: []edit{{rulesFile, `		b.to(browsers, egress.NotPublic(), refuse)
		b.rule(browsers, toMachine(), refuse)
`, ""}},
		test: "TestAttackEgress$/chrome/^limited$", fails: "this was refused: tcp 127.0.0.1",
	},
	{
		name:  "private-addresses-shell",
		keeps: "the same in the headless shell",
		without: []edit{{rulesFile, `		b.to(browsers, egress.NotPublic(), refuse)
		b.rule(browsers, toMachine(), refuse)
`, ""}},
		test: "TestAttackEgress$/shell/^limited$", fails: "this was refused: tcp 127.0.0.1",
	},
	{
		name:    "datagrams",
		keeps:   "the rules hold for UDP: WebRTC with a STUN server, QUIC",
		without: []edit{{rulesFile, `b.rule(output, ofUsers(users), jump(browsers))`, `b.rule(output, protocol(unix.IPPROTO_TCP), ofUsers(users), jump(browsers))`}},
		test:    "TestAttackEgress$/shell/^limited$", fails: "this was refused: udp 127.0.0.1",
	},
	{
		name:  "private-addresses-ordinary",
		keeps: "nothing reaches a private address from the namespace of an ordinary user's daemon",
		without: []edit{{namespaceFile, `		b.to(browsers, egress.NotPublic(), refuse)
		b.machine(browsers, refuse)
`, ""}},
		test: "TestAttackEgressOrdinary$/shell/^limited$", fails: "this was refused: tcp 127.0.0.1",
	},
	{
		name:    "metadata",
		keeps:   "no page reaches a metadata address, also where private addresses are allowed",
		without: []edit{{rulesFile, `	b.to(browsers, egress.Never(), refuse)`, ``}},
		test:    "TestAttackNeverAllowed", fails: "169.254.169.254",
	},
	{
		name:    "own-ports",
		keeps:   "no page reaches the daemon's own port, also where loopback is allowed",
		without: []edit{{rulesFile, `		b.rule(browsers, toMachine(), toPort(unix.IPPROTO_TCP, port), refuse)`, `		_ = port`}},
		test:    "TestAttackNeverAllowed", fails: "this was refused: the daemon at",
	},
	{
		name:    "proxy-only",
		keeps:   "a session with a proxy has no other way out, by contexts or datagrams",
		without: []edit{{limitsFile, `	if !p.Only {`, `	if true {`}},
		test:    "TestAttackProxyOnly$/shell", fails: "reached without the proxy",
	},
	{
		name:    "proxy-hosts",
		keeps:   "the proxy of a session is not asked for hosts that its lists do not allow",
		without: []edit{{"browser/relay/relay.go", `case target != "" && !r.allowed(target):`, `case target != "" && !r.allowed(target) && false:`}},
		test:    "TestAttackEgressHosts$/shell", fails: "the proxy was asked for other.example",
	},
	{
		name:    "relay-owner",
		keeps:   "no session uses the proxy and the password of another, as root",
		without: []edit{{"browser/relay/owner.go", `if ok && alsoOK && o.admits(far, near) {`, `if ok && alsoOK && (o.admits(far, near) || true) {`}},
		test:    "TestAttackRelay$/root,_shell", fails: "through the other session's proxy",
	},
	{
		name:    "relay-owner-ordinary",
		keeps:   "no session uses the proxy and the password of another, as an ordinary user, whose Chromes have one user ID",
		without: []edit{{"browser/relay/owner.go", `return processes != nil && at.openIn(processes())`, `return processes != nil`}},
		test:    "TestAttackRelay$/ordinary_user,_chrome", fails: "through the other session's proxy",
	},
	{
		name:    "relay-addresses",
		keeps:   "the relay connects to no proxy at an address that the lists do not allow",
		without: []edit{{"browser/egress.go", `r.Limit(limits.Control(s.Policy, r.Upstream()))`, `_ = limits.Control`}},
		test:    "TestEgressLists$", fails: "a proxy at",
	},
	{
		name:    "dns-tunnel",
		keeps:   "no data leaves in names below hosts that the lists do not allow",
		without: []edit{{"browser/resolver/answer.go", `if printed != sent || !r.c.Limits.AllowsName(name) {`, `if printed != sent {`}},
		test:    "TestAttackEgressHosts$/shell", fails: "other.example fails with",
	},
	{
		name:    "rebinding",
		keeps:   "a name that leads to a private address is not resolved, also when it did not before",
		without: []edit{{"browser/resolver/resolver.go", `if err := r.c.Limits.CheckNamed(r.c.Policy, ip); err != nil {`, `if err := r.c.Limits.CheckNamed(r.c.Policy, ip); err != nil && false {`}},
		test:    "TestAttackEgressHosts$/shell", fails: "inside.site.example fails with",
	},
	{
		name:    "unnamed-addresses",
		keeps:   "a session with hosts reaches no address that its resolver did not find",
		without: []edit{{limitsFile, `			b.outsideNamed(uid, chain, list.Allow, refuse)`, ``}},
		test:    "TestAttackEgressHosts$/shell", fails: "127.77.0.2 fails with",
	},
	{
		name:    "own-resolver",
		keeps:   "the DNS queries of a session go to its own resolver",
		without: []edit{{namesFile, `			&expr.Redir{RegisterProtoMin: 1}})`, `		})`}},
		test:    "TestAttackEgressHosts$/shell", fails: "site.example fails with",
	},
	{
		name:  "others-resolver",
		keeps: "no session uses the resolver of another",
		without: []edit{{namesFile, `		b.rule(browsers, toResolver(), toMachine(), jump(&nftables.Chain{Name: refused}))
		b.to(everybody, `, `		b.to(b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: "nobody"}), `}},
		pkg: "./browser/firewall", test: "TestResolver$", fails: "want refused",
	},
	{
		name:    "own-resolver-ordinary",
		keeps:   "the DNS queries of a session go to its own resolver, as an ordinary user",
		without: []edit{{namespaceFile, `		b.rule(chain, toPort(number, dnsPort), redirectTo(l.Resolver))`, `		_ = number`}},
		test:    "TestAttackEgressHostsOrdinary$/shell", fails: "site.example fails with",
	},
	{
		name:    "unnamed-addresses-ordinary",
		keeps:   "a session with hosts reaches no address that its resolver did not find, as an ordinary user",
		without: []edit{{namespaceFile, `b.limitToLists(namespaceUser, chain, l)`, `_ = chain`}},
		test:    "TestAttackEgressHostsOrdinary$/shell", fails: "127.77.0.2 fails with",
	},
	{
		name:    "earlier-queries-ordinary",
		keeps:   "a DNS query from a port that Chrome used before its session had hosts gets to no name server",
		without: []edit{{namespaceFile, `b.limitToDaemon(chain, l)`, `b.limitToProxy(chain, l)`}},
		pkg:     "./browser/launch", test: "TestNetwork$", fails: "hosts: a query from the same port",
	},
	{
		name:    "resolver-port-ordinary",
		keeps:   "Chrome reaches the sockets of its resolver with DNS queries only",
		without: []edit{{namespaceFile, `	b.rule(browsers, toPort(unix.IPPROTO_UDP, NamespaceResolver), toMachine(), refuse)`, ``}},
		pkg:     "./browser/launch", test: "TestNetwork$", fails: "hosts: the resolver's own port",
	},
	{
		name:    "earlier-addresses-ordinary",
		keeps:   "the addresses of earlier hosts are no longer allowed when the lists change",
		without: []edit{{namespaceFile, `				b.kernel.FlushSet(a.set(b.table))`, `				_ = a`}},
		pkg:     "./browser/firewall", test: "TestAdmitInNamespace$", fails: "with the limits",
	},
	{
		name:    "late-answers",
		keeps:   "a name that was looked up for earlier lists adds no address to those of later ones",
		without: []edit{{"browser/resolver/resolver.go", `	r.answers.Wait()`, ``}},
		pkg:     "./browser/resolver", test: "TestClose$", fails: "Close returned after",
	},
	{
		name:    "webhook-addresses",
		keeps:   "webhooks are not sent to private addresses",
		without: []edit{{"session/events/webhook/send.go", `, Control: policy.Control}`, `}`}},
		test:    "TestAttackReceivers", fails: "a webhook reached a private address",
	},
	{
		name:    "webhook-redirects",
		keeps:   "webhooks follow no redirect",
		without: []edit{{"session/events/webhook/webhook.go", `, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}`, `}}`}},
		test:    "TestAttackReceivers", fails: "a redirect was followed",
	},
	{
		name:  "login-check-addresses",
		keeps: "login checks do not reach private addresses",
		without: []edit{{rulesFile, `		b.to(browsers, egress.NotPublic(), refuse)
		b.rule(browsers, toMachine(), refuse)
`, ""}},
		test: "TestAttackLoginChecks", fails: "a login check reached a private address",
	},
}
