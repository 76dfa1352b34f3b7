package webapp

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
)

// process is a started application. It leads its own process group, so that nothing it
// starts outlives it.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed after Wait for the leader

	mu  sync.Mutex
	out bytes.Buffer
}

// start runs cmd in its own process group until stop. If this program is killed first,
// the group dies with it.
func start(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w (make test installs it)", name, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its output shows how it ended
	}()
	return p, nil
}

// stop kills the whole group and waits for its leader. Its data is discarded, so it need
// not end gracefully.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	<-p.done
}

// Write stores the process's output. os/exec calls it.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// output returns what the process has printed so far.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}
