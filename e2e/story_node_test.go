package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// inNode runs the story in a script that uses only fetch for the API.
type inNode struct {
	storyInput
	d      *daemon.Daemon
	script *scriptProcess
}

func (n *inNode) beforeKill(t *testing.T) {
	n.URL = n.d.URL
	n.script.send(t, n.storyInput)
	n.script.receive(t, "navigating")
}

func (n *inNode) afterKill(t *testing.T) {
	n.script.send(t, obj{"url": n.d.URL})
	n.script.receive(t, "done")
}

// scriptProcess is a Node script that reads and writes lines.
type scriptProcess struct {
	in  io.Writer
	out *bufio.Scanner
}

// startScript starts a script. It is ended with the test, or when it takes far too long.
func startScript(t testing.TB, path string) *scriptProcess {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*scriptDeadline)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "node", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its output says how it went
	})
	return &scriptProcess{in, bufio.NewScanner(out)}
}

// send sends the script one line of JSON.
func (s *scriptProcess) send(t testing.TB, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "%s\n", raw); err != nil {
		t.Fatal(err)
	}
}

// receive waits for a line from the script. Other output explains a failure.
func (s *scriptProcess) receive(t testing.TB, line string) {
	t.Helper()
	other := ""
	for s.out.Scan() {
		if s.out.Text() == line {
			return
		}
		other += s.out.Text() + "\n"
	}
	t.Fatalf("the script ended before %q:\n%s", line, other)
}
