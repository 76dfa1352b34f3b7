package main

// The guards against those who take more than their share: connections, time, places, memory.

var takers = []guard{
	{
		name:    "half-open",
		keeps:   "connections that send nothing do not fill the daemon",
		without: []edit{{"api/connections.go", `	if len(o.open) >= o.most {`, `	if len(o.open) >= o.most && false {`}},
		test:    "TestAttackHalfOpen", fails: "open sockets; --max-connections is",
	},
	{
		name:  "slow-bodies",
		keeps: "an upload that stops is ended",
		without: []edit{{"api/pacedbody.go", `	if !a.cut {
		_ = a.control.SetReadDeadline(at)
	}
`, ""}},
		test: "TestAttackSlowUploads", fails: "FAIL: TestAttackSlowUploads",
	},
	{
		name:  "half-messages",
		keeps: "a CDP client that does not finish a message is closed",
		without: []edit{{"api/websocket.go", `	k.conn.arriving.Store(&arrival{pace{now: k.now, most: k.patience}, k.tooSlow})
`, ""}},
		test: "TestAttackHalfMessages", fails: "its slot is free again",
	},
	{
		name:    "streams",
		keeps:   "a session has a limited number of event streams",
		without: []edit{{"session/events/streams.go", `	case s.sessions[sessionID] >= maxSessionStreams:`, `	case s.sessions[sessionID] >= 2*maxSessionStreams:`}},
		test:    "TestAttackStreams", fails: "stream 100: 200",
	},
	{
		name:    "clients",
		keeps:   "a session has a limited number of CDP clients",
		without: []edit{{"session/capacity/clients.go", `	if c.counts[sessionID] >= c.most {`, `	if c.counts[sessionID] >= 2*c.most {`}},
		test:    "TestAttackClients$/shell", fails: "a client above the limit got",
	},
	{
		name:    "long-messages",
		keeps:   "a CDP message has a limited length",
		without: []edit{{"api/websocket.go", `	ws.SetReadLimit(maxMessage)`, `	ws.SetReadLimit(2 * maxMessage)`}},
		test:    "TestAttackClients$/shell", fails: "the connection was not closed",
	},
	{
		name:    "json-values",
		keeps:   "a body has a limited number of values",
		without: []edit{{"api/json.go", `	case p.read > maxValues:`, `	case p.read > 1000*maxValues:`}},
		test:    "TestAttackManyAtOnce", fails: "crowded bodies",
	},
	{
		name:    "turns",
		keeps:   "a user who comes later does not wait for all creates of another",
		without: []edit{{"session/capacity/slots.go", `if (u < user || u == user && k < key) && s.over(w.Claim) == nil {`, `if found < 0 && (u < user || u == user && k < key) && s.over(w.Claim) == nil {`}},
		test:    "TestAttackCreates$", fails: "places became free",
	},
	{
		name:    "quota-sessions",
		keeps:   "a user has no more sessions than the quota",
		without: []edit{{"session/capacity/slots.go", `		if l.Reached(s.held[l.Share]) {`, `		if l.Reached(s.held[l.Share]) && false {`}},
		test:    "TestAttackQuotas$", fails: "of 50 creates",
	},
	{
		name:  "quota-race",
		keeps: "parallel creates do not pass the quota together",
		without: []edit{
			{"session/capacity/slots.go", `	over := s.over(c)
	if s.free > 0`, `	over := s.over(c)
	s.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	if s.free > 0`},
			{"session/capacity/slots.go", `	"sync"
`, `	"sync"
	"time"
`},
		},
		test: "TestAttackQuotas$", fails: "of 50 creates",
	},
	{
		name:  "quota-snapshots",
		keeps: "a user has no more snapshots than the quota, counting those that live sessions will make",
		without: []edit{{"session/quotas.go", `		claim.Limits = append(claim.Limits, l)
`, ""}},
		test: "TestAttackQuotasOfStorage$/snapshots", fails: "sessions were made",
	},
	{
		name:    "quota-imports",
		keeps:   "a user has no more imports and sockets at once than the quota",
		without: []edit{{"session/quota/counter.go", `		if n := c.held[l.Share]; l.Reached(n) {`, `		if n := c.held[l.Share]; l.Reached(n) && false {`}},
		test:    "TestAttackQuotasOfConnections$/imports", fails: "imports were made beside one that runs",
	},
	{
		name:    "quota-requests",
		keeps:   "a key makes no more requests in a second than the quota",
		without: []edit{{"session/quota/rates.go", `		if reached == nil && limiter.TokensAt(now) < 1 {`, `		if false {`}},
		test:    "TestAttackQuotasOfConnections$/requests", fails: "of 50 requests",
	},
	{
		name:    "memory",
		keeps:   "a page takes no more memory than its session may",
		without: []edit{{"browser/cgroup/v1.go", `	if err := v.limitMemory(group, l.Memory); err != nil {`, `	if err := v.limitMemory(group, 0); err != nil {`}},
		test:    "TestAttackBombs$/memory_of_a_page", fails: "the limit is reached", bounded: true,
	},
	{
		name:    "processes",
		keeps:   "a page starts no more processes and threads than its session may",
		without: []edit{{"browser/cgroup/v1.go", `write(v.file(pids, group, "pids.max"), orMax(l.Tasks))`, `write(v.file(pids, group, "pids.max"), orMax(0))`}},
		test:    "TestAttackBombs$/workers", fails: "the limit is reached", bounded: true,
	},
	{
		name:    "tabs",
		keeps:   "the same for tabs",
		without: []edit{{"browser/cgroup/v1.go", `write(v.file(pids, group, "pids.max"), orMax(l.Tasks))`, `write(v.file(pids, group, "pids.max"), orMax(0))`}},
		test:    "TestAttackTabBomb$", fails: "processes and threads at once", bounded: true,
	},
	{
		name:    "disk",
		keeps:   "a page writes no more than its session may, in bytes and in files",
		without: []edit{{"browser/usage.go", `	if last.used <= limit {`, `	if last.used <= limit || true {`}},
		test:    "TestAttackBombs$/^files$", fails: "the limit is reached", bounded: true,
	},
	{
		name:    "inodes",
		keeps:   "an empty file counts",
		without: []edit{{"browser/launch/disk.go", `max(stat.Blocks*blockSize, perFile)`, `max(stat.Blocks*blockSize, 0*perFile)`}},
		test:    "TestAttackBombs$/empty files", fails: "the limit is reached", bounded: true, long: true,
	},
}
