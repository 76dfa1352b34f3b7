package console

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

const (
	cookieName = "stasis_console"
	// loginPeriod is how long a person stays signed in. maxLogins bounds the memory.
	// maxLoginsOfKey keeps one key from signing out the people of all others.
	loginPeriod    = 12 * time.Hour
	maxLogins      = 1000
	maxLoginsOfKey = 20
)

// login is a person who is signed in. The cookie has its ID; the key stays in the daemon.
type login struct {
	secret  string // the API key
	user    string // the key's user
	expires time.Time
	notice  *notice // for the next page; guarded by logins.mu
}

// notice is shown once: what was done.
type notice struct {
	Text string
	Curl []string
}

// logins are the people who are signed in. They are in memory only. Its methods are safe for
// concurrent use.
type logins struct {
	now func() time.Time

	mu   sync.Mutex
	open map[string]*login
}

func newLogins(now func() time.Time) *logins {
	return &logins{now: now, open: map[string]*login{}}
}

// add signs a person in and returns the ID for the cookie. If there are too many, it signs out
// the oldest login: of this key, or of any.
func (l *logins) add(secret, user string) (id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for id, one := range l.open {
		if !now.Before(one.expires) {
			delete(l.open, id)
		}
	}
	if oldest, n := l.oldest(func(one *login) bool { return one.secret == secret }); n >= maxLoginsOfKey {
		delete(l.open, oldest)
	} else if oldest, n := l.oldest(func(*login) bool { return true }); n >= maxLogins {
		delete(l.open, oldest)
	}
	id = rand.Text()
	l.open[id] = &login{secret: secret, user: user, expires: now.Add(loginPeriod)}
	return id
}

// oldest returns the login among some that ends first, and how many these are. The caller
// holds the lock.
func (l *logins) oldest(among func(*login) bool) (oldest string, n int) {
	for id, one := range l.open {
		if !among(one) {
			continue
		}
		if n++; n == 1 || one.expires.Before(l.open[oldest].expires) {
			oldest = id
		}
	}
	return oldest, n
}

// of returns who sent a request, or nil.
func (l *logins) of(r *http.Request) *login {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.open[cookie.Value]
	if one == nil || !l.now().Before(one.expires) {
		return nil
	}
	return one
}

// remove signs out who sent a request.
func (l *logins) remove(r *http.Request) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, cookie.Value)
}

// leaveNotice keeps a notice for the person's next page.
func (l *logins) leaveNotice(one *login, n *notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.notice = n
}

// takeNotice returns the notice for the person's next page, once.
func (l *logins) takeNotice(one *login) *notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := one.notice
	one.notice = nil
	return n
}
