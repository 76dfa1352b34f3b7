//go:build linux

package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// FindPasta returns the path of pasta's binary. Errors: Unsupported, with what to install.
func FindPasta() (string, error) {
	path, err := exec.LookPath("pasta")
	return path, fault.Wrap(err, fault.Unsupported, "netns.pasta", "pasta is not installed; install it with: apt-get update && apt-get install passt")
}

// StartPasta starts pasta for the namespace of process pid, as a child of this thread, and
// returns its PID. Nothing from outside reaches the namespace through it, and the machine's own
// loopback is not reachable through it. The name, which may contain blanks, is how the process
// can be found among all of the machine.
func StartPasta(binary, name string, pid int) (int, error) {
	// The program is pasta, and not passt, by the last element of its name.
	args := []string{name + " /pasta", "--foreground", "--quiet", "--config-net",
		"--no-map-gw",                                          // else the gateway's address would be the machine's loopback
		"-t", "none", "-u", "none", "-T", "none", "-U", "none", // no ports, in either direction
		"--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-ndp", strconv.Itoa(pid)}
	return syscall.ForkExec(binary, args, &syscall.ProcAttr{Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []uintptr{0, 2, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
}

const (
	pastaDeadline = 10 * time.Second
	pastaPause    = time.Millisecond
)

// awaitPasta returns when this process's namespace has a default route.
func awaitPasta() error {
	for waited := time.Duration(0); waited < pastaDeadline; waited += pastaPause {
		if outward("/proc/self/net") {
			return nil
		}
		time.Sleep(pastaPause)
	}
	return errors.New("pasta did not make a default route")
}

// tunDevice is what pasta makes the namespace's interface with.
const tunDevice = "/dev/net/tun"

// PastaLacks says what a pasta that ended lacked on this machine, and what to do, or "" if that
// cannot be seen. The caller is in the machine's network namespace, with the rights that pasta
// had.
func PastaLacks() string {
	return lacks(tunDevice, "/proc/self/net")
}

func lacks(device, net string) string {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "this user may not open " + device + "; allow it with: chmod 666 " + device
	case err != nil:
		return fmt.Sprintf("%s cannot be opened (%v); load the kernel's module with: modprobe tun; in a container, pass the device in", device, errors.Unwrap(err))
	}
	_ = f.Close() // it made no interface
	if !outward(net) {
		return "this machine has no network interface with a default route; connect it to a network, or add one with: ip route add default via GATEWAY"
	}
	return ""
}

// outward reports whether a folder of lists of routes has a default route.
func outward(net string) bool {
	return hasRoute(net+"/route", 1, "00000000") || hasRoute(net+"/ipv6_route", 0, strings.Repeat("0", 32))
}

// hasRoute reports whether a list of routes (proc_pid_net(5)) has one to everything that
// leads out of the machine. The destination is the column at, and the interface the first or
// last one.
func hasRoute(file string, at int, everything string) bool {
	list, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) > at && f[at] == everything && f[0] != "lo" && f[len(f)-1] != "lo" {
			return true
		}
	}
	return false
}
