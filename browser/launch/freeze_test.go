package launch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// states returns how many processes of the tree have stopped and how many have not.
func states(p *Process) (still, moving int) {
	for _, pid := range p.Processes() {
		if stopped(pid) {
			still++
		} else {
			moving++
		}
	}
	return still, moving
}

// A frozen tree uses no CPU time and answers again after Thaw.
func TestFreeze(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "data:text/html,<script>setInterval(()=>{for(let i=0;i<1e6;i++);},1)</script>"})
	c := newClient(t, p)
	c.version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	for range 3 {
		begin := p.CPUTime()
		await(t, "a page that uses processor time", func() bool { return p.CPUTime() > begin+50*time.Millisecond })
		for range 2 { // freezing again does nothing
			if err := p.Freeze(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if still, moving := states(p); !p.Frozen() || still < 5 || moving != 0 {
			t.Fatalf("frozen %v, %d processes have stopped, %d have not", p.Frozen(), still, moving)
		}
		frozen := p.CPUTime()
		<-time.After(200 * time.Millisecond) // nothing may happen in this time
		if used := p.CPUTime() - frozen; used != 0 {
			t.Errorf("a frozen tree used %v", used)
		}
		for range 2 {
			if err := p.Thaw(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if p.Frozen() {
			t.Error("the tree is still frozen after Thaw")
		}
		c.version()
	}
}

// After a failed freeze the tree runs.
func TestFreezeFails(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Freeze(over); !fault.Is(err, fault.Timeout) {
		t.Fatalf("freeze with an ended context: %v", err)
	}
	if p.Frozen() {
		t.Error("the tree is frozen after a failed freeze")
	}
	c.version()
	await(t, "every process runs", func() bool { still, _ := states(p); return still == 0 })
}

// Pause stops the tree for the whole call, even if other calls arrive, and continues it
// however the call ends. A frozen tree stays frozen.
func TestPause(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	broken := errors.New("broken on purpose")
	thawed := make(chan error, 1)
	tree := p.Processes()
	err := p.Pause(within(t), func() error {
		go func() { thawed <- p.Thaw(context.WithoutCancel(t.Context())) }()
		if len(tree) < 5 || slices.ContainsFunc(tree, func(pid int) bool { return !stopped(pid) }) {
			t.Errorf("not all of %v have stopped", tree)
		}
		return broken
	})
	if !errors.Is(err, broken) || p.Frozen() {
		t.Errorf("frozen %t, %v", p.Frozen(), err)
	}
	if err := <-thawed; err != nil {
		t.Error(err)
	}
	c.version()
	if err := p.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(within(t), func() error { return nil }); err != nil || !p.Frozen() {
		t.Errorf("frozen %t, %v", p.Frozen(), err)
	}
	over, cancel := context.WithCancel(t.Context())
	if err := p.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.Pause(over, func() error { return broken }); !fault.Is(err, fault.Timeout) || errors.Is(err, broken) {
		t.Errorf("a pause with an ended context: %v", err)
	}
	c.version()
}
