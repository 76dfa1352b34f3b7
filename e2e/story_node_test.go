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
	tale
	d      *daemon.Daemon
	script *scriptProcess
}

func (n *inNode) setOut(t *testing.T) {
	n.URL = n.d.URL
	n.script.tell(t, n.tale)
	n.script.hear(t, "on its way")
}

func (n *inNode) goOn(t *testing.T) {
	n.script.tell(t, obj{"url": n.d.URL})
	n.script.hear(t, "the end")
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

// tell sends the script one line of JSON.
func (s *scriptProcess) tell(t testing.TB, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "%s\n", raw); err != nil {
		t.Fatal(err)
	}
}

// hear waits for a line from the script. Other output explains a failure.
func (s *scriptProcess) hear(t testing.TB, line string) {
	t.Helper()
	said := ""
	for s.out.Scan() {
		if s.out.Text() == line {
			return
		}
		said += s.out.Text() + "\n"
	}
	t.Fatalf("the script ended before %q:\n%s", line, said)
}
