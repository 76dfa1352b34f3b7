package webapp

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
)

// process is a started application. It leads a process group of its own, so
// that nothing it starts outlives it.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed once the leader was waited for

	mu  sync.Mutex
	out bytes.Buffer
}

// start runs cmd in its own process group until stop. The group dies with this
// program too, should that be killed before it can stop it.
func start(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w (make test installs it)", name, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended shows in its output
	}()
	return p, nil
}

// stop kills the whole group and waits for its leader. Nobody keeps their data, so
// there is nothing to end gracefully for.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone already is fine
	<-p.done
}

// Write takes the process's output; exec calls it.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// output is what the process has printed so far.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}
