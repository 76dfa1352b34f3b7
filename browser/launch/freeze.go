package launch

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// freezePause is the time between two checks whether the threads have stopped. A thread
// finishes its system call first.
const freezePause = 500 * time.Microsecond

// Freeze stops the whole tree with SIGSTOP. It returns when every thread of every process
// has stopped, so that nothing writes to the user data directory. On an error, Timeout or
// BrowserFailed, the tree has been continued. Freezing a frozen tree does nothing.
func (p *Process) Freeze(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return nil
	}
	p.held.Store(true)
	stopped, err := p.stop(ctx)
	if err != nil {
		return errors.Join(err, p.resume(slices.DeleteFunc(stopped, proc.hasEnded)))
	}
	p.frozen, p.stopped = true, stopped
	return nil
}

// Thaw continues a frozen tree. It fails with BrowserFailed if the tree has died in the
// meantime. Thawing a running tree does nothing.
func (p *Process) Thaw(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Timeout, "launch.thaw", "")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.frozen {
		return nil
	}
	// Stopped processes start no others, so the tree has not changed. Finding it again
	// among all processes of the machine would take longer than the rest.
	if err := p.resume(slices.DeleteFunc(p.stopped, proc.hasEnded)); err != nil {
		return err
	}
	p.frozen, p.stopped = false, nil
	return nil
}

// Pause stops the tree while do runs. No other call can thaw it meanwhile. A frozen tree
// stays frozen. The errors are those of do, Freeze and Thaw.
func (p *Process) Pause(ctx context.Context, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return do()
	}
	p.held.Store(true)
	stopped, err := p.stop(ctx)
	if err == nil {
		err = do()
	}
	return errors.Join(err, p.resume(slices.DeleteFunc(stopped, proc.hasEnded)))
}

// Frozen reports whether the tree is frozen.
func (p *Process) Frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// stop sends SIGSTOP to each process, parents first so that they start no more. It
// repeats until a listing of the tree contains only stopped processes. It returns the
// processes that it stopped, also on an error. They include processes that have left the
// tree because their parent was killed.
func (p *Process) stop(ctx context.Context) ([]proc, error) {
	type id struct {
		pid   int
		start uint64
	}
	var sent []proc
	stopped := map[id]bool{} // stopped processes stay stopped
	for {
		tree := p.tree()
		if !p.leads(tree) {
			return sent, fault.New(fault.BrowserFailed, "launch.freeze", "")
		}
		var moving []proc
		for _, q := range tree {
			if !stopped[id{q.pid, q.start}] {
				// Fails only when the process has just ended.
				_ = syscall.Kill(q.pid, syscall.SIGSTOP)
				moving = append(moving, q)
			}
		}
		if sent = append(sent, moving...); len(moving) == 0 {
			return sent, nil
		}
		for _, q := range moving {
			if err := awaitStopped(ctx, q.pid); err != nil {
				return sent, err
			}
			stopped[id{q.pid, q.start}] = true
		}
	}
}

// awaitStopped returns when a process that got SIGSTOP has stopped.
func awaitStopped(ctx context.Context, pid int) error {
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

// resume sends SIGCONT to each process of a tree, children first, so that a parent never
// runs with stopped children.
func (p *Process) resume(tree []proc) error {
	defer p.held.Store(false)
	for _, q := range slices.Backward(tree) {
		_ = syscall.Kill(q.pid, syscall.SIGCONT) // as above
	}
	if !p.leads(tree) {
		return fault.New(fault.BrowserFailed, "launch.thaw", "")
	}
	return nil
}

// leads reports whether the tree contains Chrome's main process.
func (p *Process) leads(tree []proc) bool {
	return slices.ContainsFunc(tree, func(q proc) bool { return q.pid == p.pid })
}
