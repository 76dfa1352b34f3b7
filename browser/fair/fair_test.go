package fair

import (
	"testing"
	"time"
)

// clock is a clock that the tests set, and two processors.
type clock struct{ now time.Time }

func (c *clock) users() *Users {
	c.now = time.Unix(1, 0)
	return New(2, func() time.Time { return c.now })
}

// fake is a Chrome that uses some processors.
type fake struct {
	*Member
	uses          float64
	used          time.Duration
	busy, yielded bool
}

func (f *fake) UsedCPU() (time.Duration, bool) { return f.used, true }
func (f *fake) Busy(on bool)                   { f.busy = on }
func (f *fake) Yield(on bool)                  { f.yielded = on }

func (c *clock) join(u *Users, owner string, uses float64) *fake {
	f := &fake{uses: uses}
	f.Member = u.Join(owner, f)
	return f
}

// run lets some time pass.
func (c *clock) run(d time.Duration, all ...*fake) {
	const step = 500 * time.Millisecond
	for range d / step {
		c.now = c.now.Add(step)
		for _, f := range all {
			f.used += time.Duration(f.uses * float64(step))
			f.Measure()
		}
	}
}

// many returns Chromes of a user that together use all processors.
func (c *clock) many(u *Users, owner string) (all []*fake) {
	for range 10 {
		all = append(all, c.join(u, owner, 0.2))
	}
	return all
}

// behind counts the Chromes with less than their share.
func behind(all []*fake) (n int) {
	for _, f := range all {
		if f.yielded || f.busy {
			n++
		}
	}
	return n
}

func yielding(all []*fake) (n int) {
	for _, f := range all {
		if f.yielded {
			n++
		}
	}
	return n
}

// A user with many busy Chromes yields to others, with its new Chromes too, until it is calm.
func TestUserYields(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve, ann := c.many(u, "eve"), c.join(u, "ann", 0.3)
	everyone := append([]*fake{ann}, eve...)
	c.run(time.Second, everyone...)
	if n := yielding(everyone); n != 0 {
		t.Errorf("%d Chromes yield after a second", n)
	}
	c.run(10*time.Second, everyone...)
	if n := yielding(eve); n != len(eve) || ann.yielded || !u.Yields("eve") || u.Yields("ann") {
		t.Errorf("%d of the busy user's Chromes yield; the other one's: %v", n, ann.yielded)
	}
	late := c.join(u, "eve", 0)
	if !late.yielded {
		t.Error("a new Chrome of the busy user does not yield")
	}
	for _, f := range eve {
		f.uses = 0
	}
	c.run(leastHold-5*time.Second, everyone...)
	if n := behind(eve); n != len(eve) {
		t.Errorf("%d Chromes go first when the user has used little for a moment", n)
	}
	c.run(2*leastHold, everyone...)
	if n := behind(append(eve, late)); n != 0 {
		t.Errorf("%d Chromes of a calm user have less than their share", n)
	}
}

// A user that yields and gets next to nothing has a small share until it has got a little, and
// then again.
func TestNotStarved(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve, ann := c.many(u, "eve"), c.join(u, "ann", 0.1)
	c.run(10*time.Second, append(eve, ann)...)
	ends := 0
	for range 60 {
		before := eve[0].yielded
		for _, f := range eve {
			f.uses = 0.05
			if f.yielded { // other programs take everything
				f.uses = 0
			}
		}
		c.run(500*time.Millisecond, append(eve, ann)...)
		if before && !eve[0].yielded {
			ends++
		}
		if behind(eve) != len(eve) {
			t.Fatal("a user goes first that has used too much for a while")
		}
	}
	if ends < 5 {
		t.Errorf("within 30 s the user had %d times more than nothing", ends)
	}
}

// Users who use what a yielding one leaves them do not yield too.
func TestOthersDoNotYield(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve, ann, ben := c.many(u, "eve"), c.join(u, "ann", 0.1), c.join(u, "ben", 0.1)
	everyone := append([]*fake{ann, ben}, eve...)
	c.run(10*time.Second, everyone...)
	ann.uses, ben.uses = 0.75, 0.75
	for _, f := range eve {
		f.uses = 0.05
	}
	c.run(3*leastHold, everyone...)
	if yielding(eve) != len(eve) || ann.yielded || ben.yielded {
		t.Errorf("%d of the busy user's Chromes yield; those of the others: %v, %v", yielding(eve), ann.yielded, ben.yielded)
	}
}

// A user that becomes busy again soon yields longer: while it yields, it cannot show what it
// would use.
func TestYieldsLonger(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve, ann := c.join(u, "eve", 2), c.join(u, "ann", 0)
	yields := func() (long time.Duration) {
		for eve.uses = 2; !eve.yielded; {
			c.run(time.Second, eve, ann)
		}
		for eve.uses = 0; eve.busy; long += time.Second {
			c.run(time.Second, eve, ann)
		}
		return long
	}
	first, second := yields(), yields()
	if first < leastHold || second < 2*leastHold {
		t.Errorf("yields for %s, then for %s", first, second)
	}
	c.run(2*forgetAfter, eve, ann)
	if third := yields(); third >= second {
		t.Errorf("yields for %s after a long calm time", third)
	}
}

// A user alone yields to nobody, but at once to one that comes, until that has gone.
func TestAlone(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve := c.many(u, "eve")
	c.run(20*time.Second, eve...)
	if yielding(eve) != 0 || u.Yields("eve") {
		t.Error("a user that is alone yields")
	}
	ann := c.join(u, "ann", 0)
	if n := yielding(eve); n != len(eve) || ann.yielded {
		t.Errorf("%d Chromes yield to a user that has come", n)
	}
	ann.Leave()
	if n := yielding(eve); n != 0 {
		t.Errorf("%d Chromes yield when the other user has gone", n)
	}
}

// Of one user's Chromes, one that keeps processors busy gets a small share until it is calm.
func TestBusyChrome(t *testing.T) {
	c := &clock{}
	u := c.users()
	hog, calm := c.join(u, "ann", 1.8), c.join(u, "ann", 0.1)
	c.run(10*time.Second, hog, calm)
	if !hog.busy || calm.busy || hog.yielded || calm.yielded {
		t.Errorf("the busy one: %+v; the calm one: %+v", hog, calm)
	}
	calm.uses = 0
	c.run(time.Minute, hog, calm)
	if hog.busy {
		t.Error("a busy Chrome has a small share though no other uses anything")
	}
	calm.uses = 0.1
	c.run(10*time.Second, hog, calm)
	if !hog.busy {
		t.Error("a busy Chrome has its share though another uses some")
	}
	hog.uses = 0
	c.run(60*time.Second, hog, calm)
	if hog.busy {
		t.Error("a calm Chrome has a small share")
	}
}

// What a Chrome used before it had an owner does not count, and users that have gone are
// forgotten once they are calm.
func TestForgotten(t *testing.T) {
	c := &clock{}
	u := c.users()
	spare := &fake{used: time.Hour}
	spare.Member = u.Join("ann", spare)
	c.run(time.Second, spare)
	if u.users["ann"].rate != 0 {
		t.Errorf("the start of a spare counts: %g", u.users["ann"].rate)
	}
	eve := c.join(u, "eve", 2)
	c.run(10*time.Second, eve, spare)
	eve.Leave()
	eve.Leave()
	eve.Measure()
	if again := c.join(u, "eve", 0); !again.yielded {
		t.Error("a busy user is calm when it has ended its sessions")
	} else {
		again.Leave()
	}
	c.run(5*time.Minute, spare)
	if len(u.users) != 1 {
		t.Errorf("%d users are remembered", len(u.users))
	}
}

// Without control groups nobody yields.
func TestNone(t *testing.T) {
	var u *Users
	m := u.Join("ann", &fake{})
	m.Measure()
	m.Leave()
	if u.Yields("ann") {
		t.Error("yields")
	}
}

// Beside other programs, which take most of the processors, a user yields that uses most of
// what is left.
func TestOtherPrograms(t *testing.T) {
	c := &clock{}
	u := c.users()
	eve, ann, ben := c.join(u, "eve", 0.5), c.join(u, "ann", 0.15), c.join(u, "ben", 0.15)
	c.run(time.Minute, eve, ann, ben)
	if !eve.yielded || ann.yielded || ben.yielded {
		t.Errorf("with 0.8 processors for three: %v, %v, %v", eve.yielded, ann.yielded, ben.yielded)
	}
}

// Users with equal use do not yield to each other, whatever they use.
func TestEqualUsers(t *testing.T) {
	for _, each := range []float64{0.01, 0.2, 0.6} {
		c := &clock{}
		u := c.users()
		all := []*fake{c.join(u, "ann", each), c.join(u, "ben", each), c.join(u, "eve", each)}
		c.run(time.Minute, all...)
		if n := yielding(all); n != 0 {
			t.Errorf("%d of three users yield that use %g processors each", n, each)
		}
	}
}
