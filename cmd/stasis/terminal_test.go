//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the program terminal of the scripts: it runs a shell's command whose standard error
// is a terminal, and prints what came there. testscript's ttyout loses the end of that on a busy
// machine.
func terminal() {
	if err := runInTerminal(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

// runInTerminal runs a command until it ends and nothing more can come from its terminal; see
// pts(4).
func runInTerminal(command string, out io.Writer) error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = master.Close() }()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return err
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = os.Stderr, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = tty.Close()
	_, _ = io.Copy(out, master) // ends with EIO when nobody has the terminal any more
	_ = cmd.Wait()              // the script checks what the command says
	return nil
}
