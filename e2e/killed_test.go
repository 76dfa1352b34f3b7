package e2e

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A daemon that is killed at any point, under load, loses nothing that it has answered,
// and does not repeat or change anything. Events, messages, notes and snapshots are
// there after each kill, and every session can be resumed.
func TestFaultKilledUnderLoad(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	visited := httptest.NewServer(http.HandlerFunc(site))
	defer visited.Close()
	if !storetest.Torture() {
		w := newLives(t, visited.URL, seed)
		w.used(60)
		w.starting()
		w.used(60)
		w.examineOnce(func(*life) {})
		w.logTotals()
		return
	}
	const kills, each = 100, 25
	for n := uint64(0); n < kills/each && !t.Failed(); n++ {
		w := newLives(t, visited.URL, seed+n)
		w.all = append(w.all, newKnown("whole", "ada", obj{"engine": "chrome"}))
		w.visitors = true
		w.used(300)
		for w.kills < each-1 && !t.Failed() {
			switch w.random.IntN(4) {
			case 0:
				w.starting()
			case 1:
				w.resuming()
			default:
				w.used(300)
			}
		}
		w.examineOnce(func(l *life) {
			for _, k := range w.all {
				l.startOrResume(k)
			}
		})
		w.logTotals()
	}
}

// lives are the lives of daemons on one data directory.
type lives struct {
	*testing.T
	d        *daemon.Daemon
	site     string
	seed     uint64
	random   *rand.Rand
	number   int
	kills    int
	visitors bool // other sessions come and go meanwhile
	all      []*known
	came     []*known // those other sessions, from earlier lives
	alone    *known   // a note without a session
}

func newLives(t *testing.T, site string, seed uint64) *lives {
	w := &lives{T: t, d: daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--max-sessions", "20"}}),
		site: site, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), alone: newKnown("alone", "default", nil)}
	auto := obj{"interval_seconds": 5, "on": []string{"navigation", "login"}, "keep": 2}
	w.all = []*known{
		newKnown("auto", "ada", obj{"engine": "shell", "auto_save": auto}),
		newKnown("both", "bob", obj{"engine": "shell", "auto_save": auto}),
		newKnown("asked", "ada", obj{"engine": "shell", "on_timeout": "discard"}),
		newKnown("never", "bob", obj{"engine": "shell", "on_timeout": "discard"}),
	}
	w.all[3].unsaved = true
	return w
}

// used is a life in which everything is checked and every session is resumed. The
// sessions are used until the daemon is killed, after a maximum number of answers.
func (w *lives) used(most int64) {
	w.examineOnce(func(l *life) {
		w.resumeAll(l)
		l.await(w.random.Int64N(most), 10*time.Second)
	})
}

// resuming is a life that is killed while sessions are resumed, or soon after.
func (w *lives) resuming() {
	l := w.begin()
	l.users.Go(func() { w.resumeAll(l) })
	l.await(w.random.Int64N(10), w.within(1500*time.Millisecond))
	w.kill(l)
}

// starting is a life that is killed before the daemon listens, or at about that time.
func (w *lives) starting() {
	w.d.KillStarting(w, w.within(time.Second))
	w.kills++
}

func (w *lives) within(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most)))
}

// examineOnce checks what the last kill has left, and kills the daemon after a while.
func (w *lives) examineOnce(use func(*life)) {
	w.Helper()
	l := w.begin()
	if left := w.d.Processes(); len(left) > 0 {
		w.Errorf("processes of the killed daemon remain: %v", left)
	}
	if left := runDirs(w, w.d); len(left) > 0 {
		w.Errorf("run directories of the killed daemon remain: %q", left)
	}
	w.came = slices.DeleteFunc(w.came, func(k *known) bool { return k.gone })
	for _, k := range slices.Concat(w.all, w.came) {
		l.examine(k)
	}
	l.notebooks(append([]*known{w.alone}, w.all...))
	use(l)
	w.kill(l)
}

// begin starts the daemon if it does not run.
func (w *lives) begin() *life {
	if w.kills > 0 {
		w.d.Restart(w)
	}
	w.number++
	return live(w, w.d, w.number, w.site, w.seed)
}

func (w *lives) kill(l *life) {
	l.kill()
	w.kills++
}

// resumeAll resumes all sessions at once and starts their clients. It returns when all
// sessions run.
func (w *lives) resumeAll(l *life) {
	l.notes(w.alone)
	var all sync.WaitGroup
	for i, k := range w.all {
		all.Go(func() {
			cdp := l.startOrResume(k)
			if cdp == "" {
				return
			}
			l.says(k, "USER")
			l.says(k, []string{"THOUGHT", "LOG", "QUESTION"}[i%3])
			l.follows(k)
			l.drives(k, cdp)
			if i%2 == 0 {
				l.turns(k)
				l.notes(k)
			}
			if k.id != "auto" && k.id != "never" {
				l.saves(k)
			}
		})
	}
	for _, k := range w.came {
		all.Go(func() { l.discardOld(k) })
	}
	all.Wait()
	if w.visitors {
		l.visits(&w.came)
	}
}

// logTotals logs the totals, after the last Chrome has ended.
func (w *lives) logTotals() {
	nothingRuns(w, w.d, grace)
	w.Logf("%d kills", w.kills)
	for _, k := range w.all {
		w.Logf("%s: %d events in %d runs, %d messages of which %d were answered, %d notes, %d snapshots, %d visits",
			k.id, len(k.listed), len(k.runs), len(k.messages), len(k.said), len(k.noted), len(k.saved), k.visits)
	}
}
