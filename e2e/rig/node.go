package rig

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Node is a process of Node.js that runs a script with client libraries. It does one order at a
// time.
type Node struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  *bufio.Reader
}

// StartNode starts a script in the folder of the client libraries, e2e/clients.
func StartNode(folder, script string) (*Node, error) {
	n := &Node{cmd: exec.Command("node", script)}
	n.cmd.Dir, n.cmd.Stderr = folder, os.Stderr
	var err error
	if n.orders, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.lines = bufio.NewReader(out)
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	return n, nil
}

// Do sends an order and decodes the answer's value into out; nil ignores it.
func (n *Node) Do(order, out any) error {
	raw, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := n.orders.Write(append(raw, '\n')); err != nil {
		return err
	}
	line, err := n.lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the client libraries' process ended: %w", err)
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// Close ends the process, which closes its browsers.
func (n *Node) Close() error { return errors.Join(n.orders.Close(), n.cmd.Wait()) }
