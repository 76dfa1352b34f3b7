package launch

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// freezePause is how long Freeze lets threads finish their system calls
// before it looks at the tree again.
const freezePause = 500 * time.Microsecond

// Freeze stops the whole tree with SIGSTOP and returns when every thread of
// every process stands still, so that nothing writes to the datadir any more.
// When it fails, with Timeout or BrowserFailed, the tree has been let go on.
// Freezing a frozen tree does nothing.
func (p *Process) Freeze(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return nil
	}
	if err := p.stop(ctx); err != nil {
		return errors.Join(err, p.resume())
	}
	p.frozen = true
	return nil
}

// Thaw lets a frozen tree go on. It fails with BrowserFailed when the tree
// has died meanwhile; thawing a running one does nothing.
func (p *Process) Thaw(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Timeout, "launch.thaw", "")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.frozen {
		return nil
	}
	if err := p.resume(); err != nil {
		return err
	}
	p.frozen = false
	return nil
}

// Frozen reports whether the tree is frozen.
func (p *Process) Frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// stop sends SIGSTOP to each process, parents first so that they start no
// more, until a look at the tree finds no new process and no moving thread.
func (p *Process) stop(ctx context.Context) error {
	type id struct {
		pid   int
		start uint64
	}
	sent := map[id]bool{}
	for {
		tree, still := p.tree(), true
		if !p.leads(tree) {
			return fault.New(fault.BrowserFailed, "launch.freeze", "")
		}
		for _, q := range tree {
			switch key := (id{q.pid, q.start}); {
			case !sent[key]:
				sent[key], still = true, false
				// Fails only when the process has just ended.
				_ = syscall.Kill(q.pid, syscall.SIGSTOP)
			case !stopped(q.pid):
				still = false
			}
		}
		if still {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "launch.freeze", "")
		case <-time.After(freezePause):
		}
	}
}

// resume sends SIGCONT to each process, children first: a parent that wakes
// must not find them asleep.
func (p *Process) resume() error {
	tree := p.tree()
	for i := len(tree) - 1; i >= 0; i-- {
		_ = syscall.Kill(tree[i].pid, syscall.SIGCONT) // as above
	}
	if !p.leads(tree) {
		return fault.New(fault.BrowserFailed, "launch.thaw", "")
	}
	return nil
}

// leads reports whether Chrome's main process is alive in the tree.
func (p *Process) leads(tree []proc) bool {
	return slices.ContainsFunc(tree, func(q proc) bool { return q.pid == p.pid })
}
