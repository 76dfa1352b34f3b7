package main

import (
	"errors"
	"os/exec"
	"syscall"
)

// busy starts n processes that each keep a processor busy. It returns a function that
// ends them. They also end when this program ends.
func busy(n int) (stop func() error, err error) {
	var started []*exec.Cmd
	stop = func() error {
		var err error
		for _, cmd := range started {
			err = errors.Join(err, cmd.Process.Kill())
			var killed *exec.ExitError
			if e := cmd.Wait(); !errors.As(e, &killed) {
				err = errors.Join(err, e)
			}
		}
		return err
	}
	for range n {
		cmd := exec.Command("sh", "-c", "while kill -0 $PPID; do i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; done")
		// In its own session, so that the kernel gives it a separate share of the
		// processors.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return nil, errors.Join(err, stop())
		}
		started = append(started, cmd)
	}
	return stop, nil
}
