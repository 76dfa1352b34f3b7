package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// bareChrome times Chrome alone on a user data directory, from its start to the first
// answer of its first page. It uses the pipe, which is the fastest transport: Chrome
// opens no port and bareChrome waits for no line of output.
func bareChrome(ctx context.Context, chrome, dir string) (ms float64, err error) {
	cmd := exec.CommandContext(ctx, chrome, "--headless=new", "--no-sandbox", "--no-first-run", "--no-default-browser-check",
		"--password-store=basic", "--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	defer func() { err = errors.Join(err, ourIn.Close(), ourOut.Close()) }()
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4 of Chrome
	start := time.Now()
	err = cmd.Start()
	err = errors.Join(err, theirIn.Close(), theirOut.Close())
	if err != nil {
		return 0, err
	}
	err = firstPageAnswers(ourOut, ourIn)
	ms = milliseconds(time.Since(start))
	return ms, errors.Join(err, killTree(cmd))
}

// killTree kills a browser and the processes that it has started.
func killTree(cmd *exec.Cmd) error {
	err := cmd.Cancel()
	var exit *exec.ExitError
	if e := cmd.Wait(); e != nil && !errors.As(e, &exit) {
		err = errors.Join(err, e)
	}
	return err
}

// firstPageAnswers attaches to the first page and waits for the answer of a script in
// it.
func firstPageAnswers(to io.Writer, from io.Reader) error {
	send := func(message string) error {
		_, err := io.WriteString(to, message+"\x00")
		return err
	}
	if err := send(`{"id":1,"method":"Target.setAutoAttach","params":{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}}`); err != nil {
		return err
	}
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			return err
		}
		var m struct {
			ID     int
			Method string
			Params struct {
				SessionID  string
				TargetInfo struct{ Type string }
			}
		}
		if err := json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m); err != nil {
			return err
		}
		switch {
		case m.ID == 2:
			return nil
		case m.Method == "Target.attachedToTarget" && m.Params.TargetInfo.Type == "page":
			if err := send(`{"id":2,"method":"Runtime.evaluate","params":{"expression":"1"},"sessionId":"` + m.Params.SessionID + `"}`); err != nil {
				return err
			}
		}
	}
}
