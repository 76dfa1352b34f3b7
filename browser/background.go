package browser

import "time"

// backgroundTime is how long a Chrome that nobody waits for has a small share of the processors
// while it starts or loads an environment. Without an end, it would pass its deadlines on a
// machine that is always busy, and start again and again.
const backgroundTime = 20 * time.Second

// background gives a process a small share of the processors for backgroundTime, or until the
// caller calls end.
func background(p interface{ Background(on bool) }) (end func()) {
	p.Background(true)
	timer := time.AfterFunc(backgroundTime, func() { p.Background(false) })
	return func() {
		timer.Stop()
		p.Background(false)
	}
}
