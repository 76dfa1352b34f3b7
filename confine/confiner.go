package confine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// probe is the work of a child that does nothing. It has no request and no answer.
const probe = ""

// Confiner starts children. Its methods are safe for concurrent use.
type Confiner struct {
	layers Layers
	flags  uintptr // of clone(2), for the namespace
	log    *slog.Logger
}

// Namespaces of a child: those that the systemd unit permits. None for processes: the C
// library, which a binary with cgo has, then looks for its own threads under the wrong number
// in /proc, and waits for ever.
const (
	ownNetwork  = syscall.CLONE_NEWNET
	userNetwork = syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER
)

// New starts a child that does nothing, to find out which restrictions hold here. It needs
// one that starts at all. Every later child must have the same restrictions.
func New(ctx context.Context, uid int, log *slog.Logger) (*Confiner, error) {
	candidates := []uintptr{userNetwork, 0}
	if os.Geteuid() == 0 {
		candidates = []uintptr{ownNetwork, userNetwork, 0}
	}
	var errs []error
	for _, flags := range candidates {
		c := &Confiner{flags: flags, log: log}
		h, _, err := c.run(ctx, Task{Work: probe, UID: uid})
		if err == nil {
			c.layers = h.Layers
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, fault.Wrap(errors.Join(errs...), fault.SandboxFailed, "confine.new", "no process can be started that reads uploads without rights")
}

// Layers returns the restrictions that hold for each child.
func (c *Confiner) Layers() Layers { return c.layers }

// Task is what a child is to do.
type Task struct {
	Work    string   // a key of the works of [Main]
	Request any      // for the work, as JSON
	File    *os.File // the child gets its own descriptor, which can only read
	Folder  string   // absolute; it must exist and belong to UID; "": none
	UID     int      // the user and group of the child, if the daemon runs as root
	// FileSize is the largest file that the child may write, in bytes.
	FileSize int64
	// FolderLimits are what the child may leave in its folder.
	FolderLimits FolderLimits
	// MaxAnswer is the largest answer, in bytes of JSON.
	MaxAnswer int64
	// Refused is the code of the error if the child ends without an answer.
	Refused fault.Code
}

// Run starts a child, waits until it has ended, and returns its answer. The answer is JSON of
// at most t.MaxAnswer bytes; the caller decides whether it may be decoded. An error of its work
// has that error's code and message. If the child ends without an answer, because it
// crashed, was killed or took more than a limit, the error is t.Refused and names the
// limits. If ctx ends first, the child is killed and the error is ctx's. No process of the
// child runs any more when Run returns.
func (c *Confiner) Run(ctx context.Context, t Task) (answer json.RawMessage, err error) {
	_, answer, err = c.run(ctx, t)
	return answer, err
}

func (c *Confiner) run(ctx context.Context, t Task) (h header, answer []byte, err error) {
	const op = "confine.run"
	cmd, line, err := c.command(t)
	if err != nil {
		return h, nil, fault.Wrap(err, fault.Internal, op, "")
	}
	defer func() { err = errors.Join(err, closeAll(cmd.ExtraFiles)) }()
	within, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stderr := &firstLine{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return h, nil, fault.Wrap(err, fault.Internal, op, "")
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return h, nil, fault.Wrap(err, fault.Internal, op, "")
	}
	if err := cmd.Start(); err != nil {
		return h, nil, fault.Wrap(err, fault.Internal, op, "the process that reads uploads could not be started")
	}
	kill := func() { _ = cmd.Process.Kill() } // it may have ended already
	defer context.AfterFunc(within, kill)()
	overfull := watch(within, t, cmd.Process.Pid, kill)
	_, written := stdin.Write(line)
	h, answer, unread := readAnswer(stdout, t.MaxAnswer)
	if unread != nil {
		kill() // it may still be writing
	}
	ended := errors.Join(cmd.Wait(), written, unread)
	late := within.Err() != nil
	cancel() // nobody is left to watch
	switch full := <-overfull; {
	case ctx.Err() != nil:
		return h, nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "reading the file was cancelled")
	case full != nil:
		c.log.Warn("a process that reads uploads wrote more than it may; the upload is refused", "work", t.Work, "error", full)
		return h, nil, tooFull(t)
	case ended != nil && h.err() == nil:
		c.log.Warn("a process that reads uploads ended without an answer; the upload is refused", "work", t.Work, "error", ended, "stderr", stderr.String())
		return h, nil, died(t, late, cmd.ProcessState)
	case h.Failed != "":
		c.log.Error("a process that reads uploads could not give up its rights", "error", h.Failed)
	}
	if err := h.err(); err != nil {
		return h, nil, err
	}
	return h, answer, nil
}

// maxHeader bounds the line of an answer that has its header, in bytes. JSON takes at most six
// for one of a message.
const maxHeader = 6*maxMessage + 1<<10

// readAnswer reads a header, and of the rest at most so many bytes. The answer is one JSON
// value, or nothing.
func readAnswer(r io.Reader, most int64) (h header, answer []byte, err error) {
	in := bufio.NewReaderSize(r, maxHeader)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return header{}, nil, fmt.Errorf("no answer: %w", err)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return header{}, nil, fmt.Errorf("no answer: %w", err)
	}
	answer, err = io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(answer)) > most {
		err = errors.New("the answer is too long")
	}
	return h, answer, err
}

// died returns the error for a child that ended without an answer.
func died(t Task, late bool, state *os.ProcessState) error {
	how := "failed"
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		how = "was ended by the signal " + status.Signal().String()
	}
	if late {
		how = "took too long"
	}
	return fault.New(t.Refused, "confine.run", "the file could not be read: the process that reads it %s; it may use %d MiB of memory and %d minutes, "+
		"so the file is damaged or holds more than can be read", how, MaxMemory>>20, int(MaxTime.Minutes()))
}

// command returns the child's command, and its order.
func (c *Confiner) command(t Task) (*exec.Cmd, []byte, error) {
	request, err := json.Marshal(t.Request)
	if err != nil {
		return nil, nil, err
	}
	o := order{Work: t.Work, Request: request, Folder: t.Folder, UID: os.Geteuid(), OwnNetwork: c.flags != 0, Limits: limits{t.FileSize}, Need: c.layers}
	if os.Geteuid() == 0 {
		o.UID = t.UID
	}
	line, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: c.flags}
	if c.flags&syscall.CLONE_NEWUSER != 0 {
		mapUsers(attr, o.UID)
	}
	path := os.DevNull
	if t.File != nil {
		path = fmt.Sprintf("/proc/self/fd/%d", t.File.Fd())
	}
	input, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return &exec.Cmd{
		// This path runs the same program even if the binary's file was replaced.
		Path: "/proc/self/exe", Args: []string{childName, Arg}, Dir: "/", ExtraFiles: []*os.File{input}, SysProcAttr: attr,
		// Nothing of the daemon's environment. Go collects garbage before the limit is reached.
		// A binary with the race detector would sleep a second at its exit.
		Env:       []string{fmt.Sprintf("GOMEMLIMIT=%d", MaxMemory/4*3), "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		WaitDelay: time.Second,
	}, append(line, '\n'), nil
}

// mapUsers gives the child's user namespace the users that it needs. Without capabilities a
// daemon may map only itself.
func mapUsers(attr *syscall.SysProcAttr, uid int) {
	users := []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	groups := []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	if uid != os.Geteuid() {
		more := syscall.SysProcIDMap{ContainerID: uid, HostID: uid, Size: 1}
		users, groups = append(users, more), append(groups, more)
		attr.GidMappingsEnableSetgroups = true
	}
	attr.UidMappings, attr.GidMappings = users, groups
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// firstLine keeps the first line of a child's standard error, for the log: a Go program says
// there why it crashed. What follows could quote the upload.
type firstLine struct{ text strings.Builder }

// maxLine bounds the line, in bytes.
const maxLine = 200

func (f *firstLine) Write(p []byte) (int, error) {
	if left := maxLine - f.text.Len(); left > 0 {
		f.text.Write(p[:min(len(p), left)])
	}
	return len(p), nil
}

func (f *firstLine) String() string {
	line, _, _ := strings.Cut(f.text.String(), "\n")
	return line
}
