package confine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"

	"github.com/stasisd/stasis/fault"
)

// Work is what a child does with its file and its folder. It returns what the daemon gets,
// as a value for encoding/json, or an error. Of an error the daemon gets the code and the
// message; one without a code is internal. ctx never ends.
type Work func(ctx context.Context, request json.RawMessage, file *os.File, folder string) (answer any, err error)

// Exit statuses of a child. Only its daemon sees them.
const (
	exitDone       = 0
	exitMisuse     = 2
	exitDaemonGone = 3
)

// Main runs the whole program of a child and returns its exit status. args are the
// arguments after [Arg]; there must be none. works are the works that it may be asked for.
func Main(args []string, works map[string]Work) int {
	// PR_SET_PDEATHSIG belongs to a thread, so this one must stay.
	runtime.LockOSThread()
	stdin := bufio.NewReader(os.Stdin)
	line, err := stdin.ReadBytes('\n')
	var o order
	if err != nil || len(args) != 0 || json.Unmarshal(line, &o) != nil {
		return exitMisuse
	}
	layers, err := restrict(o)
	if err == nil && !layers.covers(o.Need) {
		err = errors.New("fewer restrictions hold than when the daemon started")
	}
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		return written(out.Encode(header{Layers: layers, Failed: bounded(err.Error())}))
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // it ends with the daemon
		os.Exit(exitDaemonGone)
	}()
	if o.Work == probe {
		return written(out.Encode(header{Layers: layers}))
	}
	work, known := works[o.Work]
	if !known {
		return written(out.Encode(header{Layers: layers, Failed: bounded("it does not know the work " + o.Work)}))
	}
	answer, err := work(context.Background(), o.Request, os.NewFile(fdInput, "input"), o.Folder)
	h := header{Layers: layers}
	if err != nil {
		h.Code, h.Message = fault.CodeOf(err), bounded(fault.MessageOf(err))
		return written(out.Encode(h))
	}
	return written(errors.Join(out.Encode(h), out.Encode(answer)))
}

// written returns the exit status after an answer.
func written(err error) int {
	if err != nil {
		return exitDaemonGone
	}
	return exitDone
}
