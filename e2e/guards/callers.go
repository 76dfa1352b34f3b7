package main

// The guards between users, keys and tickets, and those of the audit log.

const ticketsFile = "session/access/sessiontickets.go"

var callers = []guard{
	{
		name:    "other-users",
		keeps:   "a key reaches nothing of another user",
		without: []edit{{"session/access/caller.go", `return c.UserID == userID || c.ForEveryUser() }`, `return true || c.UserID == userID || c.ForEveryUser() }`}},
		test:    "TestAttackUsers$", fails: "FAIL: TestAttackUsers",
	},
	{
		name:    "repeated-requests",
		keeps:   "an Idempotency-Key does not give the answer of another key's request",
		without: []edit{{"api/idempotency.go", `scope := c.caller.KeyID + " " + c.Request().Method`, `scope := c.Request().Method`}},
		test:    "TestAttackUsers$", fails: "repeats another's answer",
	},
	{
		name:    "ticket-purposes",
		keeps:   "a ticket to look does not drive",
		without: []edit{{ticketsFile, `mac.Write([]byte(string(p) + " " + id))`, `mac.Write([]byte(id))`}},
		test:    "TestAttackRights$/a ticket to look", fails: "with the view ticket",
	},
	{
		name:  "ticket-sessions",
		keeps: "a ticket opens no other session",
		without: []edit{{ticketsFile, `	_, _ = rand.Read(secret) // never fails (crypto/rand)
`, `	_ = rand.Read
`}},
		test: "TestAttack$/keys and tickets of another", fails: "was opened",
	},
	{
		name:  "deleted-keys",
		keeps: "the connections of a deleted key end",
		without: []edit{{"session/access/connections.go", `	for c := range o.open[keyID] {
		c.end(errKeyDeleted)
	}
`, ""}},
		test: "TestAttackRights$/a deleted key", fails: "stays open",
	},
	{
		name:    "foreign-pages",
		keeps:   "a page of another origin opens no WebSocket of the daemon",
		without: []edit{{"api/websocket.go", `	if !o.sameOrigin(r) {`, `	if !o.sameOrigin(r) && false {`}},
		test:    "TestAttack$/keys and tickets of another", fails: "want 403",
	},
	{
		name:  "guessed-keys",
		keeps: "keys cannot be guessed fast from one address",
		without: []edit{
			{"api/attempts.go", `	if left.TokensAt(a.now())-float64(left.trying) < 1 {`, `	if false {`},
			{"api/attempts.go", `	if !a.allowanceOf(from).AllowN(a.now(), 1) {`, `	if !a.allowanceOf(from).AllowN(a.now(), 1) && false {`},
		},
		also: "what refuses a guess before it is looked up, and what refuses its answer",
		test: "TestAttackRights$/guessed keys", fails: "of 300 guesses were refused",
	},
	{
		name:    "forged-addresses",
		keeps:   "a guesser gets no more attempts by naming other addresses",
		without: []edit{{"api/urls.go", `for i := len(hops) - 1; i >= 0 && o.proxy(addr); i-- {`, `for i := len(hops) - 1; i >= 0; i-- {`}},
		test:    "TestAttackRights$/guessed keys", fails: "of 300 guesses were refused",
	},
	{
		name:    "audit-hashes",
		keeps:   "a changed entry of the audit log is found",
		without: []edit{{"profiles/auditchain.go", `	case e.Hash != e.Sum():`, `	case false:`}},
		test:    "TestAudit$", fails: "a changed entry",
	},
	{
		name:  "audit-gaps",
		keeps: "a removed entry of the audit log is found",
		without: []edit{
			{"profiles/auditchain.go", `	case c.Count > 0 && e.Number > c.Last.Number+1:`, `	case false:`},
			{"profiles/auditchain.go", `	case c.Count > 0 && e.Number != c.Last.Number+1:`, `	case false:`},
			{"profiles/auditchain.go", `	case c.Count > 0 && e.Previous != c.Last.Hash:`, `	case false:`},
		},
		also: "the numbers, and the hash of the entry before",
		test: "TestAudit$", fails: "a removed entry",
	},
}
