package launch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// states returns how many processes of the tree stand still and how many do
// not.
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

// A frozen tree uses no processor time and answers again once thawed.
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
			t.Fatalf("frozen %v, %d processes stand still, %d move", p.Frozen(), still, moving)
		}
		frozen := p.CPUTime()
		<-time.After(200 * time.Millisecond) // what is measured is that nothing happens in it
		if used := p.CPUTime() - frozen; used != 0 {
			t.Errorf("a frozen tree used %v", used)
		}
		for range 2 {
			if err := p.Thaw(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if p.Frozen() {
			t.Error("thawed and frozen")
		}
		c.version()
	}
}

// A freeze that does not come about leaves the tree running.
func TestFreezeFails(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Freeze(over); !fault.Is(err, fault.Timeout) {
		t.Fatalf("freeze in no time: %v", err)
	}
	if p.Frozen() {
		t.Error("failed and frozen")
	}
	c.version()
	await(t, "every process runs", func() bool { still, _ := states(p); return still == 0 })
}

// A tree that stands still for a call does so whatever else is asked meanwhile, and
// runs on however the call ends; one that was frozen stays so.
func TestPause(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	broken := errors.New("broken on purpose")
	thawed := make(chan error, 1)
	tree := p.Processes()
	err := p.Pause(within(t), func() error {
		go func() { thawed <- p.Thaw(context.WithoutCancel(t.Context())) }()
		if len(tree) < 5 || slices.ContainsFunc(tree, func(pid int) bool { return !stopped(pid) }) {
			t.Errorf("not all of %v stand still", tree)
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
		t.Errorf("a pause in no time: %v", err)
	}
	c.version()
}
