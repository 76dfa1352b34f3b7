package launch

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/netns"
)

// stageArg is the argument after [WardenArg] that makes the binary run as the stage: the
// process that sets up Chrome's network namespace, from inside, and then becomes Chrome.
const stageArg = "stage"

// The stage's inherited file descriptors, besides those of Chrome's pipe. The warden has
// fdNetwork too.
const (
	fdNetwork = 7 // the connection to the daemon; see [netns.Enter]

	fdStageNetwork = 5
	fdStageOrder   = 6
	fdStageReports = 7 // carries a [report] with Ready, and another one if Chrome could not be started
)

// stageMain runs the whole program of a stage. It returns only if it fails.
func stageMain() int {
	runtime.LockOSThread() // rights and Landlock belong to the thread that becomes Chrome
	closeOnExec()
	reports := json.NewEncoder(os.NewFile(fdStageReports, "reports"))
	orders := os.NewFile(fdStageOrder, "order")
	var o order
	if json.NewDecoder(orders).Decode(&o) != nil || o.Network == nil {
		return wardenMisuse
	}
	netns.DisableAutoconf()
	_ = reports.Encode(report{Ready: true}) // without its reader the warden is dead
	_ = reports.Encode(enter(o))
	return wardenOK
}

// enter becomes Chrome, or returns why it cannot.
func enter(o order) report {
	if err := netns.Enter(*o.Network, os.NewFile(fdStageNetwork, "daemon")); err != nil {
		return report{NetworkFailed: err.Error()}
	}
	if len(o.Grants) > 0 {
		if err := confine(o.Grants, o.Denied); err != nil {
			return report{Unconfined: err.Error()}
		}
	}
	if err := netns.GiveUp(); err != nil {
		return report{NetworkFailed: "the rights over the network cannot be given up: " + err.Error()}
	}
	if o.Path == "" {
		return report{} // only to see whether it works
	}
	if err := os.Chdir(o.Dir); err != nil {
		return failed(err)
	}
	for _, fd := range []int{fdRequests, fdAnswers} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return failed(err)
		}
	}
	return failed(syscall.Exec(o.Path, append([]string{o.Path}, o.Args...), o.Env))
}

// startStage starts Chrome through a stage in a new network namespace, and pasta when the stage
// is ready for it. It returns a failure of the stage as a report.
func (w *warden) startStage(o order) (report, error) {
	var pipes [4]int // the order and the reports, each with its reading end and its writing end
	for i := 0; i < len(pipes); i += 2 {
		if err := unix.Pipe2(pipes[i:i+2], unix.O_CLOEXEC); err != nil {
			return report{}, err
		}
	}
	uid, gid := os.Geteuid(), os.Getegid()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{wardenName, WardenArg, stageArg}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"GORACE=atexit_sleep_ms=0"},
		Files: []uintptr{0, 2, 2, fdRequests, fdAnswers, fdNetwork, uintptr(pipes[0]), uintptr(pipes[3])},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: netns.Capabilities(), Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return report{NetworkFailed: "no new user and network namespace: " + err.Error() + "; " + remedy(hostFiles())}, nil
	}
	w.main = pid
	handle, err := unix.PidfdOpen(pid, 0) // the PID can be used again
	// While these are open here, no side would see the others' end.
	for _, fd := range []int{fdRequests, fdAnswers, fdNetwork, pipes[0], pipes[3]} {
		err = errors.Join(err, syscall.Close(fd))
	}
	orders, reports := os.NewFile(uintptr(pipes[1]), "order"), os.NewFile(uintptr(pipes[2]), "reports")
	defer func() { _ = reports.Close() }() // only read from
	if err == nil {
		err = json.NewEncoder(orders).Encode(o)
	}
	if err = errors.Join(err, orders.Close()); err != nil {
		return report{}, err
	}
	in := json.NewDecoder(reports)
	var first, failure report
	if err := in.Decode(&first); err != nil || !first.Ready {
		return report{NetworkFailed: "the process that sets it up ended early"}, nil
	}
	if w.pasta, err = netns.StartPasta(o.Network.Pasta, pastaName+o.Network.Name, pid); err != nil {
		return report{NetworkFailed: "pasta cannot be started: " + err.Error()}, nil
	}
	go endWithoutPasta(w.pasta, handle)
	if err := in.Decode(&failure); err != nil && !errors.Is(err, io.EOF) {
		return report{}, err
	}
	if failure == (report{}) && ended(w.pasta, unix.WNOHANG) {
		failure.NetworkFailed = "pasta ended"
		if reason := netns.PastaLacks(); reason != "" {
			failure.NetworkFailed += ": " + reason
		}
	}
	return failure, nil // without a failure, Chrome's start has closed the pipe
}

// endWithoutPasta ends the stage, or Chrome, when pasta ends: without it there is no network,
// and a session that looks well but reaches nothing is worse than one that has crashed.
func endWithoutPasta(pasta, chrome int) {
	ended(pasta, 0)
	_ = unix.PidfdSendSignal(chrome, unix.SIGKILL, nil, 0) // it has ended already if the warden ends
}

// ended reports whether a child has ended, or waits for that. The child can still be reaped.
func ended(pid, options int) bool {
	for {
		var info unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil); err {
		case unix.EINTR:
		case nil:
			return info.Signo != 0
		default:
			return true // it was reaped
		}
	}
}

// pastaName makes a pasta that outlived its warden recognisable as a process of a Chrome's
// tree; see [Launcher.Sweep].
const pastaName = "pasta --type=pasta " + userDataDirFlag
