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
// before it looks at them again.
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
	stopped, err := p.stop(ctx)
	if err != nil {
		return errors.Join(err, p.resume(slices.DeleteFunc(stopped, proc.over)))
	}
	p.frozen, p.stood = true, stopped
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
	// What stands still starts nothing, so the tree is the one that was stopped:
	// looking for it among all processes of a machine takes longer than all else.
	if err := p.resume(slices.DeleteFunc(p.stood, proc.over)); err != nil {
		return err
	}
	p.frozen, p.stood = false, nil
	return nil
}

// Pause stops the tree for the time of a call; nobody thaws it meanwhile. A tree
// that is frozen stays so. Its own errors are those of Freeze and Thaw.
func (p *Process) Pause(ctx context.Context, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return do()
	}
	stopped, err := p.stop(ctx)
	if err == nil {
		err = do()
	}
	return errors.Join(err, p.resume(slices.DeleteFunc(stopped, proc.over)))
}

// Frozen reports whether the tree is frozen.
func (p *Process) Frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// stop sends SIGSTOP to each process, parents first so that they start no
// more, until all that a look at the tree finds are known to stand still. It
// returns whom it has stopped, after an error too: also those that are not in the
// tree any more, for their parent was killed meanwhile.
func (p *Process) stop(ctx context.Context) ([]proc, error) {
	type id struct {
		pid   int
		start uint64
	}
	var sent []proc
	stands := map[id]bool{} // who has been stopped stays so
	for {
		tree := p.tree()
		if !p.leads(tree) {
			return sent, fault.New(fault.BrowserFailed, "launch.freeze", "")
		}
		var moving []proc
		for _, q := range tree {
			if !stands[id{q.pid, q.start}] {
				// Fails only when the process has just ended.
				_ = syscall.Kill(q.pid, syscall.SIGSTOP)
				moving = append(moving, q)
			}
		}
		if sent = append(sent, moving...); len(moving) == 0 {
			return sent, nil
		}
		for _, q := range moving {
			if err := standing(ctx, q.pid); err != nil {
				return sent, err
			}
			stands[id{q.pid, q.start}] = true
		}
	}
}

// standing returns when a process that was told to stop stands still.
func standing(ctx context.Context, pid int) error {
	for {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(err, fault.Timeout, "launch.freeze", "")
		}
		if stopped(pid) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(freezePause):
		}
	}
}

// resume sends SIGCONT to each process of a tree, children first: a parent that
// wakes must not find them asleep.
func (p *Process) resume(tree []proc) error {
	for _, q := range slices.Backward(tree) {
		_ = syscall.Kill(q.pid, syscall.SIGCONT) // as above
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
